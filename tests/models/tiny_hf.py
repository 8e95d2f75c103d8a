#!/usr/bin/env python3
"""Tiny Hugging Face model folders with weights that follow from the tensors' names alone.

    tiny_hf.py FIXTURE FOLDER      writes FOLDER from FIXTURE's config.json and tensors.json

make_fixtures.py computed the fixture's expected results from the very same weights. NumPy alone is needed.
"""
import json
import math
import pathlib
import shutil
import struct
import sys
import zlib

import numpy as np


def uniform(name, shape):
    """Numbers in [-1, 1), exact in float32. Raw bits: NumPy promises their order for ever, that of its distributions not."""
    count = math.prod(shape)
    raw = np.random.PCG64(zlib.crc32(name.encode())).random_raw(count) if count else np.empty(0, np.uint64)
    return ((raw >> np.uint64(40)).astype(np.float64) / 2**23 - 1).reshape(shape)


def weight(name, shape):
    """Of a size that lets activations stay near one, so that no part of a model is lost in another's rounding."""
    u = uniform(name, shape)
    if name.endswith("A_log"):
        value = 0.5 + 0.5 * u
    elif name.endswith("dt_proj.bias") or name.endswith("dt_bias"):
        value = -1 + 0.5 * u
    elif len(shape) < 2:
        value = 0.2 * u if name.endswith("bias") else 1 + 0.25 * u
    elif any(part in name for part in ("embed", "wte", "wpe")):
        value = 0.7 * u
    else:
        value = u * math.sqrt(3 / shape[-1])
    return value.astype(np.float32)


def token_ids(name, count, vocabulary):
    raw = np.random.PCG64(zlib.crc32(name.encode())).random_raw(count)
    return (raw % np.uint64(vocabulary)).astype(np.int64)


DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        kind = next(k for k, t in DTYPES.items() if value.dtype == t)
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value).tobytes())


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        begin, end = (8 + size + o for o in entry["data_offsets"])
        out[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return out


def write_model(config_text, shapes, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config_text)
    write_safetensors(folder / "model.safetensors", {name: weight(name, shape) for name, shape in shapes.items()})


def write_fixture_model(fixture, folder):
    fixture = pathlib.Path(fixture)
    write_model((fixture / "config.json").read_text(), json.loads((fixture / "tensors.json").read_text()), folder)
    for extra in fixture.glob("*_config.json"):
        shutil.copy(extra, folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_fixture_model(sys.argv[1], sys.argv[2])
