#!/usr/bin/env python3
"""Compares rlx with llama.cpp on tiny models of every architecture: the log-probabilities behind every token, read in parts
of several sizes, and 24 tokens of the likeliest continuation.

    compare_llama_cpp.py path/to/generate_tool [NAME…]

llama.cpp rounds what it multiplies with packed weights to 8 bits and what it multiplies with halves to halves; rlx computes
in f32. So that such a model can be compared to what f32 is good for, llama.cpp gets the same numbers as f32. Keys and
values as halves or q8_0 are compared with llama.cpp's own of that type, which rounds what it multiplies with them, too: rlx
may be no further from the f32 cache than that is.
"""
import sys
import tempfile

import numpy as np

import peers
import tiny_models

# What the difference may be was measured; the next larger round number stands here. llama.cpp looks GELU up in a table of
# halves, which all of the larger ones come from.
TOLERANCE = 1e-4
GELU = {"gemma2": 0.005, "gemma3": 0.01, "gpt2": 0.01, "starcoder2": 0.01}
CACHES = {"f16": 0.005, "q8_0": 0.1}
WITH_CACHES = ["qwen3", "gemma2", "gemma3"]  # heads of 32
CONTEXT = 256
STEPS = 24


def prompts():
    rng = np.random.default_rng(7)
    # Beyond several buckets (1, 8, 32, 128 rows) and windows.
    return [rng.integers(6, tiny_models.VOCABULARY, n).tolist() for n in (3, 37, 70)]


def f32_tolerance(name):
    return GELU.get(name, TOLERANCE)


def job(path, cache="f32", **more):
    return {"model": path, "context": CONTEXT, "prompts": prompts(), "all": True, "steps": STEPS, "cache": cache.upper(), **more}


def distance(lists, ours, theirs):
    worst = 0.0
    for prompt, scores, expected in zip(lists, ours, theirs):
        expected = np.array(expected)[len(prompt) - len(scores):]
        worst = max(worst, np.abs(peers.log_softmax(scores) - peers.log_softmax(expected)).max())
    return worst


def compare(tool, name, path, cache, answer, tolerance, exact=None):
    """`exact`: what llama.cpp answers where it rounds nothing; rlx may be no further from that than `answer` is."""
    worst, worst_exact = 0.0, 0.0
    lists = prompts()
    faults = []
    for prefill in (0, 1, 5, 33):
        ours = peers.rlx(tool, model=path, context=CONTEXT, cache=cache, prompts=lists, prefill=prefill, steps=STEPS)
        worst = max(worst, distance(lists, ours["scores"], answer["logits"]))
        if exact:
            worst_exact = max(worst_exact, distance(lists, ours["scores"], exact["logits"]))
        for prompt, a, b in zip(lists, ours["greedy"], answer["greedy"]):
            behind = lambda ids: peers.rlx(tool, model=path, context=CONTEXT, cache=cache, prompts=[ids])["scores"][0][-1]
            fault = peers.different_at(a, b, prompt, behind, 2 * tolerance)
            if fault:
                faults.append(f"after {len(prompt)} tokens, {prefill} at once: {fault}")
    if not worst < tolerance:
        faults.append(f"log-probabilities differ by {worst:.2e}, more than {tolerance}")
    note = ""
    if exact:
        theirs = distance(lists, answer["logits"], exact["logits"])
        note = f"; from f32 {worst_exact:.1e}, llama.cpp {theirs:.1e}"
        if not worst_exact <= theirs + f32_tolerance(name):
            faults.append("llama.cpp is nearer to f32")
    print(f"{name:20} {cache:5} {worst:.1e}{note}" + "".join("\n    " + f for f in faults), flush=True)
    return not faults


def main():
    tool, names = sys.argv[1], sys.argv[2:] or list(tiny_models.MODELS)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as f32_folder:
        paths = tiny_models.write_all(folder, names)
        f32_paths = tiny_models.write_all(f32_folder, names, packed=False)
        cached = [(n, c) for n in names if n in WITH_CACHES for c in CACHES]
        answers = peers.llama_cpp([job(f32_paths[n]) for n in names] + [job(paths[n], c, flash=c == "q8_0") for n, c in cached])
        exact = dict(zip(names, answers))
        good = [compare(tool, n, paths[n], "f32", exact[n], f32_tolerance(n)) for n in names]
        good += [compare(tool, n, paths[n], c, a, CACHES[c], exact[n]) for (n, c), a in zip(cached, answers[len(names):])]
    print(f"{sum(good)} of {len(good)} agree with llama.cpp")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
