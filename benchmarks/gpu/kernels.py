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
IMAGES, GROUPED = (16, 64, 256, 256), (64, 256, 64, 64)  # the same bytes
# By gpu_bench's name: the shape, how many gammas and betas, an operation of ONNX and its attributes.
CASES = {
    "gelu": ((N, N), 0, "Gelu", {}),
    "tanh": ((N, N), 0, "Tanh", {}),
    "add": ((N, N), 0, "Add", {}),
    "softmax last axis": ((N, N), 0, "Softmax", {"axis": 1}),
    "softmax first axis": ((N, N), 0, "Softmax", {"axis": 0}),
    "layer_norm": ((N, N), N, "LayerNormalization", {}),
    "rms_norm": ((N, N), N, "SimplifiedLayerNormalization", {}),  # ONNX Runtime's own; in ONNX since opset 23
    "instance_norm 16x64x256x256": (IMAGES, IMAGES[1], "InstanceNormalization", {}),
    "group_norm 64x256x64x64": (GROUPED, GROUPED[1], "GroupNormalization", {"num_groups": 32}),
    "matmul 1024^3": ((1024, 1024), 0, "MatMul", {}),
    "matmul 2048^3": ((2048, 2048), 0, "MatMul", {}),
    "matmul 4096^3": ((4096, 4096), 0, "MatMul", {}),
}


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
    shape, gammas, op, attributes = CASES[case]
    x, y, out = (torch.randn(shape, device="cuda") for _ in range(3))
    w, b = torch.randn(gammas, device="cuda"), torch.randn(gammas, device="cuda")
    run = {"Gelu": lambda: F.gelu(x), "Tanh": lambda: torch.tanh(x, out=out), "Add": lambda: torch.add(x, y, out=out),
           "Softmax": lambda: torch.softmax(x, attributes["axis"]),
           "LayerNormalization": lambda: F.layer_norm(x, (gammas,), w, b),
           "SimplifiedLayerNormalization": lambda: F.rms_norm(x, (gammas,), w),
           "InstanceNormalization": lambda: F.instance_norm(x, weight=w, bias=b),
           "GroupNormalization": lambda: F.group_norm(x, attributes["num_groups"], w, b),
           "MatMul": lambda: torch.matmul(x, y, out=out)}[op]
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
    shape, gammas, op, attributes = CASES[case]
    rng, nodes, weights, now = np.random.default_rng(1), [], [], "x"

    def weight(name, array):
        weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    more = []  # inputs besides the first
    if op in ("MatMul", "Add"):
        more.append(weight("w", rng.standard_normal(shape) / shape[0] ** 0.5))
    if gammas:
        more.append(weight("w", np.ones(gammas)))
    if gammas and not op.startswith("Simplified"):
        more.append(weight("b", np.zeros(gammas)))
    for i in range(length):
        nodes.append(helper.make_node(op, [now, *more], [f"v{i}"], **attributes))
        now = f"v{i}"
    nodes.append(helper.make_node("ReduceMax", [now], ["y"], keepdims=0))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return {"x": rng.standard_normal(shape).astype(np.float32)}


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
    print(f"{'case':28} {'rlx us':>10} {'of copy':>8} {'PyTorch us':>11} {'ORT WebGPU us':>14}  {'PyTorch/rlx':>11} {'ORT/rlx':>8}")
    for case in CASES:
        peers = []
        for time in (lambda: torch_us(case), lambda: onnxruntime_us(case, args.peer) if args.peer else float("nan")):
            try:
                peers.append(time())
            except Exception as error:
                print(f"{case}: {str(error)[:200]}")
                peers.append(float("nan"))
        us, of_copy = rlx_us(case)
        print(f"{case:28} {us:10.1f} {of_copy:7}% {peers[0]:11.1f} {peers[1]:14.1f}  {peers[0] / us:11.2f} {peers[1] / us:8.2f}", flush=True)


if __name__ == "__main__":
    main()
