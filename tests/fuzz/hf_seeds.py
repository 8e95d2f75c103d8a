"""Seeds for hf_fuzz: the folders of tests/models/fixtures, one cut into shards, one with a tokenizer, one with sentence-transformers' files.
usage: hf_seeds.py FOLDER"""

import json
import pathlib
import sys

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "models" / "fixtures"
TOKENIZER = {"version": "1.0", "added_tokens": [{"id": 4, "content": "<s>", "special": True}], "normalizer": {"type": "NFC"},
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "post_processor": None, "decoder": {"type": "ByteLevel"},
             "model": {"type": "BPE", "vocab": {"H": 0, "e": 1, "l": 2, "ll": 3}, "merges": ["l l"]}}


def weights(shapes):
    return json.dumps({name: ["F32", shape] for name, shape in shapes.items()}, separators=(",", ":"))


def seed(config, first, second="", tokenizer="", tokenizer_config="", modules="", pooling="", sentence="", index=""):
    return "\0".join((config, tokenizer, tokenizer_config, modules, pooling, sentence, index, first, second))


def main():
    folder = pathlib.Path(sys.argv[1])
    for fixture in sorted(p.parent for p in FIXTURES.glob("*/config.json")):
        config, shapes = json.loads((fixture / "config.json").read_text()), json.loads((fixture / "tensors.json").read_text())
        config = json.dumps(config, separators=(",", ":"))
        (folder / fixture.name).write_text(seed(config, weights(shapes)))
        if fixture.name == "llama":
            (folder / "tokenizer").write_text(seed(config, weights(shapes), tokenizer=json.dumps(TOKENIZER),
                                                   tokenizer_config='{"bos_token":"<s>","chat_template":"{{ bos_token }}"}'))
            parts = dict(list(shapes.items())[::2]), dict(list(shapes.items())[1::2])
            index = {name: file for file, part in zip(("a.safetensors", "b.safetensors"), parts) for name in part}
            (folder / "shards").write_text(seed(config, *map(weights, parts), index=json.dumps({"metadata": {}, "weight_map": index})))
        if fixture.name == "bert":
            modules = [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
                       for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")))]
            (folder / "sentences").write_text(seed(config, weights(shapes), modules=json.dumps(modules), sentence='{"max_seq_length":9}',
                                                   pooling='{"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true}'))


main()
