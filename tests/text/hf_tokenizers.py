"""Our tokenizers against Hugging Face's, on tokenizers trained here and on all-MiniLM-L6-v2's: ids, decoding, streaming.

usage: hf_tokenizers.py TEXT_TOOL [--random COUNT] [--seed SEED] [--only NAME]
"""
import argparse
import glob
import json
import os
import struct
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from hard_strings import HARD, random_strings
from tool import Checks, Tool

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def corpus():
    """A small text that the repository has, and a little of every script, so that vocabularies have pieces of each."""
    lines = []
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            lines += file.read().splitlines(keepends=True)
    return lines[:600] + [text for text in HARD if "\u0000" not in text] * 2


def charsmap(entries):
    """A precompiled character map (a double array, as Darts makes it) from text to text."""
    blob, offsets = b"", {}
    for target in entries.values():
        if target not in offsets:
            offsets[target] = len(blob)
            blob += target.encode() + b"\0"
    tree = {}
    for key, target in entries.items():
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node["value"] = offsets[target]
    units, used, bases = {0: 0}, {0}, set()

    def place(node, at):
        labels = [0] * ("value" in node) + sorted(k for k in node if k != "value")
        base = 1
        while base in bases or any((base ^ label) in used for label in labels):  # a label alone says whose child a unit is
            base += 1
        bases.add(base)
        for label in labels:
            used.add(base ^ label)
        units[at] = units.get(at, 0) | (at ^ base) << 10 | (("value" in node) << 8)
        if "value" in node:
            units[base] = node["value"] | 1 << 31
        for label in labels:
            if label:
                units[base ^ label] = label
        for label in labels:
            if label:
                place(node[label], base ^ label)

    place(tree, 0)
    count = max(units) + 257
    return struct.pack("<I", count * 4) + b"".join(struct.pack("<I", units.get(i, 0)) for i in range(count)) + blob


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?"
         r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior=behavior, invert=invert)


def byte_level(*steps, use_regex=False, add_prefix_space=False):
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)])


def train_bpe(pre, normalizer=None, decoder=None, size=1200, alphabet=True, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [],
                                  **{key: options[key] for key in ("continuing_subword_prefix", "end_of_word_suffix") if key in options})
    tokenizer.train_from_iterator(corpus(), trainer)
    if decoder:
        tokenizer.decoder = decoder
    return tokenizer


def with_tokens(tokenizer):
    """Added tokens of every kind."""
    tokenizer.add_tokens([AddedToken("<extra>", lstrip=True), AddedToken("newtoken", single_word=True), AddedToken("Café", normalized=True),
                          AddedToken("camelCase", normalized=False), AddedToken("Y'All", rstrip=True, normalized=True), "  b", "lazy dog"])
    tokenizer.add_special_tokens([AddedToken("<|im_start|>"), AddedToken("<|im_end|>", rstrip=True), AddedToken("<|endoftext|>", lstrip=True, rstrip=True),
                                  AddedToken("<mask>", lstrip=True, normalized=True)])
    return tokenizer


def sentence_piece_bpe(fallback, fuse_unk=True):
    """As Llama's and Mistral's tokenizer.json: no pre-tokenizer, spaces as ▁, bytes for what has no piece."""
    tokenizer = train_bpe(pre_tokenizers.Metaspace(), alphabet=False, unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=fallback)
    spec = json.loads(tokenizer.to_str())
    spec["pre_tokenizer"] = None
    spec["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                             {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    spec["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                                        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    rare = [piece for piece in spec["model"]["vocab"] if len(piece) == 1 and ord(piece) > 0x250][::2]  # characters that bytes must spell
    used = {part for pair in spec["model"]["merges"] for part in pair}
    vocab = [piece for piece in spec["model"]["vocab"] if piece not in rare or piece in used]
    if fallback:
        vocab = SPECIAL[:3] + [f"<0x{b:02X}>" for b in range(256)] + [piece for piece in vocab if piece not in SPECIAL[:3]]
    spec["model"]["vocab"] = {piece: i for i, piece in enumerate(vocab)}
    spec["added_tokens"] = []
    spec["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                              "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [spec["model"]["vocab"]["<s>"]], "tokens": ["<s>"]}}}
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


def unigram(normalizer, pre, byte_fallback=False, decoder=None):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=900, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    if byte_fallback:
        spec = json.loads(tokenizer.to_str())
        spec["model"]["byte_fallback"] = True
        spec["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
        tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.decoder = decoder or decoders.Metaspace()
    return tokenizer


def word_piece(normalizer, pre, **decoder):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=1000, special_tokens=SPECIAL, show_progress=False))
    tokenizer.decoder = decoders.WordPiece(**decoder)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")))
    return tokenizer


