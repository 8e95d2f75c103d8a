"""Seeds for gguf_fuzz: tiny models of every architecture, and llamas with a vocabulary of each kind.  usage: gguf_seeds.py FOLDER"""

import os
import sys

os.environ["RLX_SMALLEST"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import tiny_models as tiny  # noqa: E402


def encoder(architecture):
    m = tiny.Model(architecture, 2)
    modern = architecture == "modern-bert"
    m.set(**{"attention.layer_norm_epsilon": 1e-5, "pooling_type": 1})
    m.matrix("token_embd", tiny.VOCABULARY, tiny.WIDTH)
    m.norm("token_embd_norm", bias=not modern)
    if architecture == "bert":
        m.matrix("position_embd", tiny.CONTEXT, tiny.WIDTH)
        m.matrix("token_types", 2, tiny.WIDTH)
    if modern:
        m.set(**{"attention.sliding_window": 8, "attention.sliding_window_pattern": [1, 0][: m.layers]})
        m.norm("output_norm")
    for i in range(m.layers):
        layer = f"blk.{i}."
        if architecture == "bert":
            for name in ("attn_q", "attn_k", "attn_v"):
                m.matrix(layer + name, tiny.WIDTH, tiny.WIDTH)
                m.bias(layer + name, tiny.WIDTH)
        else:
            m.matrix(layer + "attn_qkv", 3 * tiny.WIDTH, tiny.WIDTH)
        m.matrix(layer + "attn_output", tiny.WIDTH, tiny.WIDTH)
        m.feed_forward(layer, gate=architecture == "nomic-bert", up=2 * tiny.FFN if modern else tiny.FFN)
        for name in ("attn_norm", "ffn_norm") if modern else ("attn_output_norm", "layer_output_norm"):
            m.norm(layer + name, bias=not modern)
    return m


def with_vocabulary(kind):
    m = tiny.llama()
    tokens = ["<unk>", "<s>", "</s>", "▁", "▁H", "e", "l", "lo", "o", ",", "<0x0A>", "<|im_end|>", "▁w", "r", "d", "1"]
    key = "tokenizer.ggml."
    m.metadata.pop(key + "merges")
    m.metadata.update({
        key + "model": kind, key + "pre": "default", key + "tokens": tokens,
        key + "token_type": [2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 4, 1, 1, 1, 1],
        key + "scores": [-float(i) for i in range(len(tokens))],
        key + "bos_token_id": 1, key + "eos_token_id": 2, key + "unknown_token_id": 0, key + "padding_token_id": 0,
        key + "seperator_token_id": 2, key + "add_bos_token": True, key + "add_space_prefix": True,
        key + "remove_extra_whitespaces": True,
    })
    if kind == "t5":
        m.metadata[key + "precompiled_charsmap"] = [4, 0, 0, 0, 0, 4, 0, 0, 97, 0]
    return m


if __name__ == "__main__":
    folder = sys.argv[1]
    tiny.write_all(folder)
    for name in ("bert", "nomic-bert", "modern-bert"):
        encoder(name).write(os.path.join(folder, name + ".gguf"))
    for name in ("llama", "t5", "bert"):
        with_vocabulary(name).write(os.path.join(folder, f"vocabulary_{name}.gguf"))
