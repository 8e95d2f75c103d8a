#!/usr/bin/env python3
"""ResNet-50 and BERT-base with random weights: rlx, ONNX Runtime's WebGPU and PyTorch on one GPU, in one run, results compared.

Start it in the environment of run.sh:   benchmarks/gpu/run.sh python3 benchmarks/gpu/models.py [--peer FOLDER] [--batches 1,32]
FOLDER holds the unpacked wheel onnxruntime_ep_webgpu (PyPI onnxruntime-ep-webgpu 0.4.0). Needs numpy, onnx, onnxruntime; PyTorch if there.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parents[2] / "build" / "gpu"


class Writer:
    """Nodes and weights of a graph, with running names."""

    def __init__(self, seed=1):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def weight(self, *shape, scale=None):
        name = self.name()
        scale = scale if scale is not None else (1.0 / max(1, np.prod(shape[1:]))) ** 0.5
        self.weights.append(numpy_helper.from_array((self.rng.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def constant(self, array):
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, *inputs, **attributes):
        out = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def model(self, inputs, output, path):
        graph = helper.make_graph(self.nodes, "model", inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, path)


def resnet50(batch, path):
    w = Writer()

    def conv(x, cin, cout, k, stride=1, relu=True, residual=None):
        y = w.node("Conv", x, w.weight(cout, cin, k, k), w.weight(cout, scale=0.1), kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4)
        if residual is not None:
            y = w.node("Add", y, residual)
        return w.node("Relu", y) if relu else y

    x = conv("x", 3, 64, 7, 2)
    x = w.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    width = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        mid = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            skip = conv(x, width, mid * 4, 1, stride, relu=False) if block == 0 else x
            y = conv(conv(x, width, mid, 1), mid, mid, 3, stride)
            x = conv(y, mid, mid * 4, 1, residual=skip)
            width = mid * 4
    x = w.node("Flatten", w.node("GlobalAveragePool", x))
    y = w.node("Gemm", x, w.weight(1000, 2048), w.weight(1000), transB=1)
    w.model([helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 224, 224])], y, path)
    return {"x": w.rng.standard_normal((batch, 3, 224, 224)).astype(np.float32)}


def bert(batch, path, seq=128, width=768, heads=12, layers=12):
    w = Writer()
    head = width // heads

    def linear(x, cin, cout):
        return w.node("Add", w.node("MatMul", x, w.weight(cin, cout, scale=cin**-0.5)), w.weight(cout, scale=0.02))

    def norm(x):
        return w.node("LayerNormalization", x, w.constant(np.ones(width, np.float32)), w.weight(width, scale=0.02), axis=-1, epsilon=1e-12)

    def split(x, perm):
        return w.node("Transpose", w.node("Reshape", x, w.constant(np.array([batch, seq, heads, head]))), perm=perm)

    x = norm(w.node("Add", w.node("Gather", w.weight(30522, width, scale=0.02), "tokens"), w.weight(seq, width, scale=0.02)))
    for _ in range(layers):
        q, k, v = split(linear(x, width, width), [0, 2, 1, 3]), split(linear(x, width, width), [0, 2, 3, 1]), split(linear(x, width, width), [0, 2, 1, 3])
        scores = w.node("Div", w.node("MatMul", q, k), w.constant(np.float32(head**0.5)))
        context = w.node("Transpose", w.node("MatMul", w.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = norm(w.node("Add", x, linear(w.node("Reshape", context, w.constant(np.array([batch, seq, width]))), width, width)))
        h = linear(x, width, 4 * width)
        erf = w.node("Erf", w.node("Div", h, w.constant(np.float32(2**0.5))))
        gelu = w.node("Mul", w.node("Mul", h, w.node("Add", erf, w.constant(np.float32(1)))), w.constant(np.float32(0.5)))
        x = norm(w.node("Add", x, linear(gelu, 4 * width, width)))
    w.model([helper.make_tensor_value_info("tokens", TensorProto.INT64, [batch, seq])], x, path)
    return {"tokens": w.rng.integers(0, 30000, (batch, seq)).astype(np.int64)}


def median_ms(run, runs=20):
    for _ in range(3):
        run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[len(times) // 2]


def print_steps(path, given, device, folder):
    """The kernels that take longest, by the trace."""
    trace = subprocess.run([HERE / "rlx", "trace", path, folder + "/trace.json", *given, "--device", device], capture_output=True, text=True)
    if trace.returncode != 0:
        print("rlx trace failed:", trace.stderr.strip())
        return
    events = json.load(open(folder + "/trace.json"))
    events = events["traceEvents"] if isinstance(events, dict) else events
    total = {}
    for e in events:
        if e.get("ph") == "X":
            key = (e["name"], str(e.get("args", {}).get("kernel", "")))
            n, t = total.get(key, (0, 0.0))
            total[key] = (n + 1, t + e["dur"])
    for (name, kernel), (n, t) in sorted(total.items(), key=lambda kv: -kv[1][1])[:12]:
        print(f"    {t / 1e3:9.3f} ms  {n:4} x {name} {kernel}")


def webgpu_session(path, peer):
    """ONNX Runtime with its WebGPU plug-in."""
    sys.path.insert(0, str(peer))
    import onnxruntime_ep_webgpu as ep

    try:
        ort.register_execution_provider_library("webgpu", ep.get_library_path())
    except Exception as error:  # registered already
        if "already" not in str(error).lower():
            raise
    devices = [d for d in ort.get_ep_devices() if d.ep_name == ep.get_ep_name()]
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_provider_for_devices(devices[:1], {})
    return ort.InferenceSession(path, sess_options=options)


def torch_run(path, inputs):
    """The model's nodes as PyTorch's operations in f32 on the GPU, from NumPy to NumPy."""
    import torch
    import torch.nn.functional as F

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    graph = onnx.load(path).graph
    weights = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy()) for w in graph.initializer}
    shapes = {name: tuple(w.tolist()) for name, w in weights.items() if w.dtype == torch.int64}
    weights = {name: w.cuda() for name, w in weights.items()}
    steps = []
    for node in graph.node:
        a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        steps.append((node.input, node.output[0], {
            "Conv": lambda x, w, b, a=a: F.conv2d(x, w, b, a["strides"], a["pads"][0]),
            "MaxPool": lambda x: F.max_pool2d(x, 3, 2, 1),
            "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
            "Gemm": lambda x, w, b: F.linear(x, w, b),
            "LayerNormalization": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-12),
            "Reshape": lambda x, s, shape=shapes.get(node.input[-1]): x.reshape(shape),
            "Transpose": lambda x, a=a: x.permute(a.get("perm", [])),
            "Softmax": lambda x: torch.softmax(x, -1),
            "Flatten": lambda x: x.flatten(1),
            "Gather": lambda t, i: t[i],
            "Add": torch.add, "Mul": torch.mul, "Div": torch.div, "MatMul": torch.matmul, "Relu": torch.relu, "Erf": torch.erf,
        }[node.op_type]))

    def run():
        with torch.inference_mode():
            values = {**weights, **{k: torch.from_numpy(v).cuda() for k, v in inputs.items()}}
            for names, out, step in steps:
                values[out] = step(*(values[n] for n in names))
            return values[graph.output[0].name].cpu().numpy()

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", type=pathlib.Path, help="folder with the unpacked onnxruntime_ep_webgpu")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--device", default="webgpu")
    parser.add_argument("--steps", action="store_true", help="also print which steps take longest (rlx trace)")
    args = parser.parse_args()
    worst = 0.0
    print(f"{'model':28} {'rlx ms':>10} {'ORT WebGPU ms':>14} {'ratio':>7} {'PyTorch ms':>11} {'ratio':>7}  {'largest difference from ORT CPU':>32}")
    for batch in map(int, args.batches.split(",")):
        for name, make in (("ResNet-50", resnet50), ("BERT-base, 128 tokens", bert)):
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/model.onnx"
                inputs = make(batch, path)
                given = []
                for key, value in inputs.items():
                    np.save(f"{folder}/{key}.npy", value)
                    given += ["--input", f"{key}={folder}/{key}.npy"]
                run = subprocess.run([HERE / "rlx", "run", path, *given, "--device", args.device, "--save", folder + "/out"], capture_output=True, text=True)
                if run.returncode != 0:
                    print(name, "rlx run failed:", run.stderr.strip())
                    continue
                out = np.load(next(pathlib.Path(folder, "out").glob("*.npy")))
                expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)[0]
                difference = float(np.abs(out - expected).max() / max(1e-9, np.abs(expected).max()))
                worst = max(worst, difference)
                bench = subprocess.run([HERE / "rlx", "bench", path, *given, "--device", args.device, "--json"], capture_output=True, text=True)
                ours = json.loads(bench.stdout)["median_ms"] if bench.returncode == 0 else float("nan")
                if args.steps:
                    print_steps(path, given, args.device, folder)
                peer = float("nan")
                if args.peer:
                    try:
                        session = webgpu_session(path, args.peer)
                        peer = median_ms(lambda: session.run(None, inputs))
                        del session
                    except Exception as error:
                        print("ONNX Runtime's WebGPU:", str(error)[:300])
                torch_ms = float("nan")
                try:
                    step = torch_run(path, inputs)
                    if np.abs(step() - expected).max() > 1e-3 * np.abs(expected).max():
                        print("PyTorch computes something else")
                    torch_ms = median_ms(step)
                except ImportError:
                    pass
                print(f"{name + f', batch {batch}':31} {ours:7.2f} {peer:14.2f} {peer / ours:7.2f} {torch_ms:11.2f} {torch_ms / ours:7.2f}  {difference:32.2e}",
                      flush=True)
    sys.exit(1 if worst > 1e-3 else 0)


if __name__ == "__main__":
    main()
