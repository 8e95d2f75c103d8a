#!/usr/bin/env python3
"""Compares rlx with llama.cpp on tiny models of every architecture: the log-probabilities behind every token, read in parts
of several sizes, and 24 tokens of the likeliest continuation.

    compare_llama_cpp.py path/to/generate_tool [NAME…]

What the difference may be was measured; the next larger round number stands here. With f32 weights both compute in f32 and
llama.cpp looks GELU and SiLU up in tables of halves. It rounds what is multiplied with packed weights to 8 bits and
what is multiplied with halves to halves, rlx does not.
"""
import sys
import tempfile

import numpy as np

import peers
import tiny_models

TOLERANCES = {"q8_0": 0.2, "q4_0": 0.4, "f16": 0.02, "bf16": 0.1}  # by the type of the weights
TOLERANCE = 0.01
CONTEXT = 256
STEPS = 24


def prompts():
    rng = np.random.default_rng(7)
    # Beyond several buckets (1, 8, 32, 128 rows) and windows.
    return [rng.integers(6, tiny_models.VOCABULARY, n).tolist() for n in (3, 37, 70)]


def compare(tool, name, path, answer, tolerance):
    worst = 0.0
    lists = prompts()
    faults = []
    for prefill in (0, 1, 5, 33):
        ours = peers.rlx(tool, model=path, context=CONTEXT, prompts=lists, prefill=prefill, steps=STEPS)
        for prompt, scores, theirs in zip(lists, ours["scores"], answer["logits"]):
            expected = np.array(theirs)[len(prompt) - len(scores):]
            worst = max(worst, np.abs(peers.log_softmax(scores) - peers.log_softmax(expected)).max())
        for prompt, a, b in zip(lists, ours["greedy"], answer["greedy"]):
            behind = lambda ids: peers.rlx(tool, model=path, context=CONTEXT, prompts=[ids])["scores"][0][-1]
            fault = peers.different_at(a, b, prompt, behind, 2 * tolerance)
            if fault:
                faults.append(f"after {len(prompt)} tokens, {prefill} at once: {fault}")
    if not worst < tolerance:
        faults.append(f"log-probabilities differ by {worst:.2e}, more than {tolerance}")
    print(f"{name:20} {worst:.1e}" + "".join("\n    " + f for f in faults), flush=True)
    return not faults


def main():
    tool, names = sys.argv[1], sys.argv[2:] or list(tiny_models.MODELS)
    with tempfile.TemporaryDirectory() as folder:
        paths = tiny_models.write_all(folder, names)
        jobs = [{"model": p, "context": CONTEXT, "prompts": prompts(), "all": True, "steps": STEPS} for p in paths.values()]
        answers = peers.llama_cpp(jobs)
        good = [compare(tool, n, paths[n], a, TOLERANCES.get(n.split("_", 1)[-1], TOLERANCE)) for n, a in zip(names, answers)]
    print(f"{sum(good)} of {len(good)} models agree with llama.cpp")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
