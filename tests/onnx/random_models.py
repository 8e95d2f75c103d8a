"""Random ONNX models beside onnxruntime. Every value is an output, so that a wrong node is found at once; or not, with --ends.

usage: random_models.py RLX [--device NAME] [--count N] [--seed N] [--ends] [--large] [--show N]

random_graph.py holds the graph under construction, this file and random_ops.py make single ops, random_layers.py layers and blocks of networks.

A model that fails is shrunk (nodes that others do not need are dropped while it still fails) and printed with its seed and with what
ONNX's implementation in NumPy makes of it: not every difference is our fault.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import random_layers
import random_ops
from random_graph import OPS, Model, elem, op, reads, session


@op
def unary(m):
    x = m.pick()
    kind = m.rng.choice(["Abs", "Neg", "Tanh", "Sigmoid", "Relu", "Exp", "Sin", "Cos", "Floor", "Ceil", "Erf", "Sign", "Elu", "Selu",
                         "Softplus", "Softsign", "HardSigmoid", "LeakyRelu", "Round", "Atan", "HardSwish", "Celu", "Mish"])
    if kind in ("Mish",) and m.opset < 18:
        kind = "Tanh"
    if kind == "HardSwish" and m.opset < 14:
        kind = "Tanh"
    if kind == "Exp":
        (x,) = m.node("Tanh", [x], [m.values[x]])
    m.node(str(kind), [x], [m.values[x]])


@op
def bounded(m):
    """Functions with a domain: of |x| + 1, or of tanh(x)."""
    x = m.pick()
    if m.rng.random() < 0.5:
        (a,) = m.node("Abs", [x], [m.values[x]])
        (a,) = m.node("Add", [a, m.constant(np.float32(1))], [m.values[x]])
        m.node(str(m.rng.choice(["Sqrt", "Log", "Reciprocal", "Acosh"])), [a], [m.values[x]])
    else:
        (a,) = m.node("Tanh", [x], [m.values[x]])
        (a,) = m.node("Mul", [a, m.constant(np.float32(0.9))], [m.values[x]])
        m.node(str(m.rng.choice(["Asin", "Acos", "Atanh", "Asinh", "Sinh", "Cosh", "Tan"])), [a], [m.values[x]])


def broadcast_partner(m, x):
    shape = list(m.shape_of(x))
    for i in range(len(shape)):
        if m.rng.random() < 0.3:
            shape[i] = 1
    drop = int(m.rng.integers(0, len(shape) + 1)) if m.rng.random() < 0.4 else 0
    return m.operand(tuple(shape[drop:]), m.values[x][0])


@op
def binary(m):
    x = m.pick((np.float32, np.int64, np.int32))
    y = broadcast_partner(m, x)
    kind = str(m.rng.choice(["Add", "Sub", "Mul", "Max", "Min"]))
    pair = [x, y] if m.rng.random() < 0.5 else [y, x]
    dtype, shape = m.values[x]
    (z,) = m.node(kind, pair, [(dtype, shape)])
    if kind == "Mul" and dtype == np.float32:
        m.node("Tanh", [z], [(dtype, shape)])


@op
def divide(m):
    x = m.pick()
    y = broadcast_partner(m, x)
    shape = m.values[y][1] if y in m.values else m.initializers[y].shape
    (a,) = m.node("Abs", [y], [(np.float32, shape)])
    (a,) = m.node("Add", [a, m.constant(np.float32(0.5))], [(np.float32, shape)])
    m.node("Div", [x, a], [m.values[x]])


@op
def compare_where(m):
    x = m.pick((np.float32, np.int64))
    y = broadcast_partner(m, x)
    kind = str(m.rng.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]))
    (c,) = m.node(kind, [x, y], [(bool, m.shape_of(x))])
    if m.rng.random() < 0.3:
        (c,) = m.node("Not", [c], [m.values[c]])
    m.node("Where", [c, x, y], [m.values[x]])


@op
def logic(m):
    x = m.pick((bool,))
    if x:
        y = m.operand(m.shape_of(x), bool)
        m.node(str(m.rng.choice(["And", "Or", "Xor"])), [x, y], [m.values[x]])


@op
def cast(m):
    x = m.pick((np.float32, np.int64, np.int32, bool))
    to = m.rng.choice([np.float32, np.int64, np.int32])
    m.node("Cast", [x], [(to, m.shape_of(x))], to=elem(to))


@op
def matmul(m):
    x = m.pick(min_rank=1)
    shape = m.shape_of(x)
    n = m.size(6)
    batch = shape[:-2] if m.rng.random() < 0.3 else ()
    w = m.operand((*batch, shape[-1], n), np.float32)
    (y,) = m.node("MatMul", [x, w], [(np.float32, (*shape[:-1], n) if len(shape) > 1 or not batch else (*batch, n))])
    if m.rng.random() < 0.6:
        (y,) = m.node("Add", [y, m.operand((n,), np.float32)], [m.values[y]])
    m.node("Tanh", [y], [m.values[y]])


@op
def gemm(m):
    x = m.pick(min_rank=2)
    if x is None or len(m.shape_of(x)) != 2:
        return
    a, b = m.shape_of(x)
    trans_a, trans_b = int(m.rng.integers(0, 2)), int(m.rng.integers(0, 2))
    k, rows = (a, b) if trans_a else (b, a)
    n = m.size(6)
    w = m.operand((n, k) if trans_b else (k, n), np.float32)
    bias = [m.operand((n,), np.float32)] if m.rng.random() < 0.7 else []
    (y,) = m.node("Gemm", [x, w, *bias], [(np.float32, (rows, n))], transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
    m.node("Tanh", [y], [m.values[y]])


@op
def transpose(m):
    x = m.pick((np.float32, np.int64, np.int32, bool), 1)
    perm = [int(p) for p in m.rng.permutation(len(m.shape_of(x)))]
    dtype, shape = m.values[x]
    m.node("Transpose", [x], [(dtype, [shape[p] for p in perm])], perm=perm)


@op
def reshape(m):
    x = m.pick((np.float32, np.int64), 1)
    dtype, shape = m.values[x]
    count = int(np.prod(shape))
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    first = int(m.rng.choice(divisors))
    target = [first, count // first]
    written = list(target)
    if m.rng.random() < 0.5:
        written[int(m.rng.integers(0, 2))] = -1
    m.node("Reshape", [x, m.constant(np.array(written, np.int64))], [(dtype, target)])


@op
def reshape_by_shape(m):
    """Exporters' way: Shape, Gather, Concat, Reshape."""
    x = m.pick(min_rank=2)
    dtype, shape = m.values[x]
    (s,) = m.node("Shape", [x], [(np.int64, (len(shape),))])
    (first,) = m.node("Gather", [s, m.constant(np.array([0], np.int64))], [(np.int64, (1,))], axis=0)
    (target,) = m.node("Concat", [first, m.constant(np.array([-1], np.int64))], [(np.int64, (2,))], axis=0)
    m.node("Reshape", [x, target], [(dtype, (shape[0], int(np.prod(shape[1:]))))])


