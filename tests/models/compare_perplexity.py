#!/usr/bin/env python3
"""The perplexity that `rlx perplexity` finds for SmolLM2 and a chapter of a novel, beside llama.cpp's and float64's.

    compare_perplexity.py path/to/rlx [--device NAME]

All of them score the same tokens: the second half of each piece of a context. llama.cpp rounds what it multiplies with packed
weights to 8 bits and is within 0.5 %; a NumPy forward in float64 rounds nothing and is within 0.01 %, so that one piece of it
is worth the time.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

import numpy_llama
import peers

TEXT = os.path.join(peers.HERE, "pride_and_prejudice.txt")  # Jane Austen, 1813
CONTEXT = 256


def rlx_perplexity(tool, model, file, device, *more):
    command = [tool, "perplexity", model, "-f", file, "--ctx", str(CONTEXT), "--device", device, "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    model = peers.smollm2()
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()
    ids = peers.llama_cpp([{"model": model, "context": CONTEXT, "text": [text]}])[0]["ids"][0]
    pieces = [ids[at:at + CONTEXT] for at in range(0, len(ids) - CONTEXT + 1, CONTEXT)]
    answer = peers.llama_cpp([{"model": model, "context": CONTEXT, "prompts": pieces, "score": CONTEXT // 2, "threads": 2}])[0]
    likely = peers.log_softmax(numpy_llama.Llama(model).scores(pieces[0][:-1]))
    exact = -likely[np.arange(CONTEXT - 1), pieces[0][1:]]

    whole = rlx_perplexity(args.tool, model, TEXT, args.device)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:  # no more than the first piece
        file.write(text[:len(text) // len(pieces)])
        file.flush()
        first = rlx_perplexity(args.tool, model, file.name, args.device)

    faults = 0
    for name, ours, expected, limit in [("llama.cpp", whole, [s for piece in answer["surprises"] for s in piece], 0.005),
                                        ("float64", first, exact[CONTEXT // 2:], 0.0001)]:
        perplexity = math.exp(np.mean(expected))
        apart = abs(ours["perplexity"] / perplexity - 1)
        print(f"perplexity of {ours['tokens']} tokens: rlx {ours['perplexity']:.4f}, {name} {perplexity:.4f}, {apart:.2e} apart")
        if not apart < limit:
            print(f"    more than {limit}")
            faults += 1
        if ours["tokens"] != len(expected) or ours["context"] != CONTEXT:
            print(f"    {len(expected)} tokens of pieces of {CONTEXT} are scored there")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
