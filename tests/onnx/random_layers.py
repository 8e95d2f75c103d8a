"""Layers for random_models.py: norms, products, integer models, recurrent ops, attention, control flow, and blocks of networks as
exporters write them, with odd neighbours: what a fusion would swallow is read twice or is an output, masks broadcast, scales are scalars."""

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from random_graph import MS, elem, op
from random_ops import image, partner, window


def optional(m, shape, dtype=np.float32, p=0.6):
    return m.operand(shape, dtype) if m.chance(p) else ""


def trimmed(inputs):
    """Without the absent ones at the end."""
    while inputs and inputs[-1] == "":
        inputs.pop()
    return inputs


def some_float(m, low, high):
    return m.some((np.float32, np.float32, np.float32, np.float16), low, high)


# ---- norms

@op
def any_layer_norm(m):
    x = some_float(m, 1, 4)
    shape, dtype = m.shape_of(x), m.dtype(x)
    axis = m.axis(x)
    scale = shape[axis:] if m.chance(0.8) else shape[-1:]
    if m.opset >= 23 and m.chance(0.4):
        m.apply("RMSNormalization", [x, m.operand(scale, dtype)], axis=axis, epsilon=1e-3)
    else:
        inputs = trimmed([x, m.operand(scale, dtype), optional(m, scale, dtype)])
        outputs = m.one_of(1, 1, ["y", "mean"], ["y", "", "deviation"], 3) if dtype == np.float32 else 1
        m.apply("LayerNormalization", inputs, outputs, axis=axis, epsilon=m.one_of(1e-5, 1e-2))


@op
def norm_of_groups(m):
    if m.opset < 18:
        return
    x = image(m, (np.float32, np.float16) if m.opset >= 21 else (np.float32,))
    c, dtype = m.shape_of(x)[1], m.dtype(x)
    groups = m.one_of(*[g for g in range(1, c + 1) if c % g == 0])
    size = c if m.opset >= 21 else groups
    # No inputs where sizes change: the peer, which runs ONNX's definition, would broadcast weights of one element.
    weights = [m.constant(m.numbers((size,), dtype)) if m.dynamic else m.operand((size,), dtype) for _ in range(2)]
    m.apply("GroupNormalization", [x, *weights], num_groups=groups, epsilon=1e-2)


@op
def batch_norm(m):
    x = m.some((np.float32, np.float64), 2, 4)
    c, dtype = m.shape_of(x)[1], m.dtype(x)
    variance = m.given(np.abs(m.numbers((c,), dtype)) + dtype.type(0.5))
    m.apply("BatchNormalization", [x, *[m.operand((c,), dtype) for _ in range(3)], variance], epsilon=1e-3)


@op
def skip_norm(m):
    x = m.some((np.float32,), 3, 3)
    b, s, h = m.shape_of(x)
    simple = m.chance(0.4)
    op_type = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    if simple or m.dynamic:  # the peer does not look whether batches are as many
        (skip,) = m.apply("Mul", [x, m.operand((h,), np.float32)])
    else:
        skip = m.operand(m.one_of((b, s, h), (b, s, h), (1, s, h), (s, h)), np.float32)
    inputs = [x, skip, m.operand((h,), np.float32), *([] if simple else [optional(m, (h,))]), optional(m, (h,))]
    m.apply(op_type, trimmed(inputs), m.one_of(1, ["y", "", "", "sum"]), MS, epsilon=1e-3)


# ---- products

@op
def einsum(m):
    letters = "abcd"
    sizes = {c: m.number(1, 4) for c in letters}
    terms = ["".join(m.rng.permutation(list(letters))[:m.number(1, 3)]) for _ in range(m.number(1, 3))]
    if m.chance(0.2):
        terms[0] += terms[0][0]  # a diagonal
    seen = sorted(set("".join(terms)))
    result = "".join(m.rng.permutation(seen)[:m.number(0, len(seen))])
    dots = m.chance(0.2)
    lead = (m.number(1, 3),) if dots else ()
    equation = ",".join(("..." if dots else "") + t for t in terms) + ("->" + ("..." if dots else "") + result if m.chance(0.8) else "")
    m.apply("Einsum", [m.operand((*lead, *[sizes[c] for c in t]), np.float32) for t in terms], equation=equation)


@op
def any_matmul(m):
    x = some_float(m, 1, 4)
    shape, dtype = m.shape_of(x), m.dtype(x)
    batch = [s if m.chance(0.6) else 1 for s in shape[:-2]][m.number(0, 2):] if len(shape) > 2 else []
    n = m.size(6)
    w = m.operand((*batch, shape[-1], n), dtype) if m.chance(0.85) else m.operand((shape[-1],), dtype)
    (y,) = m.apply("MatMul", [x, w])
    if m.chance(0.5):
        m.apply("Add", [y, partner(m, y)])


