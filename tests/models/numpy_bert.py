"""BERT and Nomic BERT in float64 NumPy, from the weights of a Hugging Face folder: the oracle of src/models/encoders."""
import json
import math
import pathlib

import numpy as np

import tiny_hf

_erf = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotated(x, base):
    """x [heads, rows, size]: pairs half a head apart."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


class Encoder:
    """rows(ids) gives the hidden rows of one text."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        weights = tiny_hf.read_safetensors(folder / "model.safetensors")
        prefix = next(p for p in ("", "bert.") if p + "embeddings.word_embeddings.weight" in weights)
        self.w = {n[len(prefix):]: v.astype(np.float64) for n, v in weights.items()
                  if n.startswith(prefix) and v.dtype.kind == "f"}
        self.nomic = self.config["model_type"] == "nomic_bert"
        self.heads = self.config["n_head" if self.nomic else "num_attention_heads"]
        self.layers = self.config["n_layer" if self.nomic else "num_hidden_layers"]
        self.eps = self.config["layer_norm_epsilon" if self.nomic else "layer_norm_eps"]

    def norm(self, x, name):
        return layer_norm(x, self.w[name + ".weight"], self.w[name + ".bias"], self.eps)

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0)

    def attention(self, q, k, v):
        split = lambda x: x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)
        q, k, v = split(q), split(k), split(v)
        if self.nomic:
            q, k = rotated(q, self.config["rotary_emb_base"]), rotated(k, self.config["rotary_emb_base"])
        p = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        return (p @ v).transpose(1, 0, 2).reshape(v.shape[1], -1)

    def rows(self, ids):
        x = self.w["embeddings.word_embeddings.weight"][ids] + self.w["embeddings.token_type_embeddings.weight"][0]
        return self.nomic_rows(x) if self.nomic else self.bert_rows(x)

    def bert_rows(self, x):
        x = self.norm(x + self.w["embeddings.position_embeddings.weight"][: len(x)], "embeddings.LayerNorm")
        for i in range(self.layers):
            layer = f"encoder.layer.{i}."
            q, k, v = (self.linear(x, f"{layer}attention.self.{n}") for n in ("query", "key", "value"))
            x = self.norm(x + self.linear(self.attention(q, k, v), layer + "attention.output.dense"),
                          layer + "attention.output.LayerNorm")
            wide = gelu(self.linear(x, layer + "intermediate.dense"))
            x = self.norm(x + self.linear(wide, layer + "output.dense"), layer + "output.LayerNorm")
        return x

    def nomic_rows(self, x):
        x = self.norm(x, "emb_ln")
        for i in range(self.layers):
            layer = f"encoder.layers.{i}."
            q, k, v = np.split(self.linear(x, layer + "attn.Wqkv"), 3, axis=1)
            x = self.norm(x + self.linear(self.attention(q, k, v), layer + "attn.out_proj"), layer + "norm1")
            wide = self.linear(x, layer + "mlp.fc11") * silu(self.linear(x, layer + "mlp.fc12"))
            x = self.norm(x + self.linear(wide, layer + "mlp.fc2"), layer + "norm2")
        return x


def pooled(rows, how="mean", unit=True):
    v = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}[how]
    return v / max(np.linalg.norm(v), 1e-12) if unit else v
