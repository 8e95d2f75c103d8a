"""A llama in NumPy, in float64, over the dequantised weights of a GGUF file: what the numbers should be.

    numpy_llama.py MODEL.gguf ID…    prints the five likeliest next tokens
"""
import mmap
import struct
import sys

import numpy as np

SIMPLE = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, code):
        if code == 8:
            return self.text()
        if code == 9:
            inner, n = self.take("<I"), self.take("<Q")
            return [self.value(inner) for _ in range(n)]
        return self.take(SIMPLE[code])


def nibbles(codes):
    """[blocks, 16] bytes to [blocks, 32] codes: the low halves first."""
    return np.concatenate([codes & 15, codes >> 4], axis=1).astype(np.float32)


def scale_at(blocks, at):
    return blocks[:, at:at + 2].copy().view(np.float16).astype(np.float32)


def decode(data, code, sizes):
    """Values in float32, as ggml's dequantisation gives them."""
    count = int(np.prod(sizes))
    raw = np.frombuffer(data, np.uint8)
    if code == 0:
        return raw[:4 * count].view(np.float32).reshape(sizes)
    if code == 1:
        return raw[:2 * count].view(np.float16).astype(np.float32).reshape(sizes)
    if code == 14:
        return decode_q6_k(raw, count).reshape(sizes)
    bytes_of = {2: 18, 3: 20, 8: 34}
    if code not in bytes_of:
        raise SystemExit(f"ggml type {code} is not read here")
    size = bytes_of[code]
    blocks = raw[:count // 32 * size].reshape(-1, size)
    if code == 2:
        values = (nibbles(blocks[:, 2:]) - 8) * scale_at(blocks, 0)
    elif code == 3:
        values = nibbles(blocks[:, 4:]) * scale_at(blocks, 0) + scale_at(blocks, 2)
    else:
        values = blocks[:, 2:].view(np.int8).astype(np.float32) * scale_at(blocks, 0)
    return values.reshape(sizes)


def decode_q6_k(raw, count):
    blocks = raw[:count // 256 * 210].reshape(-1, 210)
    low, high, scales = blocks[:, :128], blocks[:, 128:192], blocks[:, 192:208].view(np.int8).astype(np.float32)
    out = np.empty((len(blocks), 256), np.float32)
    for half in range(2):
        for group in range(4):
            part = low[:, 64 * half + 32 * (group & 1):][:, :32] >> (0 if group < 2 else 4) & 15
            codes = (part | (high[:, 32 * half:32 * half + 32] >> 2 * group & 3) << 4).astype(np.float32) - 32
            scale = np.repeat(scales[:, 8 * half + 2 * group:][:, :2], 16, axis=1)
            out[:, 128 * half + 32 * group:][:, :32] = codes * scale
    return out * scale_at(blocks, 208)


def load(path):
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    r = Reader(data)
    magic, _version, tensors, pairs = (r.take(f) for f in ("<I", "<I", "<Q", "<Q"))
    assert magic == 0x46554747, path
    metadata = {}
    for _ in range(pairs):
        key = r.text()
        metadata[key] = r.value(r.take("<I"))
    listed = []
    for _ in range(tensors):
        name = r.text()
        sizes = [r.take("<Q") for _ in range(r.take("<I"))][::-1]
        listed.append((name, sizes, r.take("<I"), r.take("<Q")))
    alignment = metadata.get("general.alignment", 32)
    begin = -(-r.at // alignment) * alignment
    return metadata, {name: decode(memoryview(data)[begin + offset:], code, sizes) for name, sizes, code, offset in listed}


class Llama:
    def __init__(self, path, dtype=np.float64):
        self.metadata, tensors = load(path)
        self.weights = {name: t.astype(dtype) for name, t in tensors.items()}

    def get(self, key, otherwise=None):
        return self.metadata.get("llama." + key, otherwise)

    def norm(self, x, name):
        eps = self.get("attention.layer_norm_rms_epsilon")
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * self.weights[name + ".weight"]

    def rotate(self, x, head):
        """x [rows, heads, head], its pairs side by side."""
        dims = self.get("rope.dimension_count", head)
        angles = np.arange(len(x))[:, None] * self.get("rope.freq_base", 10000.0) ** (-np.arange(0, dims, 2) / dims)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = x[..., 0:dims:2], x[..., 1:dims:2]
        out = x.copy()
        out[..., 0:dims:2], out[..., 1:dims:2] = a * cos - b * sin, a * sin + b * cos
        return out

    def scores(self, ids):
        """Behind each token: [tokens, vocabulary]."""
        w = self.weights
        heads, width = self.get("attention.head_count"), self.get("embedding_length")
        kv_heads, head = self.get("attention.head_count_kv", heads), self.get("attention.key_length", width // heads)
        x, rows = w["token_embd.weight"][ids], len(ids)
        hidden = np.triu(np.full((rows, rows), -np.inf), 1)
        for i in range(self.get("block_count")):
            layer = f"blk.{i}."
            h = self.norm(x, layer + "attn_norm")
            q = self.rotate((h @ w[layer + "attn_q.weight"].T).reshape(rows, heads, head), head)
            k = self.rotate((h @ w[layer + "attn_k.weight"].T).reshape(rows, kv_heads, head), head)
            v = (h @ w[layer + "attn_v.weight"].T).reshape(rows, kv_heads, head)
            k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
            s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head) + hidden
            p = np.exp(s - s.max(axis=-1, keepdims=True))
            p /= p.sum(axis=-1, keepdims=True)
            x = x + np.einsum("hqk,khd->qhd", p, v).reshape(rows, -1) @ w[layer + "attn_output.weight"].T
            h = self.norm(x, layer + "ffn_norm")
            gate = h @ w[layer + "ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w[layer + "ffn_up.weight"].T)) @ w[layer + "ffn_down.weight"].T
        head_weight = w.get("output.weight", w["token_embd.weight"])
        return self.norm(x, "output_norm") @ head_weight.T


if __name__ == "__main__":
    behind = Llama(sys.argv[1]).scores([int(a) for a in sys.argv[2:]])[-1]
    for token in np.argsort(behind)[::-1][:5]:
        print(token, behind[token])
