#!/usr/bin/env python3
"""Single operations on 256 MiB tensors, and products: rlx (gpu_bench), PyTorch and ONNX Runtime's WebGPU on one GPU, in one run.

Start it in the environment of run.sh:   benchmarks/gpu/run.sh python3 benchmarks/gpu/kernels.py [--peer FOLDER]
FOLDER as for models.py. A time of ONNX Runtime is the difference between a long and a short chain of operations, by how many more the long one has:
transfers cancel out.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

N = 8192  # a side of a tensor of 256 MiB
CASES = ["gelu", "tanh", "add", "softmax last axis", "softmax first axis", "layer_norm", "matmul 1024^3", "matmul 2048^3", "matmul 4096^3"]


def rlx_us(case):
    """Microseconds, and which part of a copy's bandwidth that is."""
    out = subprocess.run([models.HERE / "gpu_bench", case], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        row = re.match(r"(.+?)\s{2,}([0-9.]+)\s+[0-9.]+\s+[0-9.]+\s+([0-9]+)%$", line)
        if row and row[1] == case:
            return float(row[2]), int(row[3])
    raise SystemExit(f"gpu_bench has no case '{case}'.")


def torch_us(case):
    import torch
    import torch.nn.functional as F

    torch.backends.cuda.matmul.allow_tf32 = False
    side = int(case.split()[1][:-2]) if case.startswith("matmul") else N
    x, y, out = (torch.randn(side, side, device="cuda") for _ in range(3))
    w, b = torch.randn(N, device="cuda"), torch.randn(N, device="cuda")
    run = {"gelu": lambda: F.gelu(x), "tanh": lambda: torch.tanh(x, out=out), "add": lambda: torch.add(x, y, out=out),
           "softmax last axis": lambda: torch.softmax(x, 1), "softmax first axis": lambda: torch.softmax(x, 0),
           "layer_norm": lambda: F.layer_norm(x, (N,), w, b)}.get(case, lambda: torch.matmul(x, y, out=out))
    for _ in range(5):
        run()
    times = []
    for _ in range(20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[10]


def chain(case, length, path):
    """An ONNX model of `length` operations after each other that gives one number back."""
    side = int(case.split()[1][:-2]) if case.startswith("matmul") else N
    rng, nodes, weights, now = np.random.default_rng(1), [], [], "x"

    def weight(name, array):
        weights.append(numpy_helper.from_array(array.astype(np.float32), name))

    if case.startswith("matmul") or case == "add":
        weight("w", rng.standard_normal((side, side)) / side**0.5)
    if case == "layer_norm":
        weight("w", np.ones(N))
        weight("b", np.zeros(N))
    for i in range(length):
        op, inputs, attributes = {
            "gelu": ("Gelu", [now], {}), "tanh": ("Tanh", [now], {}), "add": ("Add", [now, "w"], {}),
            "softmax last axis": ("Softmax", [now], {"axis": 1}), "softmax first axis": ("Softmax", [now], {"axis": 0}),
            "layer_norm": ("LayerNormalization", [now, "w", "b"], {})}.get(case, ("MatMul", [now, "w"], {}))
        nodes.append(helper.make_node(op, inputs, [f"v{i}"], **attributes))
        now = f"v{i}"
    nodes.append(helper.make_node("ReduceMax", [now], ["y"], keepdims=0))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [side, side])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return {"x": rng.standard_normal((side, side)).astype(np.float32)}


def onnxruntime_us(case, peer):
    times, lengths = [], (8, 24) if case.startswith("matmul") or "first" in case else (8, 136)
    for length in lengths:
        with tempfile.TemporaryDirectory() as folder:
            inputs = chain(case, length, f"{folder}/m.onnx")
            session = models.webgpu_session(f"{folder}/m.onnx", peer)
            times.append(models.median_ms(lambda: session.run(None, inputs), runs=7) * 1e3)
            del session
    return (times[1] - times[0]) / (lengths[1] - lengths[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", type=pathlib.Path, help="folder with the unpacked onnxruntime_ep_webgpu")
    args = parser.parse_args()
    print(f"{'case':20} {'rlx us':>10} {'of copy':>8} {'PyTorch us':>11} {'ORT WebGPU us':>14}  {'PyTorch/rlx':>11} {'ORT/rlx':>8}")
    for case in CASES:
        peers = []
        for time in (lambda: torch_us(case), lambda: onnxruntime_us(case, args.peer) if args.peer else float("nan")):
            try:
                peers.append(time())
            except Exception as error:
                print(f"{case}: {str(error)[:200]}")
                peers.append(float("nan"))
        us, of_copy = rlx_us(case)
        print(f"{case:20} {us:10.1f} {of_copy:7}% {peers[0]:11.1f} {peers[1]:14.1f}  {peers[0] / us:11.2f} {peers[1] / us:8.2f}", flush=True)


if __name__ == "__main__":
    main()