@op
def squeeze_unsqueeze(m):
    x = m.pick((np.float32, np.int64))
    dtype, shape = m.values[x]
    if len(shape) > 3:
        return
    axis = int(m.rng.integers(0, len(shape) + 1))
    (y,) = m.node("Unsqueeze", [x, m.constant(np.array([axis], np.int64))], [(dtype, (*shape[:axis], 1, *shape[axis:]))])
    if m.rng.random() < 0.5:
        m.node("Squeeze", [y, m.constant(np.array([axis], np.int64))], [(dtype, shape)])


@op
def concat(m):
    x = m.pick((np.float32, np.int64), 1)
    axis = m.axis(x)
    dtype, shape = m.values[x]
    other = list(shape)
    other[axis] = int(m.rng.integers(1, 4))
    result = list(shape)
    result[axis] += other[axis]
    m.node("Concat", [x, m.operand(tuple(other), dtype)], [(dtype, result)], axis=axis)


@op
def slice_(m):
    x = m.pick((np.float32, np.int64, np.int32), 1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    size = shape[axis]
    start, end = int(m.rng.integers(-size - 1, size + 2)), int(m.rng.choice([-1, size, 2**31 - 1, 2**63 - 1, size // 2]))
    step = int(m.rng.choice([1, 1, 1, 2, -1, -2]))
    length = len(range(size)[slice(start, end, step)])
    if length == 0:
        return
    result = list(shape)
    result[axis] = length
    arrays = [np.array([v], np.int64) for v in (start, end, axis, step)]
    m.node("Slice", [x, *[m.constant(a) for a in arrays]], [(dtype, result)])


@op
def split(m):
    x = m.pick((np.float32, np.int64), 1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    if shape[axis] < 2:
        return
    first = int(m.rng.integers(1, shape[axis]))
    parts = [first, shape[axis] - first]
    shapes = []
    for p in parts:
        s = list(shape)
        s[axis] = p
        shapes.append((dtype, s))
    m.node("Split", [x, m.constant(np.array(parts, np.int64))], shapes, axis=axis)


@op
def gather(m):
    x = m.pick((np.float32, np.int64), 1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    index_shape = m.shape(0, 2)
    if len(shape) + len(index_shape) > 5:
        return
    indices = m.rng.integers(-shape[axis], shape[axis], index_shape)
    at = axis % len(shape)
    m.node("Gather", [x, m.constant(indices.astype(np.int64))], [(dtype, (*shape[:at], *index_shape, *shape[at + 1:]))], axis=axis)


@op
def gather_elements(m):
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    index_shape = list(shape)
    index_shape[axis] = int(m.rng.integers(1, 5))
    indices = m.rng.integers(-shape[axis], shape[axis], index_shape)
    m.node("GatherElements", [x, m.constant(indices.astype(np.int64))], [(dtype, index_shape)], axis=axis)


@op
def scatter_elements(m):
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    count = int(m.rng.integers(1, shape[axis] + 1))
    index_shape = list(shape)
    index_shape[axis] = count
    indices = np.broadcast_to(m.rng.permutation(shape[axis])[:count].reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))]), index_shape)
    m.node("ScatterElements", [x, m.constant(indices.astype(np.int64)), m.operand(tuple(index_shape), dtype)], [m.values[x]], axis=axis)


@op
def pad(m):
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    mode = str(m.rng.choice(["constant", "edge", "reflect"]))
    limit = [min(2, s - 1) if mode == "reflect" else 2 for s in shape]
    pads = [int(m.rng.integers(0, v + 1)) for v in limit + limit]
    result = [s + pads[i] + pads[i + len(shape)] for i, s in enumerate(shape)]
    value = [m.constant(np.float32(1.5))] if mode == "constant" else []
    m.node("Pad", [x, m.constant(np.array(pads, np.int64)), *value], [(dtype, result)], mode=mode)


@op
def expand_tile(m):
    x = m.pick((np.float32, np.int64), 1)
    dtype, shape = m.values[x]
    if int(np.prod(shape)) > (50_000 if m.large else 500):
        return
    if m.rng.random() < 0.5:
        target = [int(m.rng.integers(1, 4)) if s == 1 else s for s in shape]
        m.node("Expand", [x, m.constant(np.array(target, np.int64))], [(dtype, target)])
    else:
        repeats = [int(v) for v in m.rng.integers(1, 3, len(shape))]
        m.node("Tile", [x, m.constant(np.array(repeats, np.int64))], [(dtype, [s * r for s, r in zip(shape, repeats)])])


@op
def reduce(m):
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    axes = sorted(int(a) for a in m.rng.choice(len(shape), int(m.rng.integers(1, len(shape) + 1)), replace=False))
    keep = int(m.rng.integers(0, 2))
    result = [1 if i in axes else s for i, s in enumerate(shape) if keep or i not in axes]
    kind = str(m.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"]))
    if kind == "ReduceSum" or m.opset >= 18:
        (y,) = m.node(kind, [x, m.constant(np.array(axes, np.int64))], [(dtype, result)], keepdims=keep)
    else:
        (y,) = m.node(kind, [x], [(dtype, result)], axes=axes, keepdims=keep)
    m.node("Tanh", [y], [(dtype, result)])


@op
def softmax(m):
    x = m.pick(min_rank=1)
    m.node(str(m.rng.choice(["Softmax", "LogSoftmax"])), [x], [m.values[x]], axis=m.axis(x))


@op
def arg(m):
    x = m.pick(min_rank=1)
    _, shape = m.values[x]
    axis = m.axis(x)
    at = axis % len(shape)
    keep = int(m.rng.integers(0, 2))
    result = [1 if i == at else s for i, s in enumerate(shape) if keep or i != at]
    m.node(str(m.rng.choice(["ArgMax", "ArgMin"])), [x], [(np.int64, result)], axis=axis, keepdims=keep)


@op
def top_k(m):
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    axis = m.axis(x)
    k = int(m.rng.integers(1, shape[axis] + 1))
    result = list(shape)
    result[axis] = k
    m.node("TopK", [x, m.constant(np.array([k], np.int64))], [(dtype, result), (np.int64, result)], axis=axis,
           largest=int(m.rng.integers(0, 2)))


@op
def cum_sum(m):
    x = m.pick((np.float32, np.int64), 1)
    (y,) = m.node("CumSum", [x, m.constant(np.int64(m.axis(x)))], [m.values[x]], exclusive=int(m.rng.integers(0, 2)),
                  reverse=int(m.rng.integers(0, 2)))
    if m.values[x][0] == np.float32:
        m.node("Tanh", [y], [m.values[x]])


@op
def layer_norm(m):
    x = m.pick(min_rank=1)
    if m.opset < 17:
        return
    shape = m.shape_of(x)
    axis = m.axis(x, negative=False)
    m.node("LayerNormalization", [x, m.operand(shape[axis:], np.float32), m.operand(shape[axis:], np.float32)], [m.values[x]],
           axis=axis, epsilon=1e-3)


@op
def layer_norm_parts(m):
    """As exporters spell it."""
    x = m.pick(min_rank=1)
    dtype, shape = m.values[x]
    if m.opset >= 18 or shape[-1] < 2:
        return
    reduced = (*shape[:-1], 1)
    (mean,) = m.node("ReduceMean", [x], [(dtype, reduced)], axes=[-1], keepdims=1)
    (d,) = m.node("Sub", [x, mean], [(dtype, shape)])
    (s,) = m.node("Pow", [d, m.constant(np.float32(2))], [(dtype, shape)])
    (v,) = m.node("ReduceMean", [s], [(dtype, reduced)], axes=[-1], keepdims=1)
    (v,) = m.node("Add", [v, m.constant(np.float32(1e-3))], [(dtype, reduced)])
    (r,) = m.node("Sqrt", [v], [(dtype, reduced)])
    (y,) = m.node("Div", [d, r], [(dtype, shape)])
    (y,) = m.node("Mul", [y, m.operand((shape[-1],), np.float32)], [(dtype, shape)])
    m.node("Add", [y, m.operand((shape[-1],), np.float32)], [(dtype, shape)])


@op
def gelu_parts(m):
    x = m.pick()
    t = m.values[x]
    (a,) = m.node("Div", [x, m.constant(np.float32(2**0.5))], [t])
    (a,) = m.node("Erf", [a], [t])
    (a,) = m.node("Add", [a, m.constant(np.float32(1))], [t])
    (a,) = m.node("Mul", [x, a], [t])
    m.node("Mul", [a, m.constant(np.float32(0.5))], [t])


@op
def attention_parts(m):
    b, h = (int(v) for v in m.rng.integers(1, 5, 2))
    s, d, k = (m.size(4) for _ in range(3))
    q = m.add_input(m.numbers((b, s, h, d), np.float32))
    key = m.add_input(m.numbers((b, k, h, d), np.float32))
    value = m.add_input(m.numbers((b, h, k, d), np.float32))
    (q,) = m.node("Transpose", [q], [(np.float32, (b, h, s, d))], perm=[0, 2, 1, 3])
    (kt,) = m.node("Transpose", [key], [(np.float32, (b, h, d, k))], perm=[0, 2, 3, 1])
    (p,) = m.node("MatMul", [q, kt], [(np.float32, (b, h, s, k))])
    (p,) = m.node("Div", [p, m.constant(np.float32(d**0.5))], [m.values[p]])
    if m.rng.random() < 0.5:
        (p,) = m.node("Add", [p, m.operand((b, 1, 1, k), np.float32)], [m.values[p]])
    (p,) = m.node("Softmax", [p], [m.values[p]], axis=-1)
    m.node("MatMul", [p, value], [(np.float32, (b, h, s, d))])


def image(m):
    """A value [N, C, H, W], or [N, C, L]."""
    found = [n for n, (d, s) in m.values.items() if d == np.float32 and len(s) in (3, 4) and 0 not in s]
    if found and m.rng.random() < 0.7:
        return str(m.rng.choice(found))
    size = [int(v) for v in m.rng.integers(3, 30 if m.large else 9, int(m.rng.integers(1, 3)))]
    return m.add_input(m.numbers((int(m.rng.integers(1, 3)), m.size(4), *size), np.float32))


@op
def conv(m):
    x = image(m)
    n, c, *size = m.shape_of(x)
    kernel = [int(m.rng.integers(1, min(4, s) + 1)) for s in size]
    stride = [int(m.rng.integers(1, 3)) for _ in size]
    pads = [int(m.rng.integers(0, k)) for k in kernel + kernel]
    groups = c if m.rng.random() < 0.3 else 1
    out = groups * m.size(3) if groups == 1 else groups * int(m.rng.integers(1, 4))
    result = [(s + pads[i] + pads[i + len(size)] - kernel[i]) // stride[i] + 1 for i, s in enumerate(size)]
    w = m.operand((out, c // groups, *kernel), np.float32)
    bias = [m.operand((out,), np.float32)] if m.rng.random() < 0.6 else []
    (y,) = m.node("Conv", [x, w, *bias], [(np.float32, (n, out, *result))], kernel_shape=kernel, strides=stride, pads=pads, group=groups)
    if m.rng.random() < 0.5:
        s, b, mean = (m.constant(m.numbers((out,), np.float32)) for _ in range(3))
        variance = m.constant(np.abs(m.numbers((out,), np.float32)) + np.float32(0.5))
        (y,) = m.node("BatchNormalization", [y, s, b, mean, variance], [m.values[y]])
    if m.rng.random() < 0.5:
        (y,) = m.node("Relu", [y], [m.values[y]])
    m.node("Tanh", [y], [m.values[y]])


@op
def pool(m):
    x = image(m)
    n, c, *size = m.shape_of(x)
    kernel = [int(m.rng.integers(1, min(4, s) + 1)) for s in size]
    stride = [int(m.rng.integers(1, 3)) for _ in size]
    pads = [int(m.rng.integers(0, k // 2 + 1)) for k in kernel] * 2
    result = [(s + 2 * pads[i] - kernel[i]) // stride[i] + 1 for i, s in enumerate(size)]
    kind = str(m.rng.choice(["MaxPool", "AveragePool"]))
    m.node(kind, [x], [(np.float32, (n, c, *result))], kernel_shape=kernel, strides=stride, pads=pads)


@op
def global_pool(m):
    x = image(m)
    n, c, *size = m.shape_of(x)
    m.node(str(m.rng.choice(["GlobalAveragePool", "GlobalMaxPool"])), [x], [(np.float32, (n, c, *[1] * len(size)))])


@op
def resize(m):
    x = image(m)
    shape = m.shape_of(x)
    factor = int(m.rng.integers(1, 4))
    result = [*shape[:2], *[s * factor for s in shape[2:]]]
    if int(np.prod(result)) > (400_000 if m.large else 4000):
        return
    scales = m.constant(np.array([1, 1] + [factor] * (len(shape) - 2), np.float32))
    mode = str(m.rng.choice(["nearest", "linear"]))
    m.node("Resize", [x, "", scales], [(np.float32, result)], mode=mode,
           coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel", nearest_mode="floor")


@op
def quantize(m):
    x = m.pick()
    t = m.values[x]
    scale, zero = m.constant(np.float32(0.05)), m.constant(np.uint8(120))
    outputs = [m.fresh()]
    m.nodes.append(helper.make_node("QuantizeLinear", [x, scale, zero], outputs))
    m.node("DequantizeLinear", [outputs[0], scale, zero], [t])


@op
def branch(m):
    x = m.pick()
    dtype, shape = m.values[x]
    flag = m.add_input(np.array(bool(m.rng.random() < 0.5)))
    bodies = []
    for kind in ("Relu", "Neg"):
        out = helper.make_tensor_value_info(m.fresh(), TensorProto.FLOAT, None)
        bodies.append(helper.make_graph([helper.make_node(kind, [x], [out.name])], kind, [], [out]))
    m.node("If", [flag], [(dtype, shape)], then_branch=bodies[0], else_branch=bodies[1])


@op
def one_hot_range(m):
    if m.rng.random() < 0.5:
        limit = int(m.rng.integers(1, 7))
        m.node("Range", [m.constant(np.int64(0)), m.constant(np.int64(limit)), m.constant(np.int64(1))], [(np.int64, (limit,))])
    else:
        shape = m.shape(1, 2)
        indices = m.constant(m.rng.integers(-3, 3, shape).astype(np.int64))
        m.node("OneHot", [indices, m.constant(np.int64(3)), m.constant(np.array([0, 1], np.float32))], [(np.float32, (*shape, 3))], axis=-1)


@op
def trilu(m):
    x = m.pick(min_rank=2)
    if x and m.opset >= 14:
        m.node("Trilu", [x, m.constant(np.int64(m.rng.integers(-1, 2)))], [m.values[x]], upper=int(m.rng.integers(0, 2)))


@op
def clip(m):
    x = m.pick()
    m.node("Clip", [x, m.constant(np.float32(-0.5)), m.constant(np.float32(0.7))], [m.values[x]])


# Where numbers that are almost equal give results that are not: with thousands of numbers there always are some.
CHOOSING = {arg, cast, compare_where, quantize, top_k, *random_ops.CHOOSING, *random_layers.CHOOSING}
TOLERANCES = {"single": ("1e-3", "1e-4"), "large": ("1e-3", "1e-3"), "half": ("2e-2", "2e-2")}  # relative, absolute


def generate(seed, args):
    m = Model(seed, args.ends, args.large)
    ops = [f for f in OPS if not (args.large and f in CHOOSING)]
    for _ in range(int(m.rng.integers(2, 12))):
        f = ops[int(m.rng.integers(0, len(ops)))]
        if m.pick(min_rank=2) is None:
            m.add_input(m.numbers(m.shape(2, 4), np.float32))
        m.attempt(f)
    m.exposed = {v for v in m.values if m.chance(0.1)}
    return m


def tolerance(m):
    if any(d == np.float16 for d, _ in m.values.values()):
        return "half"
    return "large" if m.large else "single"


def symbol(m, name, axis, size):
    return f"n{size}" if m.shared else f"{name}_{axis}"


def build(m, nodes):
    used = set().union(*(reads(n) for n in nodes))
    inputs = [helper.make_tensor_value_info(k, elem(v.dtype), [symbol(m, k, i, s) for i, s in enumerate(v.shape)] if m.dynamic else v.shape)
              for k, v in m.inputs.items() if k in used]
    initializers = [numpy_helper.from_array(v, k) for k, v in m.initializers.items() if k in used]
    dtypes = {**{v: dtype for v, (dtype, _) in m.values.items()}, **m.loose}
    outputs = [helper.make_tensor_value_info(o, elem(dtypes[o]), None)
               for n in nodes for o in n.output if o in dtypes and not (m.ends and o in used - m.exposed)]
    return m.proto(helper.make_graph(nodes, "random", inputs, outputs, initializers))


def nudged(array):
    """The same numbers but for rounding."""
    if not np.issubdtype(array.dtype, np.floating):
        return array
    step = (2 if array.dtype == np.float16 else 32) * np.finfo(array.dtype).eps
    return np.asarray(array * (1 + step * np.where(np.arange(array.size) % 3 == 0, 1, -1).reshape(array.shape)), array.dtype)


def is_well_posed(results, others, coarse):
    """Rounding must not decide: whether a number is chosen, which way it is rounded to an integer."""
    rtol, atol = (float(t) / 4 for t in TOLERANCES[coarse])
    return all(a.shape == b.shape and (np.allclose(a, b, rtol, atol) if np.issubdtype(a.dtype, np.floating) else np.array_equal(a, b))
               for a, b in zip(results, others))


def resized(m, feeds, rng):
    """The inputs with another size where one of the sizes was."""
    sizes = sorted({s for v in m.inputs.values() for s in v.shape})
    old = int(rng.choice(sizes))
    pools = any("Pool" in n.op_type for n in m.nodes)  # where one is larger than the image the peer makes something of nothing
    new = int(rng.integers(old if pools else 1, max(old, 8) + 1))
    return {k: np.resize(v, [new if s == old else s for s in v.shape]) if v.size else v for k, v in feeds.items()}


def write_data(where, feeds, results):
    where.mkdir(parents=True)
    for kind, arrays in (("input", feeds.values()), ("output", results)):
        for k, array in enumerate(arrays):
            (where / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def write_case(folder, m, nodes):
    """False when onnxruntime does not take the model: it is not valid then, or not one that the peer has."""
    model = build(m, nodes)
    try:
        peer = session(model)
    except Exception:
        return False

    def write(where, feeds):
        try:
            results = peer.run(None, feeds)
            others = peer.run(None, {k: nudged(v) for k, v in feeds.items()})
        except Exception:
            return False
        if any(np.issubdtype(r.dtype, np.floating) and not np.all(np.isfinite(r)) for r in results):
            return False
        if is_well_posed(results, others, tolerance(m)):
            write_data(where, feeds, results)
        return where.exists()

    feeds = {i.name: m.inputs[i.name] for i in model.graph.input}
    if not write(folder / "test_data_set_0", feeds):
        return False
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if m.dynamic and any(v.ndim for v in feeds.values()):
        rng = np.random.default_rng(0)
        for k in range(1, 4):
            write(folder / f"test_data_set_{k}", resized(m, feeds, rng))
    return True


def run(args, folder, coarse):
    rtol, atol = TOLERANCES[coarse]
    command = [args.rlx, "test-onnx", str(folder), "--json", "--device", args.device, "--rtol", rtol, "--atol", atol]
    result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout:
        sys.exit(f"{' '.join(command)} failed: {result.stderr}")
    return json.loads(result.stdout)


def shrink(args, m):
    """The fewest nodes that still fail, found by leaving out one after the other."""
    nodes = list(m.nodes)
    for candidate in reversed(m.nodes):
        rest = [n for n in nodes if n is not candidate]
        made = set(m.inputs) | set(m.initializers) | {o for n in rest for o in n.output}
        if not rest or not set().union(*(reads(n) for n in rest)) <= made:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            if write_case(pathlib.Path(temporary) / "case", m, rest) and run(args, temporary, tolerance(m))["failed"]:
                nodes = rest
    return nodes


def third_opinion(m, model):
    """Whether ONNX's own implementation in NumPy agrees with onnxruntime."""
    feeds = {i.name: m.inputs[i.name] for i in model.graph.input}
    try:
        same = all(np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-2, 1e-2) for a, b in
                   zip(session(model).run(None, feeds), ReferenceEvaluator(model).run(None, feeds)))
        return "agrees with onnxruntime" if same else "does not agree with onnxruntime"
    except Exception as e:
        return f"does not run it ({str(e).splitlines()[0][:100]})"


def text(model):
    return re.sub(r"\{[^{}\n]{200,}\}", "{…}", onnx.printer.to_text(model))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rlx")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ends", action="store_true", help="outputs that no node reads alone, so that the rest is fused")
    parser.add_argument("--show", type=int, default=5, help="how many models that fail are shrunk and printed")
    parser.add_argument("--large", action="store_true", help="dimensions of up to 100")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, seed, made = pathlib.Path(temporary), args.seed, 0
        while made < args.count:
            m = generate(seed, args)
            made += m.nodes != [] and write_case(folder / tolerance(m) / f"seed_{seed}", m, m.nodes)
            seed += 1
            if seed - args.seed > 2 * args.count + 100:
                sys.exit(f"onnxruntime takes only {made} of {seed - args.seed} models: the generator is wrong.")
        cases = [c for f in sorted(folder.iterdir()) if any(f.glob("*/model.onnx")) for c in run(args, f, f.name)["cases"]]
    failed = [c for c in cases if c["result"] != "passed"]
    print(f"{len(cases) - len(failed)} of {args.count} random models agree with onnxruntime (seeds {args.seed} to {seed - 1})")
    for case in failed[:args.show]:
        m = generate(int(case["name"].removeprefix("seed_")), args)
        model = build(m, shrink(args, m))
        print(f"\n{case['name']}: {case['why']}\nONNX's reference {third_opinion(m, model)}. Shrunk to:\n{text(model)}")
    if failed:
        sys.exit(f"{len(failed)} models fail: {' '.join(c['name'] for c in failed[:50])}")


if __name__ == "__main__":
    main()
