#!/usr/bin/env python3
"""The machine code that NVIDIA's driver made of our kernels: registers, loads, loops that were not unrolled.

The driver keeps what it compiled in ~/.cache/nvidia/GLCache. Run a program on the machine with the GPU (an empty cache first, so
that only its kernels are in it), copy that folder, and give it here:
    python3 -m pip install --target tools zstandard nvidia-cuda-nvdisasm
    PYTHONPATH=tools python3 benchmarks/gpu/disassemble.py GLCache out
Every kernel becomes out/N.sass, in the order of compilation, and a line: instructions, highest register, loads, barriers and
spills (STL). The cache has no names: tell kernels apart by their code. The format is the driver's own (seen with H200, SM90).
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import zstandard

ZSTD = b"\x28\xb5\x2f\xfd"
EXIT, NOP = b"\x4d\x79" + bytes(6), b"\x18\x79" + bytes(6)  # the first eight of an instruction's 16 bytes


def entries(data: bytes):
    for match in re.finditer(re.escape(ZSTD), data):
        try:
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[match.start() :])
        except zstandard.ZstdError:
            continue  # these four bytes by chance


def disassembled(tool: str, arch: str, code: bytes) -> str | None:
    with tempfile.NamedTemporaryFile(suffix=".raw") as raw:
        raw.write(code)
        raw.flush()
        run = subprocess.run([tool, "-b", arch, "-c", raw.name], capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def kernel_of(tool: str, arch: str, entry: bytes) -> str | None:
    """The instructions end with NOPs behind an EXIT, and start at the first place from which all of them decode."""
    end_of_main = entry.find(EXIT)
    if end_of_main < 0:
        return None
    phase = end_of_main % 16
    nops = [m.start() for m in re.finditer(re.escape(NOP), entry) if m.start() % 16 == phase]
    end = max(nops, default=end_of_main) + 16
    low, high = 0, end_of_main // 16
    while low < high:
        middle = (low + high) // 2
        if disassembled(tool, arch, entry[phase + 16 * middle : end]) is not None:
            high = middle
        else:
            low = middle + 1
    return disassembled(tool, arch, entry[phase + 16 * low : end])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=pathlib.Path, help="a copy of ~/.cache/nvidia/GLCache")
    parser.add_argument("out", type=pathlib.Path, help="folder for the listings")
    parser.add_argument("--arch", default="SM90", help="of the GPU, as nvdisasm names it (SM90)")
    parser.add_argument("--nvdisasm", help="the program; else the one of the package nvidia-cuda-nvdisasm, or in PATH")
    args = parser.parse_args()
    beside = [path for folder in sys.path for path in pathlib.Path(folder or ".").glob("nvidia/*/bin/nvdisasm")]
    tool = args.nvdisasm or (str(beside[0]) if beside else shutil.which("nvdisasm"))
    if not tool:
        print("There is no nvdisasm: install nvidia-cuda-nvdisasm, or say where it is with --nvdisasm.", file=sys.stderr)
        return 1
    files = sorted(args.cache.rglob("*.bin"))
    if not files:
        print(f"There is no driver cache (*.bin) in '{args.cache}'.", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    count = 0
    for file in files:
        for entry in entries(file.read_bytes()):
            text = kernel_of(tool, args.arch, entry)
            if not text:
                continue
            (args.out / f"{count}.sass").write_text(text)
            registers = max((int(r) for r in re.findall(r"\bR(\d+)\b", text)), default=0)
            numbers = {name: len(re.findall(rf"\b{name}\b", text)) for name in ("LDG", "STG", "LDS", "SHFL", "BAR", "STL")}
            lines = len(re.findall(r"/\*[0-9a-f]{4,}\*/", text))
            print(f"{count:4}  {lines:5} instructions  R{registers:<3} ", " ".join(f"{k} {v}" for k, v in numbers.items()))
            count += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
