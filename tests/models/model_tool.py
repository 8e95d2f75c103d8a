"""Runs model_tool (model_tool.cpp), and compares."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np


class ModelTool:
    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()

    def run(self, what, model, device, ids, *more):
        root = pathlib.Path(self.folder.name)
        (root / "ids.json").write_text(json.dumps([[int(i) for i in row] for row in ids]))
        command = [self.program, what, str(model), device, str(root / "ids.json"), str(root / "out.npy"), *more]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
        return np.load(root / "out.npy")


def cosines(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


class Checks:
    """Counts what failed: all of it is shown, not the first alone."""

    def __init__(self):
        self.failed = 0

    def expect(self, ok, text):
        print(("ok      " if ok else "FAILED  ") + text, flush=True)
        self.failed += not ok

    def close(self, what, got, want, atol):
        if got.shape != want.shape:
            return self.expect(False, f"{what}: the shape is {got.shape} instead of {want.shape}")
        difference = np.abs(got.astype(np.float64) - want).max()
        self.expect(bool(difference <= atol), f"{what}: largest difference {difference:.2g} of {np.abs(want).max():.2g}")

    def finish(self):
        sys.exit(1 if self.failed else 0)
