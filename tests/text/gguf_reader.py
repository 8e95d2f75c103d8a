"""The metadata of a GGUF file, read with nothing but Python: the tokenizer's keys as the JSON that text_tool loads."""
import json
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, code):
        size = struct.calcsize("<" + code)
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += size
        return value

    def string(self):
        size = self.scalar("Q")
        text = bytes(self.data[self.at:self.at + size])
        self.at += size
        return text

    def value(self, kind):
        if kind == 8:
            return self.string().decode("utf-8", "replace")
        if kind == 9:
            item, count = self.scalar("I"), self.scalar("Q")
            if item in SCALARS:
                values = struct.unpack_from(f"<{count}{SCALARS[item]}", self.data, self.at)
                self.at += struct.calcsize(f"<{count}{SCALARS[item]}")
                return list(values)
            return [self.value(item) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def metadata(path):
    """All keys of the file and their values."""
    with open(path, "rb") as file:
        reader = Reader(memoryview(file.read()))
    if bytes(reader.data[:4]) != b"GGUF":
        raise ValueError(f"{path} is not a GGUF file.")
    reader.at = 4
    version, _tensors, count = reader.scalar("I"), reader.scalar("Q"), reader.scalar("Q")
    if version not in (2, 3):
        raise ValueError(f"{path} has version {version}.")
    out = {}
    for _ in range(count):
        key = reader.string().decode()
        out[key] = reader.value(reader.scalar("I"))
    return out


def vocabulary(meta):
    """rlx::GgufVocabulary as JSON."""
    names = {
        "model": "model", "pre": "pre", "tokens": "tokens", "scores": "scores", "token_type": "types", "merges": "merges",
        "bos_token_id": "bos", "eos_token_id": "eos", "eot_token_id": "eot", "eom_token_id": "eom", "unknown_token_id": "unk",
        "seperator_token_id": "sep", "padding_token_id": "pad", "mask_token_id": "mask", "add_bos_token": "add_bos",
        "add_eos_token": "add_eos", "add_sep_token": "add_sep", "add_space_prefix": "add_space_prefix",
        "remove_extra_whitespaces": "remove_extra_whitespaces", "normalizer.lowercase": "lowercase",
        "normalizer.strip_accents": "strip_accents",
    }
    out = {ours: meta[f"tokenizer.ggml.{theirs}"] for theirs, ours in names.items() if f"tokenizer.ggml.{theirs}" in meta}
    charsmap = meta.get("tokenizer.ggml.precompiled_charsmap")
    if charsmap:
        out["precompiled_charsmap"] = bytes(b & 0xFF for b in charsmap).hex()
    out["name"] = meta.get("general.name", "")
    out["architecture"] = meta.get("general.architecture", "")
    return out


def write_metadata(path, meta):
    """A GGUF file without tensors: what llama.cpp needs to load a vocabulary alone."""
    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def value(item):
        if isinstance(item, bool):
            return 7, struct.pack("<?", item)
        if isinstance(item, int):
            return 4, struct.pack("<I", item)
        if isinstance(item, float):
            return 6, struct.pack("<f", item)
        if isinstance(item, str):
            return 8, text(item)
        if isinstance(item, bytes):
            return 9, struct.pack("<IQ", 0, len(item)) + item
        kind = 8 if isinstance(item[0], str) else 6 if isinstance(item[0], float) else 5
        data = b"".join(text(i) for i in item) if kind == 8 else struct.pack(f"<{len(item)}{SCALARS[kind]}", *item)
        return 9, struct.pack("<IQ", kind, len(item)) + data

    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(meta)))
        for key, item in meta.items():
            kind, data = value(item)
            file.write(text(key) + struct.pack("<I", kind) + data)


if __name__ == "__main__":
    json.dump(vocabulary(metadata(sys.argv[1])), sys.stdout)