def word_level(pre):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(corpus(), trainers.WordLevelTrainer(special_tokens=SPECIAL, show_progress=False))
    return tokenizer


MAP = {"ﬁ": "fi", "①": "1", "㎏": "kg", "Å": "Å", "\u3000": " ", "\t": " ", "e\u0301": "é", "é": "é", "…": "...", "ｆ": "f", "\u00ad": "", "½": "1/2", "Ω": "Ω", "ａ": "a"}


def cases():
    n, p = normalizers, pre_tokenizers
    bl = decoders.ByteLevel
    yield "gpt2", lambda: with_tokens(train_bpe(p.ByteLevel(add_prefix_space=False), decoder=bl()))
    yield "gpt2-prefix-space", lambda: train_bpe(p.ByteLevel(add_prefix_space=True), decoder=bl())
    yield "roberta", lambda: roberta()
    yield "gpt2-nfc", lambda: with_tokens(train_bpe(p.ByteLevel(add_prefix_space=False), n.NFC(), bl()))
    yield "smollm", lambda: with_tokens(train_bpe(byte_level(p.Digits(individual_digits=True), use_regex=True), decoder=bl()))
    yield "llama3", lambda: ignoring_merges(train_bpe(byte_level(split(LLAMA3)), decoder=bl()))
    yield "qwen2", lambda: with_tokens(train_bpe(byte_level(split(QWEN2)), n.NFC(), bl()))
    yield "gpt4o", lambda: train_bpe(byte_level(split(GPT4O)), decoder=bl())
    yield "deepseek3", lambda: train_bpe(byte_level(split(r"\p{N}{1,3}"), split(r"[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3)), decoder=bl())
    yield "bloom", lambda: train_bpe(byte_level(split(BLOOM)), decoder=bl())
    yield "falcon", lambda: train_bpe(byte_level(p.Punctuation("contiguous"), p.ByteLevel(add_prefix_space=False, use_regex=True), p.Digits(), split("[0-9][0-9][0-9]")), decoder=bl())
    yield "byte-level-normalizer", lambda: train_bpe(split(r"\s+", "merged_with_previous"), n.ByteLevel(), bl())
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"split-{behavior}", lambda behavior=behavior: train_bpe(byte_level(split(r"[\s\p{P}]", behavior)), decoder=bl())
        yield f"split-inverted-{behavior}", lambda behavior=behavior: train_bpe(byte_level(split(r"\w+|\d", behavior, True)), decoder=bl())
    yield "split-string", lambda: train_bpe(byte_level(p.Split("a.", "merged_with_next"), p.Split(" ", "removed")), decoder=bl())
    yield "split-empty-matches", lambda: train_bpe(byte_level(split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))")), decoder=bl())
    yield "split-lines", lambda: train_bpe(byte_level(split(r"^\s+|\s+$"), split(r"\w+\b")), decoder=bl())
    yield "whitespace-unk", lambda: with_tokens(train_bpe(p.Whitespace(), n.Sequence([n.NFKC(), n.Lowercase()]), alphabet=False, unk_token="<unk>", size=600))
    yield "whitespace-fuse-unk", lambda: rare_removed(train_bpe(p.Whitespace(), alphabet=False, unk_token="<unk>", fuse_unk=True, size=900))
    yield "whitespace-no-unk", lambda: rare_removed(train_bpe(p.WhitespaceSplit(), n.NFKD(), alphabet=False, size=900))
    yield "end-of-word", lambda: train_bpe(p.BertPreTokenizer(), n.BertNormalizer(), decoders.BPEDecoder(suffix="</w>"), alphabet=False, unk_token="<unk>", end_of_word_suffix="</w>")
    yield "subword-prefix", lambda: train_bpe(p.Whitespace(), n.Lowercase(), decoders.WordPiece(prefix="@@"), alphabet=False, unk_token="<unk>", continuing_subword_prefix="@@")
    yield "char-delimiter", lambda: train_bpe(byte_level(p.CharDelimiterSplit("_"), p.Punctuation()), decoder=bl())
    for behavior in ("removed", "merged_with_next"):
        yield f"punctuation-{behavior}", lambda behavior=behavior: train_bpe(byte_level(p.Punctuation(behavior)), decoder=bl())
    yield "llama2", lambda: sentence_piece_bpe(True)
    yield "no-fallback", lambda: sentence_piece_bpe(False)
    yield "no-fallback-no-fuse", lambda: sentence_piece_bpe(False, False)
    for scheme in ("always", "first", "never"):
        for splits in (True, False):
            yield f"metaspace-{scheme}-{splits}", lambda scheme=scheme, splits=splits: with_tokens(train_bpe(
                p.Metaspace(prepend_scheme=scheme, split=splits), decoder=decoders.Metaspace(prepend_scheme=scheme, split=splits), alphabet=False, unk_token="<unk>"))
    yield "metaspace-after-split", lambda: train_bpe(p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")]), alphabet=False, unk_token="<unk>")
    yield "unigram", lambda: with_tokens(unigram(None, p.Metaspace()))
    yield "unigram-nmt", lambda: unigram(n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace())
    yield "unigram-t5", lambda: template(unigram(n.Sequence([n.Precompiled(charsmap(MAP)), n.Strip(), n.Replace(Regex(" {2,}"), "▁")]),
                                                 p.Sequence([p.WhitespaceSplit(), p.Metaspace()])))
    yield "unigram-bytes", lambda: unigram(None, p.Metaspace(), True, decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]))
    yield "bert", lambda: with_tokens(word_piece(n.BertNormalizer(), p.BertPreTokenizer()))
    yield "bert-cased", lambda: with_tokens(word_piece(n.BertNormalizer(lowercase=False), p.BertPreTokenizer(), cleanup=False))
    yield "bert-accents", lambda: word_piece(n.BertNormalizer(strip_accents=False, handle_chinese_chars=False, clean_text=False), p.BertPreTokenizer())
    yield "wordpiece-strip", lambda: word_piece(n.Sequence([n.NFD(), n.StripAccents(), n.Strip(left=True, right=False), n.Lowercase()]), p.Whitespace())
    yield "word-level", lambda: word_level(p.Whitespace())
    yield "minilm", minilm


def rare_removed(tokenizer):
    """Half of the characters outside of Latin lose their pieces: what a text may have and a vocabulary does not."""
    spec = json.loads(tokenizer.to_str())
    used = {part for pair in spec["model"]["merges"] for part in pair}
    spec["model"]["vocab"] = {piece: i for piece, i in spec["model"]["vocab"].items() if len(piece) != 1 or ord(piece) < 0x250 or ord(piece) % 2 or piece in used}
    return Tokenizer.from_str(json.dumps(spec))


def ignoring_merges(tokenizer):
    spec = json.loads(tokenizer.to_str())
    spec["model"]["ignore_merges"] = True
    spec["model"]["merges"] = spec["model"]["merges"][: len(spec["model"]["merges"]) * 3 // 4]
    return with_tokens(Tokenizer.from_str(json.dumps(spec)))


def roberta():
    tokenizer = train_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel())
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def template(tokenizer):
    ids = [(t, tokenizer.token_to_id(t)) for t in ("<s>", "</s>")]
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing("<s> <s> $A </s>", None, ids)])
    return tokenizer


