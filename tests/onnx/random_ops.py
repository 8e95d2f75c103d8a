"""Single ops for random_models.py with whatever attributes, shapes and dtypes are legal: onnxruntime says what that is."""

import numpy as np
from onnx import numpy_helper

from random_graph import FLOATS, INTS, elem, op

SMALL_INTS = (np.int8, np.uint8)
ANY = (np.float32, np.int64, np.int32, bool, np.float64, np.uint8, np.int8, np.float16)


# ---- windows

def image(m, dtypes=(np.float32,), dims=None, low=1, high=9):
    """A value [N, C, spatial…]."""
    ranks = [2 + dims] if dims else [3, 4, 5]
    found = [n for n, (d, s) in m.values.items() if d in [np.dtype(t) for t in dtypes] and len(s) in ranks and 0 not in s[1:] and np.prod(s) < 4000]
    if found and m.chance(0.6):
        return str(m.rng.choice(found))
    rank = m.one_of(*ranks)
    spatial = [m.number(low, (30 if m.large else high) if rank < 5 else 5) for _ in range(rank - 2)]
    return m.add_input(m.numbers((m.number(1, 2), m.one_of(1, 2, 3, 4, 6), *spatial), m.one_of(*dtypes)))


def window(m, size, dilations=True, pads=True):
    """Attributes of a window over an image, which it is never larger than: the peer makes an element of nothing there."""
    rank = len(size)
    kernel = [m.number(1, max(1, min(4, s))) for s in size]
    attributes = {"kernel_shape": kernel}
    if m.chance(0.7):
        attributes["strides"] = [m.number(1, 3) for _ in size]
    if dilations and m.chance(0.3):
        attributes["dilations"] = [m.number(1, 2 if 2 * k - 1 <= s else 1) for k, s in zip(kernel, size)]
    if not pads:
        return attributes
    # The peer's pools leave dilations out of the pads of SAME, its other windows refuse them.
    auto = m.one_of("NOTSET", "NOTSET", "NOTSET", "VALID", *(() if "dilations" in attributes else ("SAME_UPPER", "SAME_LOWER")))
    if auto != "NOTSET" or m.chance(0.2):
        attributes["auto_pad"] = auto
    if "SAME" in auto:  # a kernel smaller than its stride: pads would be negative
        attributes["strides"] = [m.number(1, k) for k in kernel]
    if auto == "NOTSET":
        attributes["pads"] = [m.number(0, kernel[i % rank] - 1) for i in range(2 * rank)]
    return attributes


