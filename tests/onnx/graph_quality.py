#!/usr/bin/env python3
"""What rlx makes of graphs as PyTorch 2 exports them: constants and shape arithmetic are folded, layouts that cancel are
gone, and what was spelled with small ops is one op again. Results are compared with ONNX Runtime's.

    graph_quality.py path/to/rlx [--filter GLOB] [--keep DIR]

A case is a model, what `rlx info --ops` must count after the passes (all ops but inputs and constants), and inputs.
"""
import argparse
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(5)
CASES = {}
LEAVES = {"constant", "input", "param", "state"}
RTOL, ATOL = 1e-3, 1e-4


def case(make):
    CASES[make.__name__] = make
    return make


def f32(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


class Model:
    """Builds a model node by node: m.Add(x, 1.0) names its result and makes initializers of arrays and numbers."""

    def __init__(self):
        self.nodes, self.inits, self.infos, self.feeds = [], [], [], {}

    def input(self, name, array, dims=None):
        self.infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                                        dims or array.shape))
        self.feeds[name] = array
        return name

    def const(self, value):
        array = value if isinstance(value, np.ndarray) else np.array(value, np.float32)
        self.inits.append(numpy_helper.from_array(array, f"c{len(self.inits)}"))
        return self.inits[-1].name

    def __getattr__(self, op):
        def add(*inputs, outputs=1, **attrs):
            names = [x if isinstance(x, str) else self.const(x) for x in inputs]
            made = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
            self.nodes.append(helper.make_node(op, names, made, name=f"/{op}_{len(self.nodes)}", **attrs))
            return made[0] if outputs == 1 else made
        return add

    def build(self, *results):
        outs = [onnx.ValueInfoProto(name=r) for r in results]
        graph = helper.make_graph(self.nodes, "main_graph", self.infos, outs, self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                  producer_name="pytorch")
        shaped = onnx.shape_inference.infer_shapes(model)
        kinds = {v.name: v.type.tensor_type.elem_type for v in shaped.graph.output}
        for out in model.graph.output:
            out.type.tensor_type.elem_type = kinds.get(out.name) or TensorProto.FLOAT
        return model


# Each case returns the model, the ops it must have after the passes, and ops of which a number is left to rlx.

@case
def conv_batch_norm_relu():
    m = Model()
    x = m.input("x", f32(2, 3, 12, 12))
    for c_in, c_out in ((3, 8), (8, 5)):
        y = m.Conv(x, f32(c_out, c_in, 3, 3, scale=0.3), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1],
                   dilations=[1, 1], group=1)
        y = m.BatchNormalization(y, f32(c_out), f32(c_out), f32(c_out, scale=0.2), np.abs(f32(c_out)) + 0.5,
                                 epsilon=1e-5, momentum=0.9)
        x = m.Relu(y)
    return m, [x], {"fused_conv_bias_act": 2}, ()


