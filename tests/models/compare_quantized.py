#!/usr/bin/env python3
"""A model quantised with `rlx quantize` to every type that it offers: rlx and llama.cpp read the file alike, and its scores are
as near to the original's as so many bits allow.

    compare_quantized.py path/to/rlx path/to/generate_tool

`rlx quantize --type f32` unpacks each file again. rlx must find the same scores for both. llama.cpp reads the unpacked one as
rlx does; with the packed one it rounds what it multiplies to 8 bits, so that it is only near, but far nearer than a misread
block would leave it.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import peers
import tiny_models

# By type: bits of a weight, and what the scores may differ from the original's, as a root mean square; both measured.
TYPES = {
    "f32": (32, 0), "f16": (16, 0.005), "bf16": (16, 0.04), "q8_0": (8.5, 0.12), "q6_k": (6.56, 0.4), "q5_k": (5.5, 0.8),
    "q5_1": (6, 0.8), "q5_0": (5.5, 0.8), "q4_k": (4.5, 1.6), "q4_1": (5, 1.6), "q4_0": (4.5, 1.6), "iq4_nl": (4.5, 1.6),
    "iq4_xs": (4.25, 1.6), "q3_k": (3.44, 2.6), "q2_k": (2.63, 3.5),
}
UNPACKED = 1e-4  # rlx beside rlx and llama.cpp, on the same numbers
ROUNDED = 0.2  # llama.cpp with packed weights, as a root mean square
CONTEXT = 64


def quantize(tool, source, path, kind):
    done = subprocess.run([tool, "quantize", source, path, "--type", kind, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main():
    tool, scores_tool = sys.argv[1:]
    tiny_models.WIDTH, tiny_models.FFN = 256, 512  # rows of whole blocks of 256
    prompts = [np.random.default_rng(3).integers(6, tiny_models.VOCABULARY, 32).tolist()]
    with tempfile.TemporaryDirectory() as folder:
        original = os.path.join(folder, "original.gguf")
        tiny_models.llama(head=64).write(original)
        packed = {k: os.path.join(folder, k + ".gguf") for k in TYPES}
        unpacked = {k: os.path.join(folder, k + "-f32.gguf") for k in TYPES}
        reports = {}
        for kind in TYPES:
            reports[kind] = quantize(tool, original, packed[kind], kind)
            quantize(tool, packed[kind], unpacked[kind], "f32")
        files = [original, *packed.values(), *unpacked.values()]
        answers = peers.llama_cpp([{"model": f, "context": CONTEXT, "prompts": prompts, "all": True} for f in files])
        theirs = {f: peers.log_softmax(a["logits"][0]) for f, a in zip(files, answers)}

        def ours(path, device="cpu", prefill=1):
            request = {"model": path, "device": device, "context": CONTEXT, "prompts": prompts, "prefill": prefill}
            return peers.log_softmax(peers.rlx(scores_tool, **request)["scores"][0])

        def rms(a, b):
            return np.sqrt(np.mean((a - b) ** 2))
        exact, good = theirs[original], 0
        for kind, (bits, limit) in TYPES.items():
            own = ours(packed[kind])
            own_unpacked = np.abs(own - ours(unpacked[kind])).max()
            on_gpu = ours(packed[kind], "webgpu", 28)  # many rows at once, then one by one
            gpu = np.abs(on_gpu - own[-len(on_gpu):]).max()
            apart = np.abs(own - theirs[unpacked[kind]]).max()
            rounded, lost = rms(theirs[packed[kind]], theirs[unpacked[kind]]), rms(theirs[unpacked[kind]], exact)
            size = 8 * reports[kind]["bytes_after"] / (reports[kind]["bytes_before"] / 4)
            faults = [what for what, wrong in [
                ("rlx reads the packed file otherwise than the unpacked one", not own_unpacked < UNPACKED),
                ("webgpu reads the packed file otherwise than cpu", not gpu < UNPACKED),
                ("llama.cpp reads the unpacked file otherwise", not apart < UNPACKED),
                ("llama.cpp reads the packed file otherwise", not rounded < ROUNDED),
                (f"it is further from the original than {limit}", not lost <= limit),
                (f"its weights have {size:.2f} bits, not {bits}", not bits <= size < 1.06 * bits + 0.1),
            ] if wrong]
            good += not faults
            print(f"{kind:7} {size:5.2f} bits, {lost:.4f} from the original; rlx unpacked {own_unpacked:.1e}, on the GPU {gpu:.1e}, llama.cpp unpacked "
                  f"{apart:.1e}, packed {rounded:.1e}" + "".join("\n    " + f for f in faults), flush=True)
    print(f"{good} of {len(TYPES)} types agree")
    return 0 if good == len(TYPES) else 1


if __name__ == "__main__":
    sys.exit(main())