def minilm():
    (path,) = glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/*/**/tokenizer.json"), recursive=True)[:1]
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def check(tool, checks, name, tokenizer, texts, folder):
    path = os.path.join(folder, f"{name}.json")
    tokenizer.save(path)
    tool.must(load=path)
    for number, text in enumerate(texts):
        for parse_special in (True, False):
            tokenizer.encode_special_tokens = not parse_special
            add_special = number % 2 == 0
            expected = tokenizer.encode(text, add_special_tokens=add_special).ids
            ids = tool.ask(text=text, parse_special=parse_special, add_special=add_special)
            if not checks.equal(ids.get("ids", ids), expected, f"{name}: encode {text!r} special={parse_special}"):
                continue
            if not parse_special and number % 3:
                continue
            for skip in (True, False):
                decoded = tokenizer.decode(expected, skip_special_tokens=skip)
                checks.equal(tool.ask(decode=expected, skip_special=skip).get("text"), decoded, f"{name}: decode {expected} of {text!r} skip={skip}")
                pieces = tool.ask(stream=expected, skip_special=skip)["pieces"]
                checks.equal("".join(pieces), decoded, f"{name}: stream {expected} of {text!r} skip={skip}")
    tokenizer.encode_special_tokens = False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"{len(HARD)} hard strings, {arguments.random} random ones of seed {arguments.seed}")
    tool, checks = Tool(arguments.tool), Checks()
    chosen = [(name, make) for name, make in cases() if arguments.only in name]
    strings = random_strings(arguments.random, arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for index, (name, make) in enumerate(chosen):
            before = checks.failed
            # Every tokenizer sees the hard strings; the random ones are shared out, and a few see them all.
            share = strings if name in ("gpt2", "llama2", "unigram", "minilm") else strings[index % 8::8]
            check(tool, checks, name, make(), HARD + share, folder)
            if checks.failed > before:
                print(f"  {name}: {checks.failed - before} differ")
    checks.finish(f"{len(chosen)} tokenizers")


if __name__ == "__main__":
    main()
