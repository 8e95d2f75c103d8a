"""Tiny models of every architecture, with weights that depend on the tensors' names alone, as GGUF files that llama.cpp
reads too.  Usage: tiny_models.py FOLDER [NAME…]

With RLX_SMALLEST in the environment they have a layer or two, packed, of a few kilobytes: seeds for a fuzzer."""

import os
import sys
import zlib

import numpy as np

import gguf_writer as gguf

SMALLEST = "RLX_SMALLEST" in os.environ
WIDTH, HEADS, KV_HEADS, HEAD, FFN, VOCABULARY, CONTEXT = (32, 2, 1, 16, 32, 16, 32) if SMALLEST else (64, 4, 2, 16, 96, 96, 256)


def random(name, sizes, scale):
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(sizes) * scale


class Model:
    def __init__(self, architecture, layers, quantized=None):
        if SMALLEST:
            layers, quantized = layers // 2, gguf.Q4_0 if quantized is None else quantized
        self.architecture, self.layers, self.quantized = architecture, layers, quantized
        self.tensors = {}
        self.metadata = {"general.architecture": architecture, "general.name": "tiny " + architecture}
        self.set(block_count=layers, context_length=CONTEXT, embedding_length=WIDTH, feed_forward_length=FFN,
                 vocab_size=VOCABULARY)
        self.set(**{"attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS})
        tokens = ["<s>", "</s>", "Ċ", "Ġ", "<unk>", "<|endoftext|>"]
        tokens += [chr(97 + i % 26) + "abcd"[i // 26] * (i // 26) for i in range(VOCABULARY - len(tokens))]
        self.metadata.update({
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [3, 3] + [1] * (VOCABULARY - 2),
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.bos_token_id": 0,
            "tokenizer.ggml.eos_token_id": 1,
        })

    def set(self, **values):
        for key, value in values.items():
            self.metadata[self.architecture + "." + key] = value

    def add(self, name, sizes, scale=1.0, center=0.0, code=gguf.F32):
        self.tensors[name] = (random(name, sizes, scale) + center, code)

    def matrix(self, name, rows, columns, experts=None):
        """Packed where its rows are whole blocks."""
        sizes = (rows, columns) if experts is None else (experts, rows, columns)
        code = self.quantized if self.quantized is not None and columns % 32 == 0 else gguf.F32
        self.add(name + ".weight", sizes, 1.2 / np.sqrt(columns), code=code)

    def norm(self, name, size=None, bias=False, center=1.0):
        size = size or WIDTH
        self.add(name + ".weight", (size,), 0.1, center)
        if bias:
            self.add(name + ".bias", (size,), 0.1)

    def bias(self, name, size):
        self.add(name + ".bias", (size,), 0.3)

    def ends(self, bias=False, head=True):
        self.matrix("token_embd", VOCABULARY, WIDTH)
        self.norm("output_norm", bias=bias)
        if head:
            self.add("output.weight", (VOCABULARY, WIDTH), 3 / np.sqrt(WIDTH))

    def attention(self, layer, head=HEAD, bias=False, norms=False, fused=False, queries=1):
        wide, narrow = HEADS * head, KV_HEADS * head
        parts = {"attn_qkv": wide + 2 * narrow} if fused else {"attn_q": wide * queries, "attn_k": narrow, "attn_v": narrow}
        for name, rows in parts.items():
            self.matrix(layer + name, rows, WIDTH)
            if bias:
                self.bias(layer + name, rows)
        if norms:
            self.norm(layer + "attn_q_norm", head)
            self.norm(layer + "attn_k_norm", head)
        self.matrix(layer + "attn_output", WIDTH, wide)

    def feed_forward(self, layer, gate=True, bias=False, up=None):
        for name, rows, columns in [("ffn_gate", FFN, WIDTH), ("ffn_up", up or FFN, WIDTH), ("ffn_down", WIDTH, FFN)]:
            if name == "ffn_gate" and not gate:
                continue
            self.matrix(layer + name, rows, columns)
            if bias:
                self.bias(layer + name, rows)

    def experts(self, layer, count=4, size=64):
        self.add(layer + "ffn_gate_inp.weight", (count, WIDTH), 2 / np.sqrt(WIDTH))
        self.matrix(layer + "ffn_gate_exps", size, WIDTH, count)
        self.matrix(layer + "ffn_up_exps", size, WIDTH, count)
        self.matrix(layer + "ffn_down_exps", WIDTH, size, count)

    def write(self, path, packed=True):
        gguf.write(path, self.metadata, self.tensors if packed else gguf.unpacked(self.tensors))


def llama(architecture="llama", quantized=None, norms=False, bias=False, moe=False, head=HEAD, tied=False):
    m = Model(architecture, 3, quantized)
    m.set(**{"attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": head, "rope.freq_base": 1000.0,
             "attention.key_length": head, "attention.value_length": head})
    m.ends(head=not tied)
    if moe:
        m.set(expert_count=4, expert_used_count=2, expert_feed_forward_length=64)
        if architecture == "llama":
            m.set(feed_forward_length=64)
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm")
        m.attention(layer, head, norms=norms)
        if bias:
            for name, size in [("attn_q", HEADS * head), ("attn_k", KV_HEADS * head), ("attn_v", KV_HEADS * head)]:
                m.bias(layer + name, size)
        m.norm(layer + "ffn_norm")
        m.experts(layer) if moe else m.feed_forward(layer)
    return m


def scaled(kind):
    m = llama()
    if kind == "llama3":
        m.tensors["rope_freqs.weight"] = (np.linspace(1, 8, HEAD // 2), gguf.F32)
    elif kind == "linear":
        m.set(**{"rope.scaling.type": "linear", "rope.scaling.factor": 2.5})
    else:
        m.set(**{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64})
    return m


def gemma(architecture):
    m = Model(architecture, 4)
    m.set(**{"attention.layer_norm_rms_epsilon": 1e-6, "attention.key_length": 32, "attention.value_length": 32,
             "attention.sliding_window": 8, "rope.freq_base": 1000.0, "rope.dimension_count": 32})
    if architecture == "gemma2":
        m.set(attn_logit_softcapping=5.0, final_logit_softcapping=10.0)
    else:
        m.set(**{"attention.sliding_window_pattern": 3, "rope.freq_base": 100000.0, "rope.scaling.type": "linear",
                 "rope.scaling.factor": 2.0})
    m.ends(head=False)
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm")
        m.attention(layer, 32, norms=architecture == "gemma3")
        m.norm(layer + "post_attention_norm", center=3.0)
        m.norm(layer + "ffn_norm")
        m.feed_forward(layer)
        m.norm(layer + "post_ffw_norm", center=3.0)
    return m


def phi3(original):
    m = Model("phi3", 3)
    m.set(**{"attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": HEAD, "rope.freq_base": 1000.0,
             "rope.scaling.original_context_length": original, "rope.scaling.attn_factor": 1.19})
    m.ends()
    m.tensors["rope_factors_short.weight"] = (np.linspace(1, 1.5, HEAD // 2), gguf.F32)
    m.tensors["rope_factors_long.weight"] = (np.linspace(1, 20, HEAD // 2), gguf.F32)
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm")
        m.attention(layer, fused=True)
        m.norm(layer + "ffn_norm")
        m.feed_forward(layer, gate=False, up=2 * FFN)
    return m


def gpt2(architecture):
    m = Model(architecture, 3)
    m.set(**{"attention.layer_norm_epsilon": 1e-5})
    if architecture == "gpt2":
        m.set(**{"attention.head_count_kv": HEADS})
        m.matrix("position_embd", CONTEXT, WIDTH)
    else:
        m.set(**{"rope.dimension_count": HEAD, "rope.freq_base": 1000.0})
    m.ends(bias=True)
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm", bias=True)
        if architecture == "gpt2":
            m.matrix(layer + "attn_qkv", 3 * WIDTH, WIDTH)
            m.bias(layer + "attn_qkv", 3 * WIDTH)
            m.matrix(layer + "attn_output", WIDTH, WIDTH)
        else:
            m.attention(layer, bias=True)
        m.bias(layer + "attn_output", WIDTH)
        m.norm(layer + "ffn_norm", bias=True)
        m.feed_forward(layer, gate=False, bias=True)
    return m


def mamba():
    m = Model("mamba", 3)
    inner, state, rank, kernel = 2 * WIDTH, 8, 4, 4
    m.set(**{"attention.head_count": 0, "attention.head_count_kv": 0, "feed_forward_length": 0,
             "attention.layer_norm_rms_epsilon": 1e-5, "ssm.conv_kernel": kernel, "ssm.inner_size": inner,
             "ssm.state_size": state, "ssm.time_step_rank": rank})
    m.ends()
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm")
        m.matrix(layer + "ssm_in", 2 * inner, WIDTH)
        m.add(layer + "ssm_conv1d.weight", (inner, kernel), 0.5)
        m.bias(layer + "ssm_conv1d", inner)
        m.matrix(layer + "ssm_x", rank + 2 * state, inner)
        m.add(layer + "ssm_dt.weight", (inner, rank), 0.5)
        m.bias(layer + "ssm_dt", inner)
        m.tensors[layer + "ssm_a"] = (-np.exp(random(layer + "ssm_a", (inner, state), 0.5)), gguf.F32)
        m.add(layer + "ssm_d", (inner,), 0.5)
        m.matrix(layer + "ssm_out", WIDTH, inner)
    return m


def qwen3next():
    m = Model("qwen3next", 4)
    head, state, keys, values, kernel = 32, 16, 2, 4, 4
    inner = values * state
    m.set(**{"attention.layer_norm_rms_epsilon": 1e-6, "attention.key_length": head, "attention.value_length": head,
             "rope.dimension_count": 8, "rope.freq_base": 1000.0, "ssm.conv_kernel": kernel, "ssm.inner_size": inner,
             "ssm.state_size": state, "ssm.time_step_rank": values, "ssm.group_count": keys,
             "full_attention_interval": 2, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 64,
             "expert_shared_feed_forward_length": 32})
    m.ends()
    for i in range(m.layers):
        layer = f"blk.{i}."
        m.norm(layer + "attn_norm")
        if i % 2 == 1:
            m.attention(layer, head, norms=True, queries=2)
        else:
            mixed = 2 * keys * state + inner
            m.matrix(layer + "attn_qkv", mixed, WIDTH)
            m.matrix(layer + "attn_gate", inner, WIDTH)
            m.add(layer + "ssm_conv1d.weight", (mixed, kernel), 0.5)
            m.bias(layer + "ssm_dt", values)
            m.tensors[layer + "ssm_a"] = (-np.exp(random(layer + "ssm_a", (values,), 0.5)), gguf.F32)
            m.matrix(layer + "ssm_ba", 2 * values, WIDTH)
            m.norm(layer + "ssm_norm", state)
            m.matrix(layer + "ssm_out", WIDTH, inner)
        m.norm(layer + "post_attention_norm")
        m.experts(layer)
        m.add(layer + "ffn_gate_inp_shexp.weight", (WIDTH,), 1 / np.sqrt(WIDTH))
        m.matrix(layer + "ffn_gate_shexp", 32, WIDTH)
        m.matrix(layer + "ffn_up_shexp", 32, WIDTH)
        m.matrix(layer + "ffn_down_shexp", WIDTH, 32)
    return m


MODELS = {
    "llama": llama,
    "llama_f16": lambda: llama(quantized=gguf.F16, tied=True),
    "llama_bf16": lambda: llama(quantized=gguf.BF16),
    "llama_q8_0": lambda: llama(quantized=gguf.Q8_0),
    "llama_q4_0": lambda: llama(quantized=gguf.Q4_0),
    "llama_rope_llama3": lambda: scaled("llama3"),
    "llama_rope_linear": lambda: scaled("linear"),
    "llama_rope_yarn": lambda: scaled("yarn"),
    "mixtral": lambda: llama(moe=True),
    "mixtral_q8_0": lambda: llama(moe=True, quantized=gguf.Q8_0),
    "qwen2": lambda: llama("qwen2", bias=True),
    "qwen3": lambda: llama("qwen3", norms=True, head=32, tied=True),
    "qwen3moe": lambda: llama("qwen3moe", norms=True, head=32, moe=True),
    "qwen3moe_f16": lambda: llama("qwen3moe", norms=True, head=32, moe=True, quantized=gguf.F16),
    "gemma2": lambda: gemma("gemma2"),
    "gemma3": lambda: gemma("gemma3"),
    "phi3_short": lambda: phi3(4096),
    "phi3_long": lambda: phi3(128),
    "gpt2": lambda: gpt2("gpt2"),
    "starcoder2": lambda: gpt2("starcoder2"),
    "mamba": mamba,
    "qwen3next": qwen3next,
}


def write_all(folder, names=None, packed=True):
    """name -> path. Not packed: the same numbers as f32."""
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for name in names or MODELS:
        paths[name] = os.path.join(folder, name + ".gguf")
        MODELS[name]().write(paths[name], packed)
    return paths


if __name__ == "__main__":
    for path in write_all(sys.argv[1], sys.argv[2:]).values():
        print(path)
