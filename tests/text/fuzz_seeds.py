"""Seeds for tokenizer_fuzz: small trained tokenizers with a text, the test's templates and hard strings. usage: fuzz_seeds.py FOLDER"""
import json
import os
import sys

import hf_tokenizers as hf
import templates
from hard_strings import HARD


def shrunk(tokenizer):
    """The first pieces of a vocabulary alone: a fuzzer needs small files."""
    spec = json.loads(tokenizer.to_str())
    model = spec["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:60]
        spec["added_tokens"] = [t for t in spec["added_tokens"] if t["id"] < 60][:4]
    else:
        keep = dict(sorted(model["vocab"].items(), key=lambda item: item[1])[:40])
        letters = {piece: i for piece, i in model["vocab"].items() if piece.lower() in "etaoinshr ▁ġ" or piece.lower().strip("#") in "etaoin"}
        model["vocab"] = {**keep, **letters}
        if "merges" in model:
            known = model["vocab"]
            model["merges"] = [m for m in model["merges"] if all(p in known for p in m) and "".join(m) in known][:30]
        spec["added_tokens"] = spec["added_tokens"][:4]
    spec["truncation"] = spec["padding"] = None
    return json.dumps(spec, ensure_ascii=False)


def main():
    folder = sys.argv[1]
    seeds = [b"\0" + shrunk(make()).encode() + b"\0" + HARD[i % len(HARD)].encode() for i, (name, make) in enumerate(hf.cases()) if name != "minilm"]
    sources = [templates.CHATML, templates.LLAMA3, templates.GEMMA, templates.MISTRAL, templates.QWEN3, templates.MACROS]
    sources += templates.FEATURES.strip("\n").split("\n====\n") + templates.ERRORS + templates.ENDLESS
    seeds += [b"\1" + source.encode() + b"\0Hi" for source in sources if len(source) < 10000]
    seeds += [bytes([2 + 3 * (i % 4)]) + text.encode() for i, text in enumerate(HARD)]
    for i, seed in enumerate(seeds):
        with open(os.path.join(folder, f"seed{i:03}"), "wb") as file:
            file.write(seed)
    words = {"Sequence", "Split", "Regex", "String", "ByteLevel", "Metaspace", "prepend_scheme", "Precompiled", "Replace", "Unigram", "byte_fallback", "unk_id",
             "WordPiece", "merges", "added_tokens", "lstrip", "rstrip", "single_word", "TemplateProcessing", "decoder", "normalizer", "pre_tokenizer",
             "{%", "%}", "{{", "}}", "{#", "#}", "{%-", "-%}", "namespace", "macro", "endmacro", "for", "endfor", "if", "elif", "else", "endif", "set", "endset",
             "loop", "tojson", "selectattr", "map", "join", "range", "is defined", "raw", "endraw", "generation", "endgeneration", "filter", "endfilter", "with", "endwith"}
    with open(folder.rstrip("/") + ".dict", "w", encoding="utf-8") as file:
        file.writelines(f'"{word}"\n' for word in sorted(words))


main()
