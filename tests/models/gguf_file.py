"""Writes small GGUF files (version 3), for tests."""
import struct

import numpy as np

F32, F16 = 0, 1


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    raise TypeError(type(value))


def write_gguf(path, values, tensors):
    """values: metadata by full key; tensors: float32 or float16 arrays by name."""
    out = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(values))
    for key, value in values.items():
        out += text(key) + metadata(value)
    data = b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value)
        data += b"\0" * (-len(data) % 32)
        out += text(name) + struct.pack("<I", value.ndim) + struct.pack(f"<{value.ndim}Q", *reversed(value.shape))
        out += struct.pack("<IQ", F16 if value.dtype == np.float16 else F32, len(data))
        data += value.tobytes()
    out += b"\0" * (-len(out) % 32)
    with open(path, "wb") as f:
        f.write(out + data)