@op
def any_conv(m):
    x = image(m)
    n, c, *size = m.shape_of(x)
    groups = m.one_of(1, 1, c, m.one_of(*[g for g in range(1, c + 1) if c % g == 0]))
    out = groups * m.number(1, 4)
    attributes = window(m, size)
    bias = [m.operand((out,), np.float32)] if m.chance(0.6) else []
    m.apply("Conv", [x, m.operand((out, c // groups, *attributes["kernel_shape"]), np.float32), *bias], group=groups, **attributes)


@op
def conv_transpose(m):
    x = image(m)
    n, c, *size = m.shape_of(x)
    groups = m.one_of(1, 1, c)
    out = m.number(1, 3)
    attributes = window(m, [4] * len(size))
    strides = attributes.get("strides", [1] * len(size))
    if m.chance(0.3):
        attributes["output_padding"] = [m.number(0, max(s, d) - 1) for s, d in
                                        zip(strides, attributes.get("dilations", [1] * len(size)))]
    bias = [m.operand((out * groups,), np.float32)] if m.chance(0.5) else []
    m.apply("ConvTranspose", [x, m.operand((c, out, *attributes["kernel_shape"]), np.float32), *bias], group=groups, **attributes)


@op
def any_pool(m):
    kind = m.one_of("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool")
    x = image(m, (np.float32, np.float32, np.uint8, np.int8, np.float64) if kind == "MaxPool" else (np.float32,))
    size = m.shape_of(x)[2:]
    attributes = window(m, size, kind == "MaxPool" or m.opset >= (18 if kind == "LpPool" else 19))
    if m.chance(0.4) and (kind != "LpPool" or m.opset >= 18) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if kind == "AveragePool" and m.chance(0.5):
        attributes["count_include_pad"] = 1
    if kind == "LpPool":
        attributes["p"] = m.number(1, 3)
    if kind == "MaxPool" and m.chance(0.4) and m.dtype(x) == np.float32:
        m.apply(kind, [x], 2, storage_order=m.number(0, 1), **attributes)
    else:
        m.apply(kind, [x], **attributes)


@op
def whole_image(m):
    x = image(m)
    kind = m.one_of("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "LRN", "InstanceNormalization", "MeanVarianceNormalization")
    c = m.shape_of(x)[1]
    if kind == "LRN":
        m.apply(kind, [x], size=m.one_of(1, 3, 5), alpha=0.1, beta=0.6, bias=1.5)
    elif kind == "InstanceNormalization":
        m.apply(kind, [x, m.operand((c,), np.float32), m.operand((c,), np.float32)], epsilon=1e-2)
    else:
        if kind == "MeanVarianceNormalization" and len(m.shape_of(x)) < 4:
            return  # its axes are 0, 2 and 3; the peer does not look
        m.apply(kind, [x], **({"p": m.number(1, 3)} if kind == "GlobalLpPool" else {}))


@op
def any_resize(m):
    x = image(m, (np.float32, np.float32, np.float32, np.uint8), m.one_of(1, 2, 2, 2, 3), high=6)
    shape = m.shape_of(x)
    mode = m.one_of("nearest", "linear", "cubic") if len(shape) == 4 else m.one_of("nearest", "linear")
    if m.dtype(x) == np.uint8:
        mode = "nearest"  # else the peer does not round to the nearest integer, ONNX's reference does
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    if m.opset >= 19:
        coordinates.append("half_pixel_symmetric")
    attributes = {"mode": mode, "coordinate_transformation_mode": m.one_of(*coordinates)}
    if mode == "nearest":
        attributes["nearest_mode"] = m.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes.update(cubic_coeff_a=m.one_of(-0.75, -0.5), exclude_outside=m.number(0, 1))
    of_length = attributes["coordinate_transformation_mode"] in ("align_corners", "pytorch_half_pixel")
    if m.opset >= 18 and mode != "nearest" and not of_length and m.chance(0.3):
        attributes["antialias"] = 1  # down to one element the peer differs from the reference
    free = len(shape) - 2
    axes = list(range(2, len(shape)))
    if m.opset >= 18 and m.chance(0.4):
        attributes["axes"], lead = axes, []
    else:
        lead = list(shape[:2])
    # Where the length counts and scales are given, the peer takes the length it has rounded down, ONNX's cases the one before.
    # The nearest of points that lie on an edge, or would without rounding, are left out by simple factors.
    exact = mode == "nearest"
    factors = [1.0, 2.0, 3.0] if exact else [0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.3, 3.0]
    if (m.chance(0.5) or of_length) and not (exact and m.dynamic):
        least = 2 if of_length else 1  # of one element the peer has another middle than the reference when it is cubic
        scaled = [s * m.one_of(1, 2, 3) if exact else max(least, int(s * m.rng.uniform(0.4, 2.5))) for s in shape[2:]]
        sizes = np.array([*lead, *scaled], np.int64)
        if m.opset >= 18 and m.chance(0.2) and "axes" in attributes and not exact and not of_length:  # as with scales
            attributes["keep_aspect_ratio_policy"] = m.one_of("not_larger", "not_smaller")
        m.apply("Resize", [x, "", "", m.given(sizes)], **attributes)
    else:
        scales = np.array([1.0] * len(lead) + [m.one_of(*([1.0, 2.0] if of_length else factors)) for _ in range(free)], np.float32)
        m.apply("Resize", [x, "", m.given(scales)], **attributes)


@op
def sampled(m):
    dims = 3 if m.opset >= 20 and m.chance(0.3) else 2
    x = image(m, dims=dims)
    n = m.shape_of(x)[0]
    names = ["linear", "nearest", "cubic"] if m.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    kind = m.one_of(*names) if dims == 2 else m.one_of(*names[:2])
    align = m.number(0, 1)
    if m.opset >= 20 and m.chance(0.3):  # of one element with aligned corners: a division by 0
        theta = m.operand((n, dims, dims + 1), np.float32)
        (grid,) = m.apply("AffineGrid", [theta, m.constant([n, 1, *[m.number(1 + align, 5) for _ in range(dims)]], np.int64)], align_corners=align)
    else:
        grid = m.add_input(m.rng.uniform(-1.5, 1.5, (n, *[m.number(1, 5) for _ in range(dims)], dims)).astype(np.float32))
    pads = ["zeros", "reflection"] if "cubic" in kind else ["zeros", "border", "reflection"]  # the peer's cubic border is not the reference's
    m.apply("GridSample", [x, grid], mode=kind, padding_mode=m.one_of(*pads), align_corners=align)


@op
def regions(m):
    x = image(m, dims=2)
    n, c, h, w = m.shape_of(x)
    count = m.number(1, 3)
    corners = np.sort(m.rng.uniform(-1, 9, (count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32)
    extra = {"coordinate_transformation_mode": m.one_of("half_pixel", "output_half_pixel")} if m.opset >= 16 else {}
    m.apply("RoiAlign", [x, m.given(corners), m.given(m.rng.integers(0, n, count), np.int64)], mode=m.one_of("avg", "max"),
            output_height=m.number(1, 4), output_width=m.number(1, 4), sampling_ratio=m.number(0, 2), spatial_scale=0.5, **extra)


@op
def rearranged(m):
    block = m.number(1, 3)
    n, c, h, w = (m.number(1, 3) for _ in range(4))
    if m.chance(0.5):
        x = m.add_input(m.numbers((n, c * block * block, h, w), np.float32))
        m.apply("DepthToSpace", [x], blocksize=block, mode=m.one_of("DCR", "CRD"))
    else:
        x = m.add_input(m.numbers((n, c, h * block, w * block), np.float32))
        m.apply("SpaceToDepth", [x], blocksize=block)


@op
def columns_to_image(m):
    if m.opset < 18:
        return
    n, c, h, w = m.number(1, 2), m.number(1, 3), m.number(3, 6), m.number(3, 6)
    attributes = window(m, [h, w])
    kernel = attributes.pop("kernel_shape")
    attributes.pop("auto_pad", None)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    blocks = [(s + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i, s in enumerate((h, w))]
    if min(blocks) < 1:
        return
    x = m.add_input(m.numbers((n, c * kernel[0] * kernel[1], blocks[0] * blocks[1]), np.float32))
    m.apply("Col2Im", [x, m.constant([h, w], np.int64), m.constant(kernel, np.int64)], **attributes)


# ---- elements that move

@op
def any_pad(m):
    x = m.some((np.float32, np.int32, np.int64, np.float64, np.uint8), 1)
    shape = m.shape_of(x)
    modes = ["constant", "edge", "reflect"] + (["wrap"] if m.opset >= 19 else [])
    mode = m.one_of(*modes)
    axes = sorted(int(a) for a in m.rng.choice(len(shape), m.number(1, len(shape)), replace=False)) if m.opset >= 18 and m.chance(0.4) else None
    sizes = [shape[a] for a in axes] if axes else shape
    low = -1 if m.chance(0.3) and min(shape) > 2 else 0
    pads = [m.number(low, 2 if mode == "constant" or mode == "edge" else max(0, s - 1)) for s in [*sizes, *sizes]]
    inputs = [x, m.given(pads, np.int64)]
    if mode == "constant" and m.chance(0.6) or axes:
        inputs.append(m.given(np.array(3), m.dtype(x)) if mode == "constant" else "")
    if axes:
        inputs.append(m.constant([a - len(shape) * m.number(0, 1) for a in axes], np.int64))
    m.apply("Pad", inputs, mode=mode)


@op
def any_slice(m):
    x = m.some(ANY, 1)
    shape = m.shape_of(x)
    axes = [int(a) for a in m.rng.choice(len(shape), m.number(1, len(shape)), replace=False)]
    steps = [m.one_of(1, 1, 2, 3, -1, -2, -3) for _ in axes]
    starts = [m.number(-shape[a] - 2, shape[a] + 1) for a in axes]
    # The largest integers: backwards the peer takes them for the smallest, ONNX clamps them.
    ends = [m.one_of(-2**31, -2**63, -1, 0, *((2**31 - 1, 2**63 - 1) if step > 0 else ()), m.number(-shape[a], shape[a]))
            for a, step in zip(axes, steps)]
    kind = m.one_of(*INTS) if all(abs(e) < 2**31 for e in ends) else np.int64
    inputs = [x, m.given(starts, kind), m.given(ends, kind), m.constant([a - len(shape) * m.number(0, 1) for a in axes], kind)]
    if m.chance(0.8):
        inputs.append(m.given(steps, kind))
    m.apply("Slice", inputs)


@op
def any_split(m):
    x = m.some(ANY, 1)
    axis = m.axis(x)
    size = m.shape_of(x)[axis]
    if m.opset >= 18 and m.chance(0.5):
        parts = m.number(1, min(4, max(1, size)))
        m.apply("Split", [x], parts, axis=axis, num_outputs=parts)
    else:
        cut = sorted(m.number(0, size) for _ in range(m.number(1, 2)))
        sizes = np.diff([0, *cut, size])
        m.apply("Split", [x, m.constant(sizes, np.int64)], len(sizes), axis=axis)


def indices(m, limit, shape, negative=True):
    return m.given(m.rng.integers(-limit if negative else 0, limit, shape), m.one_of(*INTS)) if limit else m.constant(np.zeros(shape), np.int64)


@op
def gathers(m):
    x = m.some(ANY, 1)
    shape, axis = m.shape_of(x), m.axis(x)
    kind = m.number(0, 2)
    if kind == 0:
        m.apply("Gather", [x, indices(m, shape[axis], m.shape(0, 2) if m.chance(0.9) else (0,))], axis=axis)
    elif kind == 1:
        target = [m.number(1, s) if s else 0 for s in shape]
        target[axis] = m.number(1, 4)
        m.apply("GatherElements", [x, indices(m, shape[axis], target)], axis=axis)
    else:
        batch = m.number(0, len(shape) - 1) if not m.dynamic else 0  # the peer does not look whether they are as many
        depth = m.number(1, len(shape) - batch)
        if 0 in shape:
            return
        places = (*shape[:batch], *m.one_of((), (2,), (3, 1)))
        at = [m.rng.integers(-s, s, places) for s in shape[batch:batch + depth]]
        m.apply("GatherND", [x, m.given(np.stack(at, -1), np.int64)], batch_dims=batch)


@op
def scatters(m):
    x = m.some((np.float32, np.int64, np.int32, np.float64), 1)
    shape, axis = m.shape_of(x), m.axis(x)
    if 0 in shape:
        return
    reductions = ["none"] + (["add", "mul"] if m.opset >= 16 else []) + (["max", "min"] if m.opset >= 18 else [])
    reduction = m.one_of(*reductions)
    extra = {"reduction": reduction} if m.opset >= 16 else {}
    unique = reduction == "none"  # the order of writes is nobody's
    if m.chance(0.5):
        size = shape[axis]
        count = m.number(1, size)
        target = [m.number(1, s) for s in shape]
        target[axis] = count
        if unique:
            at = np.argsort(m.rng.random([size if i == axis % len(shape) else t for i, t in enumerate(target)]), axis=axis)
            at = np.take(at, range(count), axis=axis)
            at = np.where(m.rng.random(at.shape) < 0.3, at - size, at)
        else:
            at = m.rng.integers(-size, size, target)
        m.apply("ScatterElements", [x, m.given(at, m.one_of(*INTS)), m.operand(at.shape, m.dtype(x))], axis=axis, **extra)
    else:
        depth = m.number(1, len(shape))
        places = int(np.prod(shape[:depth]))
        flat = m.rng.permutation(places)[:m.number(1, places)] if unique else m.rng.integers(0, places, m.number(1, 5))
        at = np.stack(np.unravel_index(flat[:8], shape[:depth]), -1)
        at = np.where(m.rng.random(at.shape) < 0.3, at - np.array(shape[:depth]), at)
        m.apply("ScatterND", [x, m.given(at, np.int64), m.operand((len(at), *shape[depth:]), m.dtype(x))], **extra)


@op
def any_shape(m):
    x = m.some(ANY, 0, 4)
    shape = m.shape_of(x)
    kind = m.number(0, 6)
    if kind == 0:
        m.apply("Flatten", [x], axis=m.number(-len(shape), len(shape)))
    elif kind == 1:
        ones = [i for i, s in enumerate(shape) if s == 1]
        axes = [i - len(shape) * m.number(0, 1) for i in ones if m.chance(0.7)]
        m.apply("Squeeze", [x, m.constant(axes, np.int64)] if axes else [x])  # no axes are all axes to the peer
    elif kind == 2 and len(shape) <= 3:
        rank = len(shape) + 2
        axes = m.rng.choice(rank, 2, replace=False) - rank * m.rng.integers(0, 2, 2)
        m.apply("Unsqueeze", [x, m.constant(axes, np.int64)])
    elif kind == 3 and shape:
        target = [0 if m.chance(0.5) else s for s in shape]
        if m.chance(0.5) and 0 not in shape:
            target[m.number(0, len(shape) - 1)] = -1
        m.apply("Reshape", [x, m.given(target, np.int64)])
    elif kind == 4 and m.opset >= 15:
        m.apply("Shape", [x], start=m.number(-5, 2), end=m.number(-1, 5))
    elif kind == 5:
        m.apply("Size", [x])
    else:
        m.apply("Transpose", [x])


@op
def any_expand(m):
    x = m.some(ANY, 0, 3)
    shape = m.shape_of(x)
    if m.chance(0.5):
        target = [s if m.chance(0.7) else 1 for s in shape]
        target = [m.number(1, 4) if s == 1 and m.chance(0.6) else t for s, t in zip(shape, target)]
        lead = [m.number(1, 3) for _ in range(m.number(0, 2))]
        m.apply("Expand", [x, m.given([*lead, *target], np.int64)])
    else:
        m.apply("Tile", [x, m.given([m.one_of(1, 1, 2, 3, 0) if m.chance(0.5) else 2 for _ in shape], np.int64)])


@op
def any_concat(m):
    x = m.some(ANY, 1)
    axis = m.axis(x)
    parts = [x]
    for _ in range(m.number(0, 3)):
        shape = list(m.shape_of(x))
        shape[axis] = m.number(int(m.dynamic), 3)  # of empty parts the peer takes any other sizes
        parts.insert(m.number(0, len(parts)), x if m.chance(0.2) else m.operand(tuple(shape), m.dtype(x)))
    m.apply("Concat", parts, axis=axis)


@op
def triangle(m):
    x = m.some((np.float32, np.int64, np.float64), 2)
    if m.opset >= 14:
        m.apply("Trilu", [x, m.given(np.array(m.number(-4, 4)), np.int64)] if m.chance(0.8) else [x], upper=m.number(0, 1))


@op
def made_of_sizes(m):
    x = m.some((np.float32,), 1)
    (shape,) = m.apply("Shape", [x])
    kind = m.number(0, 2)
    if kind == 0:
        value = m.numbers((1,), m.one_of(np.float32, np.int64, np.int32))
        (y,) = m.apply("ConstantOfShape", [shape], value=numpy_helper.from_array(value))
        if value.dtype == np.float32:
            m.apply("Add", [x, y])
    elif kind == 1:
        (last,) = m.apply("Gather", [shape, m.constant(-1, np.int64)])
        (steps,) = m.apply("Range", [m.constant(0, np.int64), last, m.constant(1, np.int64)])
        (steps,) = m.apply("Cast", [steps], to=elem(np.float32))
        (steps,) = m.apply("Mul", [steps, m.constant(0.1, np.float32)])
        m.apply("Add", [x, steps])
    else:
        square = m.some((np.float32,), 2, 2)
        m.apply("EyeLike", [square], k=m.number(-2, 2), dtype=elem(m.one_of(np.float32, np.int64, np.int32)))


@op
def turned(m):
    x = m.some((np.float32, np.int64), 2)
    time = m.number(0, 1)
    shape = m.shape_of(x)
    if 0 not in shape:
        m.apply("ReverseSequence", [x, m.given(m.rng.integers(1, shape[time] + 1, shape[1 - time]), np.int64)], time_axis=time, batch_axis=1 - time)


# ---- results whose shapes depend on data

@op
def found(m):
    """NonZero, Unique, Compress, and what follows them, down to a shape that everybody knows again."""
    x = m.some((np.float32, np.int64, np.int32), 1, 3)
    shape = m.shape_of(x)
    before = set(m.values)
    kind = m.number(0, 1 if m.dynamic or 0 in shape else 2)  # a condition longer than the axis: the peer cuts it off, ONNX says nothing
    if kind == 0:
        (mask,) = m.apply("Greater", [x, m.constant(0, m.dtype(x))])
        (y,) = m.apply("NonZero", [mask])
        if m.chance(0.5):
            (y,) = m.apply("Transpose", [y], perm=[1, 0])
            (y,) = m.apply("GatherND", [x, y])
    elif kind == 1:
        x = m.some(INTS, 1, 3)  # of floats rounding decides which are the same
        (y,) = m.apply("Unique", [x], sorted=1, **({"axis": m.axis(x)} if m.chance(0.3) else {}))
    else:
        axis = m.axis(x)
        (y,) = m.apply("Compress", [x, m.given(m.numbers((m.number(1, shape[axis]),), bool))], axis=axis)
    (end,) = m.apply("ReduceSum", [y], keepdims=0) if m.dtype(y) == np.float32 else m.apply("Size", [y])
    m.hide(set(m.values) - before - set(m.inputs) - {end})


# ---- along axes

@op
def any_reduce(m):
    kind = m.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
                    "ReduceProd", "ReduceLogSum")
    x = m.some((np.float32, np.float32, np.int32, np.int64, np.float64), 0)
    if kind == "ReduceLogSum":
        x = m.some((np.float32, np.float64))
        (x,) = m.apply("Abs", [x])
    rank = len(m.shape_of(x))
    axes = [int(a) - rank * m.number(0, 1) for a in m.rng.choice(rank, m.number(0, rank), replace=False)] if rank else []
    if m.dtype(x) in INTS and (kind == "ReduceLogSumExp" or np.abs(m.array(x)).max(initial=0) > 9):
        return  # what these mean of integers is not said: of any, and of those beyond the largest
    if 0 in m.shape_of(x) and kind != "ReduceSum":
        return  # of nothing; and the peer keeps an axis that it reduces where one is empty
    attributes = {"keepdims": m.number(0, 1)} if m.chance(0.8) else {}
    if kind == "ReduceSum" or m.opset >= 18:
        if m.chance(0.3):
            attributes["noop_with_empty_axes"] = m.number(0, 1)
        m.apply(kind, [x, m.given(axes, np.int64)] if m.chance(0.8) else [x], **attributes)
    else:
        m.apply(kind, [x], **attributes, **({"axes": axes} if axes else {}))


@op
def any_arg(m):
    x = m.some((np.float32, np.int32, np.float64, np.uint8), 1)
    if 0 in m.shape_of(x):
        return  # of nothing
    if m.chance(0.2):
        m.apply("Hardmax", [x], axis=m.axis(x))
    else:
        m.apply(m.one_of("ArgMax", "ArgMin"), [x], axis=m.axis(x), keepdims=m.number(0, 1), select_last_index=m.number(0, 1))


@op
def any_top_k(m):
    x = m.some((np.float32, np.int64, np.int32, np.float64), 1)
    axis = m.axis(x)
    size = m.shape_of(x)[axis]
    m.apply("TopK", [x, m.given([m.number(0 if m.chance(0.1) else min(1, size), size)], np.int64)], 2, axis=axis, largest=m.number(0, 1))


@op
def any_sum(m):
    x = m.some((np.float32, np.int64, np.int32, np.float64), 1)
    m.apply("CumSum", [x, m.given(np.array(m.axis(x)), m.one_of(*INTS))], exclusive=m.number(0, 1), reverse=m.number(0, 1))


@op
def any_softmax(m):
    x = m.some((np.float32, np.float32, np.float64, np.float16), 1)
    m.apply(m.one_of("Softmax", "LogSoftmax"), [x], **({"axis": m.axis(x)} if m.chance(0.8) else {}))


@op
def unit_rows(m):
    x = m.some((np.float32,), 1)
    m.apply("LpNormalization", [x], axis=m.axis(x), p=m.number(1, 2))


# ---- element by element

def partner(m, x):
    """An operand that broadcasts with x, either way."""
    shape = [1 if m.chance(0.3) else s for s in m.shape_of(x)]
    shape = shape[m.number(0, len(shape)):] if m.chance(0.4) else shape
    if m.chance(0.15):
        shape = [m.number(1, 3) if s == 1 else s for s in shape]
    return m.operand(tuple(shape), m.dtype(x))


@op
def any_binary(m):
    kind = m.one_of("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Mod", "Max", "Min", "Less", "Equal", "Greater")
    floats = (np.float32, np.float32, np.float64, np.float16)
    x = m.some((*floats, *INTS) if kind != "Mod" else (np.float32, *INTS, *SMALL_INTS))
    y = partner(m, x)
    dtype = m.dtype(x)
    if kind in ("Div", "Mod"):
        (y,) = m.apply("Abs", [y])
        (y,) = m.apply("Max", [y, m.constant(1, dtype)]) if dtype not in SMALL_INTS or m.opset >= 12 else (y,)
        if kind == "Mod" and dtype not in (np.uint8,) and m.chance(0.5):
            (y,) = m.apply("Neg", [y])
    if kind == "Pow":
        (x,) = m.apply("Abs", [x])
        if dtype in FLOATS:
            (x,) = m.apply("Add", [x, m.constant(0.5, dtype)])
        y = m.constant(m.one_of(0, 1, 2, 3), m.one_of(dtype, np.float32, np.int64)) if m.chance(0.6) or dtype not in FLOATS else y
    attributes = {"fmod": 1 if dtype in FLOATS else m.number(0, 1)} if kind == "Mod" else {}
    swap = kind not in ("Div", "Mod", "Pow") and m.chance(0.5)
    m.apply(kind, [y, x] if swap else [x, y], **attributes)


@op
def bits(m):
    x = m.some((np.int32, np.int64, np.uint8, np.int8))
    kind = m.one_of("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift") if m.opset >= 18 else "BitShift"
    if kind == "BitwiseNot":
        m.apply(kind, [x])
    elif kind == "BitShift":
        x = m.some((np.uint8, np.uint32, np.uint64), 1)
        m.apply(kind, [x, m.given(m.rng.integers(0, 7, m.shape_of(x)), m.dtype(x))], direction=m.one_of("LEFT", "RIGHT"))
    else:
        m.apply(kind, [x, partner(m, x)])


@op
def several(m):
    x = m.some((np.float32, np.float32, np.float64))
    kind = m.one_of("Max", "Min", "Sum", "Mean")
    m.apply(kind, [x, *[partner(m, x) for _ in range(m.number(0, 3))]])


@op
def any_where(m):
    x = m.some((np.float32, *INTS, np.uint8, bool, np.float64))
    y = partner(m, x)
    condition = m.operand(tuple(1 if m.chance(0.4) else s for s in m.shape_of(x)), bool)
    m.apply("Where", [condition, x, y] if m.chance(0.5) else [condition, y, x])


@op
def any_clip(m):
    x = m.some((np.float32, *INTS, *SMALL_INTS, np.float64, np.float16))
    dtype = m.dtype(x)
    low, high = (m.given(np.array(v), dtype) if m.chance(0.7) else "" for v in (1, 3))
    m.apply("Clip", [x, low, high] if high else [x, low] if low else [x])


@op
def any_cast(m):
    x = m.some(ANY)
    to = m.one_of(*ANY)
    if np.issubdtype(m.dtype(x), np.floating) and np.dtype(to) in (np.uint8,):
        (x,) = m.apply("Abs", [x])  # what a negative number becomes is nobody's
    if m.chance(0.3) and m.opset >= 15:
        m.apply("CastLike", [x, m.operand((1,), to)])
    else:
        m.apply("Cast", [x], to=elem(to))


@op
def any_unary(m):
    x = m.some((np.float32, np.float32, np.float64, np.float16))
    later = {"Gelu": 20, "Swish": 24, "Mish": 18, "HardSwish": 14}
    kinds = ["PRelu", "ThresholdedRelu", "Shrink", "IsNaN", "IsInf", "LeakyRelu", "Elu", "HardSigmoid", "Celu", "Relu", "Sigmoid", "Tanh",
             "Sqrt", "Softplus", "Neg", *[k for k, v in later.items() if m.opset >= v]]
    kind = m.one_of(*kinds)
    slopes = {"ThresholdedRelu": {"alpha": 0.4}, "LeakyRelu": {"alpha": 0.3}, "Elu": {"alpha": 0.7}, "Celu": {"alpha": 1.5},
              "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Shrink": {"lambd": 0.4, "bias": 0.2},
              "Gelu": {"approximate": m.one_of("none", "tanh")}, "Swish": {"alpha": 1.2}}
    if kind == "Sqrt":
        (x,) = m.apply("Abs", [x])
    if kind == "PRelu":
        shape = m.shape_of(x)
        m.apply(kind, [x, m.operand(tuple(1 if m.chance(0.5) else s for s in shape[m.number(0, len(shape)):]), m.dtype(x))])
    else:
        m.apply(kind, [x], **(slopes.get(kind, {}) if m.chance(0.7) else {}))


@op
def any_one_hot(m):
    depth = m.number(1, 5)
    at = m.rng.integers(-depth, depth, m.shape(0, 2))
    values = m.numbers((2,), m.one_of(np.float32, np.int64, np.int32))
    rank = at.ndim + 1
    kind = m.one_of(np.int64, np.float32, np.int32)
    m.apply("OneHot", [m.given(at, kind), m.given(m.one_of([depth], depth), np.int64), m.given(values)], axis=m.number(-rank, rank - 1))


# Rounding decides in these, see random_models.py.
CHOOSING = {any_arg, any_top_k, any_cast, any_binary, found, sampled, any_resize, regions, any_clip, any_unary}