@case
def conv_batch_norm_residual():
    m = Model()
    x = m.input("x", f32(1, 4, 9, 9))
    y = m.Conv(x, f32(4, 4, 3, 3, scale=0.3), f32(4), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = m.BatchNormalization(y, f32(4), f32(4), f32(4, scale=0.2), np.abs(f32(4)) + 0.5, epsilon=1e-5)
    return m, [m.Relu(m.Add(y, x))], {"fused_conv_bias_act": 1}, ()


def erf_gelu(m, x):
    y = m.Add(m.Erf(m.Div(x, math.sqrt(2))), 1.0)
    return m.Mul(m.Mul(x, y), 0.5)


@case
def gelu_of_erf():
    m = Model()
    return m, [erf_gelu(m, m.input("x", f32(4, 33), ["batch", 33]))], {"gelu": 1}, ()


@case
def gelu_of_tanh():
    m = Model()
    x = m.input("x", f32(4, 33))
    inner = m.Mul(m.Add(x, m.Mul(m.Pow(x, 3.0), 0.044715)), math.sqrt(2 / math.pi))
    y = m.Mul(m.Mul(x, 0.5), m.Add(m.Tanh(inner), 1.0))
    return m, [y], {"gelu_approx": 1}, ()


def layer_norm(m, x, n):
    d = m.Sub(x, m.ReduceMean(x, axes=[-1]))
    variance = m.ReduceMean(m.Pow(d, 2.0), axes=[-1])
    y = m.Div(d, m.Sqrt(m.Add(variance, 1e-5)))
    return m.Add(m.Mul(y, f32(n)), f32(n))


@case
def layer_norm_in_parts():
    m = Model()
    return m, [layer_norm(m, m.input("x", f32(2, 5, 16), ["batch", "length", 16]), 16)], {"layer_norm": 1}, ()


@case
def rms_norm_in_parts():
    m = Model()
    x = m.input("x", f32(2, 5, 16))
    y = m.Mul(x, m.Reciprocal(m.Sqrt(m.Add(m.ReduceMean(m.Pow(x, 2.0), axes=[-1]), 1e-6))))
    return m, [m.Mul(f32(16), y)], {"rms_norm": 1}, ()


@case
def feed_forward():
    """Linear, gelu, linear, norm: products with what follows them."""
    m = Model()
    x = m.input("x", f32(2, 5, 16))
    y = erf_gelu(m, m.Add(f32(32), m.MatMul(x, f32(16, 32, scale=0.2))))
    y = m.Add(f32(16), m.MatMul(y, f32(32, 16, scale=0.2)))
    return m, [layer_norm(m, m.Add(y, x), 16)], {"fused_matmul_bias_act": 2, "fused_residual_ln": 1}, ()


def heads(m, x, count, size, perm):
    return m.Transpose(m.Reshape(x, i64(0, 0, count, size)), perm=perm)


@case
def scaled_dot_product_attention():
    """As torch.nn.functional.scaled_dot_product_attention exports: both sides times the root of the scale."""
    m = Model()
    b, s, h, d = 2, 6, 3, 8
    x = m.input("x", f32(b, s, h * d))
    mask = m.input("mask", np.where(RNG.random((b, 1, s, s)) < 0.2, np.float32(-1e4), np.float32(0)))
    parts = [m.Add(f32(h * d), m.MatMul(x, f32(h * d, h * d, scale=0.2))) for _ in range(3)]
    root = m.Sqrt(m.Div(1.0, m.Sqrt(m.const(float(d)))))
    q = m.Mul(heads(m, parts[0], h, d, [0, 2, 1, 3]), root)
    k = m.Mul(m.Transpose(heads(m, parts[1], h, d, [0, 2, 1, 3]), perm=[0, 1, 3, 2]), root)
    v = heads(m, parts[2], h, d, [0, 2, 1, 3])
    p = m.Softmax(m.Add(m.MatMul(q, k), mask), axis=-1)
    y = m.Reshape(m.Transpose(m.MatMul(p, v), perm=[0, 2, 1, 3]), i64(b, s, h * d))
    return m, [y], {"attention": 1, "fused_matmul_split": 1}, ("transpose", "reshape")


def rotate_half(m, x, size):
    low = m.Slice(x, i64(0), i64(size // 2), i64(3), i64(1))
    high = m.Slice(x, i64(size // 2), i64(2**63 - 1), i64(3), i64(1))
    return m.Concat(m.Neg(high), low, axis=-1)


def rotate(m, x, cos, sin, size):
    return m.Add(m.Mul(x, cos), m.Mul(rotate_half(m, x, size), sin))


@case
def rotary_of_positions():
    """Llama's rotary embedding as Hugging Face writes it: angles from positions, doubled, then cos and sin."""
    m = Model()
    b, h, s, d = 2, 3, 5, 8
    q, k = m.input("q", f32(b, h, s, d)), m.input("k", f32(b, 1, s, d))
    positions = m.input("positions", np.arange(b * s, dtype=np.int64).reshape(b, s))
    inverse = (10000.0 ** (-np.arange(0, d, 2) / d)).astype(np.float32).reshape(1, d // 2, 1)
    spread = m.Expand(inverse, i64(b, d // 2, 1))
    angles = m.MatMul(spread, m.Cast(m.Unsqueeze(positions, i64(1)), to=TensorProto.FLOAT))
    angles = m.Transpose(angles, perm=[0, 2, 1])
    both = m.Concat(angles, angles, axis=-1)
    cos, sin = (m.Unsqueeze(m.Mul(f(both), 1.0), i64(1)) for f in (m.Cos, m.Sin))
    results = [rotate(m, x, cos, sin, d) for x in (q, k)]
    return m, results, {"rope": 2, "matmul": 1, "cos": 1, "sin": 1}, ("cast", "reshape", "transpose", "expand")


@case
def rotary_of_cached_tables():
    m = Model()
    b, h, s, d, rows = 2, 3, 5, 8, 11
    x = m.input("x", f32(b, h, s, d))
    positions = m.input("positions", RNG.integers(0, rows, (b, s)).astype(np.int64))
    angles = np.outer(np.arange(rows), 10000.0 ** (-np.arange(0, d, 2) / d)).astype(np.float32)
    both = np.concatenate([angles, angles], axis=-1)
    cos, sin = (m.Unsqueeze(m.Gather(f(both), positions, axis=0), i64(1)) for f in (np.cos, np.sin))
    return m, [rotate(m, x, cos, sin, d)], {"rope": 1, "gather": 2}, ("reshape",)


@case
def shape_arithmetic():
    """View and transpose of a tensor whose sizes are not known: Shape, Gather, Concat and Reshape."""
    m = Model()
    x = m.input("x", f32(2, 6, 24), ["batch", "length", 24])
    shape = m.Shape(x)
    b, s = (m.Unsqueeze(m.Gather(shape, np.array(i, np.int64), axis=0), i64(0)) for i in (0, 1))
    half = m.Div(m.Unsqueeze(m.Gather(shape, np.array(2, np.int64), axis=0), i64(0)), i64(2))
    y = m.Transpose(m.Reshape(x, m.Concat(b, s, i64(2), half, axis=0)), perm=[0, 2, 1, 3])
    y = m.Relu(y)
    y = m.Transpose(y, perm=[0, 2, 1, 3])
    back = m.Concat(b, s, m.Mul(half, i64(2)), axis=0)
    return m, [m.Reshape(y, back)], {"relu": 1, "reshape": 2, "transpose": 2}, ()


@case
def layouts_that_cancel():
    m = Model()
    x = m.input("x", f32(2, 3, 4, 5))
    y = m.Transpose(m.Transpose(x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])
    y = m.Reshape(m.Reshape(y, i64(2, -1)), i64(2, 3, 4, 5))
    y = m.Squeeze(m.Unsqueeze(m.Identity(y), i64(1)), i64(1))
    y = m.Cast(m.Dropout(y), to=TensorProto.FLOAT)
    return m, [m.Relu(y)], {"relu": 1}, ()


@case
def constant_subgraphs():
    m = Model()
    x = m.input("x", f32(3, 8))
    w = m.Transpose(m.Mul(f32(4, 8), m.Exp(f32(4, 1))), perm=[1, 0])
    b = m.Reshape(m.Concat(f32(2), f32(2), axis=0), i64(4))
    return m, [m.Relu(m.Add(m.MatMul(x, w), b))], {"fused_matmul_bias_act": 1}, ()


def dequantized_weight(m, *shape, axis=None):
    codes = RNG.integers(-127, 128, shape).astype(np.int8)
    if axis is None:
        return m.DequantizeLinear(codes, np.array(0.013, np.float32), np.array(0, np.int8))
    n = shape[axis]
    scales = RNG.uniform(0.005, 0.02, n).astype(np.float32)
    return m.DequantizeLinear(codes, scales, np.zeros(n, np.int8), axis=axis)


def pair(m, x, scale, zero):
    scale, zero = np.array(scale, np.float32), np.array(zero, np.uint8)
    return m.DequantizeLinear(m.QuantizeLinear(x, scale, zero), scale, zero)


@case
def quantized_convolutions():
    """Static quantisation in Q/DQ form: codes from one convolution to the next, one scale per channel."""
    m = Model()
    y = pair(m, m.input("x", f32(1, 3, 10, 10)), 0.031, 128)
    for c_in, c_out in ((3, 6), (6, 4)):
        bias = m.DequantizeLinear(RNG.integers(-500, 500, c_out).astype(np.int32), np.array(0.0004, np.float32),
                                  np.array(0, np.int32))
        y = m.Conv(y, dequantized_weight(m, c_out, c_in, 3, 3, axis=0), bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        y = pair(m, m.Relu(y), 0.0173, 3)
    return m, [y], {"quantize_linear": 1, "conv_integer": 2, "elementwise_region": 2, "dequantize_linear": 1}, ()


@case
def quantized_linear_layers():
    """The first weight is transposed after it was dequantised, as nn.Linear exports it; a flatten stands between."""
    m = Model()
    y = pair(m, m.input("x", f32(4, 2, 8)), 0.031, 120)
    y = pair(m, m.Reshape(y, i64(4, 16)), 0.031, 120)
    w = m.Transpose(dequantized_weight(m, 12, 16, axis=0), perm=[1, 0])
    y = pair(m, m.Add(m.MatMul(y, w), f32(12)), 0.0371, 101)
    y = m.Gemm(y, dequantized_weight(m, 5, 12), f32(5), transB=1)
    return m, [y], {"quantize_linear": 1, "matmul_integer": 2, "elementwise_region": 2}, ("reshape",)


# ----

def reference(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def faults(rlx, name, folder):
    m, results, wanted, free = CASES[name]()
    model = m.build(*results)
    path = os.path.join(folder, f"{name}.onnx")
    onnx.save(model, path)
    told = run(rlx, "info", path, "--ops", "--json")
    if told.returncode != 0:
        yield told.stderr
        return
    info = json.loads(told.stdout)
    if "ops_after" not in info:
        yield "it is not one graph"
        return
    after = {o["op"]: o["count"] for o in info["ops_after"] if o["op"] not in LEAVES}
    left = {op: n for op, n in after.items() if op not in free}
    if left != wanted:
        before = {o["op"]: o["count"] for o in info["ops"] if o["op"] not in LEAVES}
        yield f"ops before the passes: {before}\n  after them: {left}, expected {wanted}"
    given = []
    for key, array in m.feeds.items():
        np.save(os.path.join(folder, f"{name}.{key}.npy"), array)
        given += ["--input", f"{key}={os.path.join(folder, f'{name}.{key}.npy')}"]
    out = os.path.join(folder, name)
    told = run(rlx, "run", path, *given, "--save", out)
    if told.returncode != 0:
        yield told.stderr
        return
    for key, want in zip(results, reference(model, m.feeds)):
        got = np.load(os.path.join(out, re.sub(r"[^A-Za-z0-9_.-]", "_", key) + ".npy"))
        if got.shape != want.shape or got.dtype != want.dtype:
            yield f"{key} is {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
        elif not np.allclose(got, want, rtol=RTOL, atol=ATOL):
            yield f"{key} differs from ONNX Runtime's by {np.abs(got.astype(np.float64) - want).max()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rlx")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--keep", help="a folder for the models")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        names = [n for n in CASES if fnmatch.fnmatch(n, args.filter)]
        for name in names:
            found = list(faults(args.rlx, name, folder))
            failed += bool(found)
            for fault in found:
                print(f"{name}: {fault}")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