@op
def any_gemm(m):
    k, rows, n = m.size(6), m.size(6), m.size(6)
    trans_a, trans_b = m.number(0, 1), m.number(0, 1)
    dtype = m.one_of(np.float32, np.float32, np.float64, np.float16)
    a = m.operand((k, rows) if trans_a else (rows, k), dtype)
    b = m.operand((n, k) if trans_b else (k, n), dtype)
    c = [m.operand(m.one_of((n,), (rows, n), (rows, 1), (1, n), (1,), ()), dtype)] if m.chance(0.7) else []
    m.apply("Gemm", [a, b, *c], transA=trans_a, transB=trans_b, alpha=m.one_of(1.0, 0.5), beta=m.one_of(1.0, 0.3))


@op
def fused_matmul(m):
    b, k, rows, n = m.number(1, 3), m.size(), m.size(), m.size()
    trans_a, trans_b = m.number(0, 1), m.number(0, 1)
    x = m.operand((b, k, rows) if trans_a else (b, rows, k), np.float32)
    y = m.operand(((b,) if m.chance(0.6) else ()) + ((n, k) if trans_b else (k, n)), np.float32)
    m.apply("FusedMatMul", [x, y], 1, MS, transA=trans_a, transB=trans_b, alpha=0.7)


# ---- integers. On a processor without VNNI the peer adds pairs of products of uint8 and int8 in 16 bits, which saturates: its int8 weights have 7 bits.

def weights(m, shape, dtype):
    return np.asarray(m.rng.integers(-64, 64, shape) if dtype == np.int8 else m.rng.integers(0, 128, shape)).astype(dtype)


def scale(m, shape=()):
    return m.constant(m.rng.uniform(0.01, 0.05, shape), np.float32)


def zero(m, dtype, shape=()):
    return m.constant(m.rng.integers(0, 20, shape), dtype)


@op
def quantize_and_back(m):
    x = m.some((np.float32,), 1)
    shape, axis, dtype = m.shape_of(x), m.axis(x), m.one_of(np.uint8, np.int8)
    attributes, sizes = {}, m.one_of((), (1,))
    if m.chance(0.5):
        attributes, sizes = {"axis": axis}, (shape[axis],)
        if m.opset >= 21 and m.chance(0.5) and 0 not in shape:  # of blocks of nothing the peer crashes
            block = m.one_of(*[d for d in range(1, shape[axis] + 1) if shape[axis] % d == 0])
            attributes["block_size"] = block
            sizes = list(shape)
            sizes[axis] //= block
    elif m.opset >= 21 and m.chance(0.3):
        dtype = m.one_of(np.uint16, np.int16)
    s = scale(m, sizes)
    z = [zero(m, dtype, sizes)] if m.chance(0.7) or dtype != np.uint8 else []
    (q,) = m.apply("QuantizeLinear", [x, s, *z], **attributes)
    m.apply("DequantizeLinear", [q, s, *z], **attributes)


@op
def quantize_by_range(m):
    x = m.some((np.float32,), 1)
    if 0 in m.shape_of(x):
        return  # no range
    (x,) = m.apply("Add", [x, m.constant(0.125, np.float32)])  # of zeros alone the peer's scale is 1, ONNX's 0
    q, s, z = m.apply("DynamicQuantizeLinear", [x], 3)
    if len(m.shape_of(x)) >= 2:
        dtype = m.one_of(np.uint8, np.int8)
        n, k = m.size(), m.shape_of(x)[-1]
        (y,) = m.apply("MatMulInteger", [q, m.constant(weights(m, (k, n), dtype)), z, *([zero(m, dtype, m.one_of((), (n,)))] if m.chance(0.5) else [])])
        (y,) = m.apply("Cast", [y], to=TensorProto.FLOAT)
        (s,) = m.apply("Mul", [s, scale(m, m.one_of((), (n,)))])
        (y,) = m.apply("Mul", [y, s])
        if m.chance(0.5):
            m.apply("Add", [y, m.operand((n,), np.float32)])


@op
def integer_matmul(m):
    dtypes = m.one_of((np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8))
    k, n, lead = m.size(8), m.size(6), m.shape(1, 3)
    a = m.operand((*lead, k), dtypes[0])
    b = m.given(weights(m, ((lead[0],) if len(lead) == 3 and m.chance(0.2) else ()) + (k, n), dtypes[1]))
    if m.chance(0.5):
        zeros = [zero(m, dtypes[0])] if m.chance(0.7) else []
        m.apply("MatMulInteger", [a, b, *zeros, *([zero(m, dtypes[1], m.one_of((), (n,)))] if zeros and m.chance(0.6) else [])])
    else:
        columns = m.one_of((), (n,)) if m.shape_of(b) == (k, n) else ()
        m.apply("QLinearMatMul", [a, scale(m), zero(m, dtypes[0]), b, scale(m, columns), zero(m, dtypes[1], columns), scale(m), zero(m, dtypes[0])])


