"""Writes GGUF files (version 3), with numpy alone: for tests."""

import struct

import numpy as np

ALIGNMENT = 32
F32, F16, Q4_0, Q8_0, BF16 = 0, 1, 2, 8, 30


def quantize_q8_0(x):
    """Blocks of 32: an f16 scale and 32 signed bytes."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
    divisor = np.where(scale == 0, np.float32(1), scale.astype(np.float32))
    codes = np.clip(np.rint(blocks / divisor[:, None]), -127, 127).astype(np.int8)
    return b"".join(s.tobytes() + c.tobytes() for s, c in zip(scale, codes))


def quantize_q4_0(x):
    """Blocks of 32: an f16 scale and 16 bytes, the codes of elements j and j + 16 in byte j, 8 added."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)[:, 0]
    scale = (largest / -8).astype(np.float16)
    divisor = np.where(scale == 0, np.float32(1), scale.astype(np.float32))
    codes = np.clip(np.rint(blocks / divisor[:, None]) + 8, 0, 15).astype(np.uint8)
    return b"".join(s.tobytes() + (c[:16] | c[16:] << 4).tobytes() for s, c in zip(scale, codes))


def decode_q8_0(data):
    blocks = np.frombuffer(data, np.dtype([("scale", np.float16), ("codes", np.int8, 32)]))
    return blocks["scale"].astype(np.float32)[:, None] * blocks["codes"]


def decode_q4_0(data):
    blocks = np.frombuffer(data, np.dtype([("scale", np.float16), ("codes", np.uint8, 16)]))
    codes = np.concatenate([blocks["codes"] & 15, blocks["codes"] >> 4], axis=1).astype(np.float32) - 8
    return blocks["scale"].astype(np.float32)[:, None] * codes


def to_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


ENCODERS = {
    F32: lambda x: x.astype(np.float32).tobytes(),
    F16: lambda x: x.astype(np.float16).tobytes(),
    BF16: lambda x: to_bf16(x).tobytes(),
    Q8_0: quantize_q8_0,
    Q4_0: quantize_q4_0,
}
DECODERS = {
    F32: lambda data: np.frombuffer(data, np.float32),
    F16: lambda data: np.frombuffer(data, np.float16).astype(np.float32),
    BF16: lambda data: (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32),
    Q8_0: decode_q8_0,
    Q4_0: decode_q4_0,
}


def unpacked(tensors):
    """The numbers that the packed tensors stand for, as f32."""
    return {name: (DECODERS[code](ENCODERS[code](array)).reshape(array.shape), F32) for name, (array, code) in tensors.items()}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(value):
    """(type code, bytes) of a metadata value: Python's own types, lists of one of them."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return (4, struct.pack("<I", value)) if value >= 0 else (5, struct.pack("<i", value))
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, text(value)
    if isinstance(value[0], int) and not isinstance(value[0], bool):
        return 9, struct.pack("<IQ", 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    items = [value_bytes(v) for v in value]
    return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(data for _, data in items)


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(path, metadata, tensors):
    """tensors: name -> (array, type)."""
    header = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        code, data = value_bytes(value)
        header += text(key) + struct.pack("<I", code) + data
    body = b""
    for name, (array, code) in tensors.items():
        header += text(name) + struct.pack("<I", array.ndim)
        header += b"".join(struct.pack("<Q", n) for n in reversed(array.shape))
        header += struct.pack("<IQ", code, len(body))
        body += padded(ENCODERS[code](array))
    with open(path, "wb") as file:
        file.write(padded(header) + body)