@op
def integer_conv(m):
    kind = m.one_of(np.uint8, np.int8)
    dtype = m.one_of(np.uint8, np.int8) if kind == np.uint8 else np.int8
    x = image(m, (kind,), m.number(1, 2))
    n, c, *size = m.shape_of(x)
    groups = m.one_of(1, c)
    out = groups * m.number(1, 3)
    attributes = window(m, size)
    w = m.given(weights(m, (out, c // groups, *attributes["kernel_shape"]), dtype))
    if m.chance(0.4):
        zeros = [zero(m, kind)] if m.chance(0.7) else []
        m.apply("ConvInteger", [x, w, *zeros, *([zero(m, dtype)] if zeros and m.chance(0.5) else [])], group=groups, **attributes)
    else:
        bias = [m.constant(m.rng.integers(-500, 500, out), np.int32)] if m.chance(0.5) else []
        m.apply("QLinearConv", [x, scale(m), zero(m, kind), w, scale(m, m.one_of((), (out,))), m.constant(0, dtype), scale(m), zero(m, kind), *bias],
                group=groups, **attributes)


@op
def quantized_model(m):
    """Q/DQ as quantisers write it: dequantised codes on both sides of an op, and codes again behind it."""
    x = m.some((np.float32,), 2, 4)
    shape, dtype = m.shape_of(x), m.one_of(np.uint8, np.int8)

    def pair(v):
        s, z = scale(m), zero(m, dtype)
        (q,) = m.apply("QuantizeLinear", [v, s, z])
        return m.apply("DequantizeLinear", [q, s, z])[0]

    x = pair(x)
    kind = m.number(0, 3)
    if kind == 0 or len(shape) == 2:
        n = m.size()
        w_scale, axis = (scale(m, (n,)), {"axis": 1}) if m.chance(0.5) else (scale(m), {})
        (w,) = m.apply("DequantizeLinear", [m.constant(weights(m, (shape[-1], n), np.int8)), w_scale], **axis)
        (y,) = m.apply("MatMul", [x, w])
        if m.chance(0.5):
            (y,) = m.apply("Add", [y, m.operand((n,), np.float32)])
    elif kind == 1:
        out = m.number(1, 4)
        attributes = window(m, shape[2:])
        (w,) = m.apply("DequantizeLinear", [m.constant(weights(m, (out, shape[1], *attributes["kernel_shape"]), np.int8)), scale(m, (out,))], axis=0)
        (y,) = m.apply("Conv", [x, w], **attributes)
    elif kind == 2:
        (y,) = m.apply("Add", [x, pair(m.operand(shape, np.float32))])
    else:
        (y,) = m.apply(m.one_of("Sigmoid", "Relu", "GlobalAveragePool" if len(shape) > 2 else "Relu"), [x])
    if m.chance(0.3):
        m.apply("Relu", [y])
    pair(y)


# ---- recurrent

@op
def recurrent(m):
    kind = m.one_of("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    x = m.some((np.float32,), 3, 3)
    steps, batch, inputs = m.shape_of(x)
    if 0 in (steps, batch, inputs):
        return
    hidden = m.size(6)
    direction = m.one_of("forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    if m.chance(0.2):
        attributes["clip"] = 0.5
    if kind == "GRU" and m.chance(0.5):
        attributes["linear_before_reset"] = 1
    if m.chance(0.25) and steps < 10:  # without a bound they grow
        count = {"LSTM": 3, "GRU": 2, "RNN": 1}[kind] * d
        attributes["activations"] = [m.one_of("Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu") for _ in range(count)]
        attributes["activation_alpha"] = [0.3] * count
        attributes["activation_beta"] = [0.4] * count
    lengths = m.given(m.rng.integers(1, steps + 1, batch), np.int32) if m.chance(0.3) else ""
    state = m.chance(0.4)
    names = [x, m.operand((d, gates * hidden, inputs), np.float32), m.operand((d, gates * hidden, hidden), np.float32),
             optional(m, (d, 2 * gates * hidden)), lengths, m.operand((d, batch, hidden), np.float32) if state else ""]
    if kind == "LSTM":
        names += [m.operand((d, batch, hidden), np.float32) if state else "", optional(m, (d, 3 * hidden), p=0.3)]
    outputs = m.one_of(["y", "h", "c"], ["", "h", "c"], ["y"], ["", "h"], ["", "", "c"]) if kind == "LSTM" else m.one_of(["y", "h"], ["y"], ["", "h"])
    made = m.apply(kind, trimmed(names), outputs, **attributes)
    if outputs[0] and d == 1 and m.chance(0.5):
        m.apply("Squeeze", [made[0], m.constant([1], np.int64)])


# ---- attention

def heads(m):
    b, h, d = m.number(1, 3), m.one_of(1, 2, 3, 4), m.one_of(2, 4, 8) if not m.large else m.one_of(16, 32, 64)
    return b, h, m.size(6), m.size(6), d


def key_mask(m, b, s, k):
    """Whether a key is used: the first one is always."""
    mask = m.rng.integers(0, 2, m.one_of((b, k), (b, s, k)))
    mask[..., 0] = 1
    return m.given(mask, np.int32)


@op
def ms_attention(m):
    b, h, s, _, d = heads(m)
    hidden, width = m.number(2, 6), h * d
    x = m.operand((b, s, hidden), np.float32)
    inputs = [x, m.operand((hidden, 3 * width), np.float32), m.operand((3 * width,), np.float32), key_mask(m, b, s, s) if m.chance(0.4) else "", "",
              m.operand((m.one_of(1, b), m.one_of(1, h), s, s), np.float32) if m.chance(0.3) else ""]
    m.apply("Attention", trimmed(inputs), 1, MS, num_heads=h, unidirectional=m.number(0, 1))


@op
def multi_head_attention(m):
    b, h, s, k, d = heads(m)
    if m.chance(0.4):
        k = s
    width, wide = h * d, h * (d if m.chance(0.7) else d + 2)
    inputs = [m.operand((b, s, width), np.float32), m.operand((b, k, width), np.float32), m.operand((b, k, wide), np.float32),
              m.operand((2 * width + wide,), np.float32) if m.chance(0.4) else "", key_mask(m, b, s, k) if m.chance(0.4) else "",
              m.operand((m.one_of(1, b), m.one_of(1, h), s, k), np.float32) if m.chance(0.3) else ""]
    extra = {"scale": 0.4} if m.chance(0.3) else {}
    if k == s and m.chance(0.3):
        extra["unidirectional"] = 1
    m.apply("MultiHeadAttention", trimmed(inputs), 1, MS, num_heads=h, **extra)


@op
def group_query_attention(m):
    b, groups, s, past, d = heads(m)
    d = max(8, d) * 2
    h = groups * m.number(1, 3)
    past = past if m.chance(0.6) else 0
    if past:
        s = 1
    total = past + s
    rotary = m.chance(0.5)
    angles = m.rng.uniform(-3, 3, (total + 2, d // 2))
    inputs = [m.operand((b, s, h * d), np.float32), m.operand((b, s, groups * d), np.float32), m.operand((b, s, groups * d), np.float32),
              *[m.constant(m.numbers((b, groups, past, d), np.float32)) if past else "" for _ in range(2)],  # as many as the lengths say
              m.constant(np.full(b, total - 1), np.int32), m.constant(total, np.int32),
              *([m.constant(f(angles), np.float32) for f in (np.cos, np.sin)] if rotary else [])]
    extra = {"local_window_size": m.number(1, 4)} if m.chance(0.3) else {}
    if m.chance(0.2):
        extra["softcap"] = 1.5
    m.apply("GroupQueryAttention", trimmed(inputs), 3, MS, num_heads=h, kv_num_heads=groups, do_rotary=int(rotary),
            rotary_interleaved=m.number(0, 1) if rotary else 0, **extra)


@op
def onnx_attention(m):
    if m.opset < 23:
        return
    b, groups, s, k, d = heads(m)
    h = groups * m.number(1, 2)
    dtype = m.one_of(np.float32, np.float32, np.float16)
    wide = d if m.chance(0.7) else d + 1
    flat = m.chance(0.4)
    shapes = [(b, s, h * d), (b, k, groups * d), (b, k, groups * wide)] if flat else [(b, h, s, d), (b, groups, k, d), (b, groups, k, wide)]
    mask = ""
    if m.chance(0.5):
        shape = m.one_of((s, k), (1, 1, s, k), (b, 1, s, k), (b, h, s, k), (1, k), (b, 1, 1, k))
        used = m.numbers(shape, bool)
        used[..., 0] = True
        mask = m.given(used) if m.chance(0.5) else m.operand(shape, dtype)
    extra = {"is_causal": 1} if m.chance(0.4) else {}
    if m.chance(0.3):
        extra["scale"] = 0.3
    if m.chance(0.2):
        extra["softcap"] = 2.0
    if flat:
        extra.update(q_num_heads=h, kv_num_heads=groups)
    m.apply("Attention", trimmed([*[m.operand(shape, dtype) for shape in shapes], mask]), 1, **extra)


@op
def rotary(m):
    b, h, s, _, d = heads(m)
    angles = m.rng.uniform(-3, 3, (s + 3, d // 2))
    tables = [m.constant(f(angles), np.float32) for f in (np.cos, np.sin)]
    positions = m.given(m.rng.integers(0, s + 3, (b, s)), np.int64)
    x = m.operand((b, h, s, d) if m.chance(0.5) else (b, s, h * d), np.float32)
    interleaved = m.number(0, 1)
    flat = {"num_heads": h} if len(m.shape_of(x)) == 3 else {}
    if m.opset >= 23 and m.chance(0.5):
        m.apply("RotaryEmbedding", [x, *tables, positions], interleaved=interleaved, **flat)
    else:
        m.apply("RotaryEmbedding", [x, positions, *tables], 1, MS, interleaved=interleaved, **flat)


@op
def ms_gelu(m):
    x = m.some((np.float32,), 1)
    bias = [m.operand(m.shape_of(x)[-1:], np.float32)]
    kind = m.one_of("Gelu", "BiasGelu", "FastGelu", "QuickGelu")
    m.apply(kind, [x, *(bias if kind == "BiasGelu" or kind == "FastGelu" and m.chance(0.5) else [])], 1, MS)


# ---- control flow

class Body:
    """A body under construction: its nodes may read the values around it."""

    def __init__(self, m):
        self.m, self.nodes, self.inputs = m, [], []

    def input(self, dtype, shape=None):
        name = self.m.fresh()
        self.inputs.append(helper.make_tensor_value_info(name, elem(dtype), shape))
        return name

    def node(self, op_type, *inputs, **attributes):
        name = self.m.fresh()
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def step(self, x):
        """Something that keeps the shape of x."""
        m = self.m
        kind = m.number(0, 3)
        if kind == 0:
            return self.node(m.one_of("Tanh", "Relu", "Neg", "Sigmoid"), x)
        if kind == 1:
            return self.node("Mul", x, m.constant(0.5, np.float32))
        if kind == 2 and (outer := [v for v, (d, s) in m.values.items() if d == np.float32 and s == ()]):
            return self.node("Tanh", self.node("Add", x, str(m.rng.choice(outer))))
        return self.node("Tanh", self.node("Sub", x, self.node("ReduceMean", x, keepdims=1)))

    def graph(self, outputs):
        return helper.make_graph(self.nodes, self.m.fresh(), self.inputs, [ValueInfoProto(name=o) if t is None else
                                                                          helper.make_tensor_value_info(o, elem(t), None) for o, t in outputs])


@op
def any_branch(m):
    x = m.some((np.float32,), 0, 3)
    flag = m.given(np.array(m.chance(0.5)))
    if m.chance(0.3):  # computed
        (top,) = m.apply("ReduceMax", [x], keepdims=0) if 0 not in m.shape_of(x) else (m.constant(1, np.float32),)
        (flag,) = m.apply("Greater", [top, m.constant(0.5, np.float32)])
    count, bodies = m.number(1, 2), []
    for _ in range(2):
        body = Body(m)
        results = []
        for _ in range(count):
            y = body.step(body.step(x))
            results.append((body.node("Identity", x if m.chance(0.1) else y), np.float32))
        bodies.append(body.graph(results))
    m.apply("If", [flag], count, then_branch=bodies[0], else_branch=bodies[1])


@op
def any_loop(m):
    x = m.some((np.float32,), 0, 3)
    shape = m.shape_of(x)
    outer = m.operand(shape, np.float32)
    scans = m.number(0, 2)
    trips = m.number(0 if m.chance(0.1) and not scans else 1, 4)  # the shape of no rows is what the peer can infer, which is often nothing
    body = Body(m)
    i, go, state = body.input(np.int64, []), body.input(bool, []), body.input(np.float32, list(shape) if m.chance(0.5) else None)
    new = body.step(body.node("Add", body.step(state), outer) if m.chance(0.6) else state)
    new = body.node("Tanh", new)
    limit = m.number(1, 4)
    ends = m.chance(0.4)  # by itself
    go = body.node("Less", i, m.constant(limit, np.int64)) if ends else body.node("Identity", go)
    outputs = [(go, bool), (new, np.float32)]
    if scans:
        outputs.append((body.node("Mul", new, body.node("Cast", i, to=TensorProto.FLOAT)), np.float32))
    if scans == 2:
        outputs.append((body.node("Identity", i), np.int64))
    count = "" if ends and m.chance(0.4) else m.given(np.array(trips), np.int64)
    m.apply("Loop", [count, m.constant(True, bool) if not count or m.chance(0.8) else "", x], 1 + scans, body=body.graph(outputs))


@op
def any_scan(m):
    x = m.some((np.float32,), 1, 3)
    shape = m.shape_of(x)
    axis = m.axis(x, negative=False)
    row = [s for i, s in enumerate(shape) if i != axis]
    if 0 in shape:
        return
    second = m.chance(0.4)
    body = Body(m)
    state, element = body.input(np.float32, row), body.input(np.float32, row)
    inputs = [m.operand(tuple(row), np.float32), x]
    axes, ways = [axis], [m.number(0, 1)]
    new = body.node("Tanh", body.node("Add", state, body.step(element)))
    if second:
        other = body.input(np.float32, [2])
        inputs.append(m.operand((shape[axis], 2), np.float32))
        axes.append(0)
        ways.append(m.number(0, 1))
        new = body.node("Add", body.node("Mul", new, m.constant(0.5, np.float32)), body.node("ReduceSum", other, keepdims=0))
    outputs = [(body.node("Identity", new), np.float32), (body.node("Mul", new, element), np.float32)]
    m.apply("Scan", inputs, 2, num_scan_inputs=1 + second, scan_input_axes=axes, scan_input_directions=ways,
            scan_output_axes=[m.number(0, len(row))], scan_output_directions=[m.number(0, 1)], body=body.graph(outputs))


# ---- blocks

def value_of(m, number, dtype):
    """A scalar, spelled as a scalar or as a tensor of one element."""
    return m.constant(np.full(m.one_of((), (), (1,), (1, 1)), number), dtype)


def norm(m, x):
    """One of the ways in which models spell a norm of rows."""
    shape, dtype = m.shape_of(x), m.dtype(x)
    width = shape[-1:]
    kind = m.number(0, 2)
    if kind == 0 and m.opset >= 17:
        return m.apply("LayerNormalization", trimmed([x, m.operand(width, dtype), optional(m, width, dtype)]), axis=-1, epsilon=1e-3)[0]
    axes = ([m.constant([-1], np.int64)], {}) if m.opset >= 18 else ([], {"axes": [-1]})
    centred = x
    if kind == 1:
        (mean,) = m.apply("ReduceMean", [x, *axes[0]], keepdims=1, **axes[1])
        (centred,) = m.apply("Sub", [x, mean])
    square = m.apply("Pow", [centred, value_of(m, 2, dtype)])[0] if m.chance(0.5) else m.apply("Mul", [centred, centred])[0]
    (variance,) = m.apply("ReduceMean", [square, *axes[0]], keepdims=1, **axes[1])
    (variance,) = m.apply("Add", [variance, value_of(m, 1e-2, dtype)])
    (root,) = m.apply("Sqrt", [variance])
    if m.chance(0.5):
        (y,) = m.apply("Div", [centred, root])
    else:
        (inverse,) = m.apply("Reciprocal", [root])
        (y,) = m.apply("Mul", [centred, inverse] if m.chance(0.5) else [inverse, centred])
    if m.chance(0.8):
        scale = m.operand(width, dtype)
        (y,) = m.apply("Mul", [y, scale] if m.chance(0.5) else [scale, y])
    if kind == 1 and m.chance(0.8):
        (y,) = m.apply("Add", [y, m.operand(width, dtype)])
    return y


def linear(m, x, n):
    dtype, k = m.dtype(x), m.shape_of(x)[-1]
    w = m.constant(m.numbers((k, n), dtype) / dtype.type(k ** 0.5))
    (y,) = m.apply("MatMul", [x, w])
    if m.chance(0.6):
        bias = m.operand((n,), dtype)
        (y,) = m.apply("Add", [y, bias] if m.chance(0.7) else [bias, y])
    return y


def activation(m, x):
    dtype = m.dtype(x)
    kind = m.number(0, 4)
    if kind == 0:
        (a,) = m.apply("Div", [x, value_of(m, 2**0.5, dtype)])
        (a,) = m.apply("Erf", [a])
        (a,) = m.apply("Add", [a, value_of(m, 1, dtype)])
        if m.chance(0.5):
            (a,) = m.apply("Mul", [a, value_of(m, 0.5, dtype)])
            return m.apply("Mul", [x, a])[0]
        (a,) = m.apply("Mul", [x, a])
        return m.apply("Mul", [a, value_of(m, 0.5, dtype)])[0]
    if kind == 1:  # gelu by tanh
        (c,) = m.apply("Pow", [x, value_of(m, 3, dtype)])
        (c,) = m.apply("Mul", [c, value_of(m, 0.044715, dtype)])
        (c,) = m.apply("Add", [x, c])
        (c,) = m.apply("Mul", [c, value_of(m, (2 / np.pi) ** 0.5, dtype)])
        (c,) = m.apply("Tanh", [c])
        (c,) = m.apply("Add", [c, value_of(m, 1, dtype)])
        (h,) = m.apply("Mul", [x, value_of(m, 0.5, dtype)])
        return m.apply("Mul", [h, c])[0]
    if kind == 2:
        (s,) = m.apply("Sigmoid", [x])
        return m.apply("Mul", [x, s] if m.chance(0.5) else [s, x])[0]
    if kind == 3:
        (s,) = m.apply("HardSigmoid", [x], alpha=1 / 6, beta=0.5)
        return m.apply("Mul", [x, s])[0]
    return m.apply(m.one_of("Relu", "Tanh", "Sigmoid"), [x])[0]


def attention(m, x):
    b, s, width = m.shape_of(x)
    dtype = m.dtype(x)
    h = m.one_of(*[n for n in (1, 2, 3, 4) if width % n == 0])
    d = width // h
    shape = m.constant([0, 0, h, d] if m.chance(0.5) else [b, -1, h, d], np.int64)
    if m.chance(0.3):
        parts = list(m.apply("Split", [linear(m, x, 3 * width), m.constant([width] * 3, np.int64)], 3, axis=-1))
    else:
        parts = [linear(m, x, width) for _ in range(3)]
    q, k, v = (m.apply("Reshape", [p, shape])[0] for p in parts)
    (q,) = m.apply("Transpose", [q], perm=[0, 2, 1, 3])
    (v,) = m.apply("Transpose", [v], perm=[0, 2, 1, 3])
    if m.chance(0.3):  # rotary positions
        q, k = rotate(m, q, s, d), rotate(m, m.apply("Transpose", [k], perm=[0, 2, 1, 3])[0], s, d)
        (k,) = m.apply("Transpose", [k], perm=[0, 1, 3, 2])
    else:
        (k,) = m.apply("Transpose", [k], perm=[0, 2, 3, 1])
    factor = value_of(m, d ** -0.5, dtype)
    early = m.chance(0.3)
    if early:
        (q,) = m.apply("Mul", [q, factor])
    (p,) = m.apply("MatMul", [q, k])
    if not early and m.chance(0.8):
        (p,) = m.apply("Mul", [p, factor]) if m.chance(0.5) else m.apply("Div", [p, value_of(m, d ** 0.5, dtype)])
    kind = m.number(0, 3)
    mask_shape = m.one_of((s, s), (1, 1, s, s), (b, 1, 1, s), (b, 1, s, s), (b, h, s, s), (s,), (1, h, s, s))
    if kind == 0:
        (p,) = m.apply("Add", [p, m.operand(mask_shape, dtype)])
    elif kind == 1:
        used = m.numbers(mask_shape, bool)
        used[..., 0] = True
        (p,) = m.apply("Where", [m.given(used), p, value_of(m, -1e4, dtype)])
    (p,) = m.apply("Softmax", [p], axis=m.one_of(-1, 3))
    (y,) = m.apply("MatMul", [p, v])
    (y,) = m.apply("Transpose", [y], perm=[0, 2, 1, 3])
    (y,) = m.apply("Reshape", [y, m.constant([0, 0, width], np.int64)])
    return linear(m, y, width)


def rotate(m, x, s, d):
    """x * cos + (-x2 | x1) * sin, as Llama's exporters write it."""
    if d % 2:
        return x
    dtype = m.dtype(x)
    angles = np.tile(m.rng.uniform(-3, 3, (s, d // 2)), 2)
    cos, sin = (m.constant(f(angles).reshape(m.one_of((s, d), (1, 1, s, d))), dtype) for f in (np.cos, np.sin))
    if m.chance(0.5):
        ends = [m.constant([v], np.int64) for v in (0, d // 2, 2**63 - 1, 3)]
        (first,) = m.apply("Slice", [x, ends[0], ends[1], ends[3]])
        (second,) = m.apply("Slice", [x, ends[1], ends[2], ends[3]])
    else:
        first, second = m.apply("Split", [x, m.constant([d // 2] * 2, np.int64)], 2, axis=-1)
    (second,) = m.apply("Neg", [second])
    (turned,) = m.apply("Concat", [second, first], axis=-1)
    (a,) = m.apply("Mul", [x, cos])
    (b,) = m.apply("Mul", [turned, sin])
    return m.apply("Add", [a, b])[0]


@op
def transformer(m):
    width = m.one_of(4, 6, 8, 12) if not m.large else m.one_of(32, 64, 96)
    x = m.add_input(m.numbers((m.number(1, 3), m.size(6), width), m.one_of(np.float32, np.float32, np.float16)))
    first = m.chance(0.7)  # the norm
    a = attention(m, norm(m, x) if first else x)
    (x,) = m.apply("Add", [x, a] if m.chance(0.5) else [a, x])
    if not first:
        x = norm(m, x)
    h = norm(m, x) if first else x
    inner = m.one_of(width, 2 * width, 5)
    if m.chance(0.4):
        gate, up = activation(m, linear(m, h, inner)), linear(m, h, inner)
        (h,) = m.apply("Mul", [gate, up] if m.chance(0.5) else [up, gate])
    else:
        h = activation(m, linear(m, h, inner))
    h = linear(m, h, width)
    (x,) = m.apply("Add", [x, h])
    if m.chance(0.5):
        norm(m, x)


@op
def feed_forward(m):
    x = some_float(m, 2, 3)
    if 0 in m.shape_of(x):
        return  # the peer keeps an axis that it reduces where another is empty
    h = activation(m, linear(m, norm(m, x) if m.chance(0.5) else x, m.size(8)))
    y = linear(m, h, m.shape_of(x)[-1])
    if m.chance(0.6):
        m.apply("Add", [x, y])
    if m.chance(0.3):
        m.apply("Mul", [h, value_of(m, 0.5, m.dtype(h))])  # what a fusion would swallow is read twice


def conv_layer(m, x, out, kernel=None, groups=1):
    n, c, *size = m.shape_of(x)
    dtype = m.dtype(x)
    kernel = kernel or m.one_of(1, 3)
    fan = c // groups * kernel ** len(size)
    w = m.constant(m.numbers((out, c // groups, *[kernel] * len(size)), dtype) / dtype.type(fan ** 0.5))
    bias = [m.constant(m.numbers((out,), dtype))] if m.chance(0.5) else []
    (y,) = m.apply("Conv", [x, w, *bias], pads=[kernel // 2] * 2 * len(size), group=groups)
    kind = m.number(0, 3)
    if kind == 0:
        (y,) = m.apply("BatchNormalization", [y, *[m.constant(m.numbers((out,), dtype)) for _ in range(3)],
                                              m.constant(np.abs(m.numbers((out,), dtype)) + dtype.type(0.5))])
    elif kind == 1:
        ones = [1] * len(size)
        (y,) = m.apply("Mul", [y, m.operand(m.one_of((out, *ones), (1, out, *ones), (), (1,)), dtype)])
        (y,) = m.apply("Add", [y, m.operand(m.one_of((out, *ones), (1, out, *ones), ()), dtype)])
    elif kind == 2:
        (y,) = m.apply("InstanceNormalization", [y, m.operand((out,), dtype), m.operand((out,), dtype)])
    return y


@op
def cnn(m):
    dims = m.one_of(1, 2, 2, 2)
    x = m.add_input(m.numbers((m.number(1, 2), m.one_of(2, 3, 4, 8), *[m.number(3, 24 if m.large else 7) for _ in range(dims)]),
                              m.one_of(np.float32, np.float32, np.float32, np.float16)))
    c = m.shape_of(x)[1]
    y = activation(m, conv_layer(m, x, c))
    if m.chance(0.5):
        y = activation(m, conv_layer(m, y, c, 3, c))
    if m.chance(0.4):  # squeeze and excite
        (s,) = m.apply("GlobalAveragePool", [y])
        s = activation(m, conv_layer(m, s, max(1, c // 2), 1))
        (s,) = m.apply(m.one_of("Sigmoid", "HardSigmoid"), [conv_layer(m, s, c, 1)])
        (y,) = m.apply("Mul", [y, s])
    y = conv_layer(m, y, c)
    if m.chance(0.6):
        (y,) = m.apply("Add", [y, x] if m.chance(0.5) else [x, y])
    if m.chance(0.6):
        y = activation(m, y)
    if m.chance(0.3) and dims == 2:
        m.apply("Resize", [y, "", m.constant([1, 1, 2, 2], np.float32)], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    if m.chance(0.3):
        (p,) = m.apply("GlobalAveragePool", [y])
        (p,) = m.apply("Flatten", [p])
        linear(m, p, m.number(1, 6))


@op
def half(m):
    """Into f16 and back."""
    x = m.some((np.float32,), 0, 4)
    (h,) = m.apply("Cast", [x], to=TensorProto.FLOAT16)
    for _ in range(m.number(0, 3)):
        (h,) = m.apply(m.one_of("Add", "Mul", "Sub"), [h, partner(m, h)])
    m.apply("Cast", [h], to=TensorProto.FLOAT)


# Rounding decides in these, see random_models.py.
CHOOSING = {quantize_and_back, quantize_by_range, quantized_model, integer_matmul, integer_conv, any_branch}
