#!/usr/bin/env python3
"""Compares rlx with ONNX Runtime where ONNX's own node cases say nothing: the ops of domain com.microsoft, and options
of recurrent ops.

    compare_contrib.py path/to/rlx [--device NAME] [--filter GLOB] [--keep DIR]

Each case is a model of one node with random inputs. ONNX Runtime's results are stored as a case in ONNX's layout, and
`rlx test-onnx` judges them all. A case that ONNX Runtime refuses is a fault of this script.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

MS = "com.microsoft"
CASES = {}


def case(name, op, inputs, outputs=1, domain=MS, constants=(), version=20, elem=None, judge=None,
         dims=None, **attrs):
    """Registers a model of one node. `inputs` are arrays, None where one is left out; those whose numbers stand in
    `constants` are initializers. `outputs` is a number, or a list with "" for those not asked for. `elem` names an
    ONNX type for inputs that NumPy has no type for, by number. `judge` are inputs that mean the same, for what ONNX
    Runtime does not do on a CPU. `dims` names sizes by input number ("batch, steps, 4"): the model must become one
    graph whatever they are."""
    assert name not in CASES, name
    CASES[name] = dict(op=op, inputs=inputs, outputs=outputs, domain=domain, constants=constants, version=version,
                       elem=elem or {}, judge=judge, dims=dims or {}, attrs=attrs)


def tensor_proto(name, array, elem):
    if elem is None:
        return numpy_helper.from_array(array, name)
    return helper.make_tensor(name, elem, array.shape, array.flatten().tolist())


def build(c, inputs):
    """The model, and the protos of the inputs that a run gives."""
    names = ["" if x is None else f"in{i}" for i, x in enumerate(inputs)]
    count = c["outputs"]
    wanted = ["y"] * count if isinstance(count, int) else count
    outs = [f"out{i}" if w else "" for i, w in enumerate(wanted)]
    initializers, feeds, infos = [], [], []
    for i, x in enumerate(inputs):
        if x is None:
            continue
        proto = tensor_proto(names[i], x, c["elem"].get(i))
        if i in c["constants"]:
            initializers.append(proto)
        else:
            feeds.append(proto)
            shape = [int(d) if d.isdigit() else d for d in c["dims"][i].split(", ")] if i in c["dims"] else x.shape
            infos.append(helper.make_tensor_value_info(names[i], proto.data_type, shape))
    node = helper.make_node(c["op"], names, outs, domain=c["domain"], **c["attrs"])
    results = [onnx.ValueInfoProto(name=o) for o in outs if o]
    graph = helper.make_graph([node], "g", infos, results, initializers)
    opsets = [helper.make_opsetid("", c["version"])]
    if c["domain"]:
        opsets.append(helper.make_opsetid(c["domain"], 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def write(name, folder):
    c = CASES[name]
    judge, judged = build(c, c["judge"] or c["inputs"])
    model, feeds = build(c, c["inputs"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(judge.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, {f.name: numpy_helper.to_array(f) for f in judged})
    data = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(data)
    # ONNX Runtime infers the types of the results; the file states them.
    for info, array in zip(model.graph.output, results):
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, elem, array.shape))
    onnx.save(model, os.path.join(folder, name, "model.onnx"))
    for i, feed in enumerate(feeds):
        with open(os.path.join(data, f"input_{i}.pb"), "wb") as f:
            f.write(feed.SerializeToString())
    for i, array in enumerate(results):
        with open(os.path.join(data, f"output_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(array, model.graph.output[i].name).SerializeToString())


RNG = np.random.default_rng(7)


def f32(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def codes(dtype, *shape):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return RNG.integers(low, high + 1, shape).astype(dtype)


def weights(dtype, *shape):
    """Codes of a matrix. Those of int8 have 7 bits: on a processor without VNNI, ONNX Runtime adds pairs of products of uint8 and
    int8 in 16 bits, which saturates beyond (its "reduce_range")."""
    return RNG.integers(-64, 64, shape).astype(dtype) if dtype == np.int8 else codes(dtype, *shape)


# ---- recurrent ops: [steps, batch, inputs] = [5, 3, 4], 6 hidden

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def recurrent(name, op, direction="forward", bias=True, lengths=None, states=False, peephole=False, symbolic=False,
              steps=5, **attrs):
    d, g, h = (2 if direction == "bidirectional" else 1), GATES[op], 6
    inputs = [f32(steps, 3, 4), f32(d, g * h, 4, scale=0.5), f32(d, g * h, h, scale=0.5),
              f32(d, 2 * g * h, scale=0.5) if bias else None, lengths, f32(d, 3, h) if states else None]
    if op == "LSTM":
        inputs += [f32(d, 3, h) if states else None, f32(d, 3 * h) if peephole else None]
    while inputs[-1] is None:
        inputs.pop()
    state = f"{d}, batch, {h}"
    case(f"{op.lower()}_{name}", op, inputs, outputs=3 if op == "LSTM" else 2, domain="", constants=(1, 2, 3),
         dims={0: "steps, batch, 4", 4: "batch", 5: state, 6: state} if symbolic else None, hidden_size=h,
         direction=direction, **attrs)


for op in GATES:
    for direction in ("forward", "reverse", "bidirectional"):
        recurrent(f"plain_{direction}", op, direction, bias=False)
        recurrent(f"states_{direction}", op, direction, states=True)
        recurrent(f"lengths_{direction}", op, direction, lengths=i32(5, 2, 3), states=True)
        recurrent(f"clip_{direction}", op, direction, states=True, clip=0.4)
    recurrent("symbolic", op, "bidirectional", states=True, symbolic=True)
    recurrent("symbolic_clip", op, "bidirectional", states=True, symbolic=True, clip=0.4)
    recurrent("symbolic_lengths", op, "reverse", symbolic=True, lengths=i32(5, 2, 3))
    recurrent("full_lengths", op, lengths=i32(5, 5, 5))
    recurrent("no_steps", op, "bidirectional", symbolic=True, steps=0, lengths=i32(0, 0, 0))
    twice = USUAL[op] * 2
    recurrent("relu", op, "bidirectional", activations=["Relu"] * len(twice))
    for function, alpha, beta in (("Affine", 0.7, 0.1), ("LeakyRelu", 0.2, None), ("ThresholdedRelu", 0.3, None),
                                  ("ScaledTanh", 0.8, 0.6), ("HardSigmoid", 0.3, 0.4), ("Elu", 0.9, None),
                                  ("Softsign", None, None), ("Softplus", None, None)):
        extra = {}
        if alpha is not None:
            extra["activation_alpha"] = [alpha] * len(USUAL[op])
        if beta is not None:
            extra["activation_beta"] = [beta] * len(USUAL[op])
        if op != "RNN" and function == "Softplus":  # grows until ONNX Runtime's overflows
            continue
        recurrent(function.lower(), op, activations=[function] * len(USUAL[op]), **extra)
recurrent("mixed_functions", "LSTM", "bidirectional", states=True,
          activations=["HardSigmoid", "Tanh", "Affine", "Sigmoid", "LeakyRelu", "Tanh"],
          activation_alpha=[0.3, 0.7, 0.05], activation_beta=[0.45, 0.2])
for direction in ("forward", "bidirectional"):
    recurrent(f"linear_before_reset_{direction}", "GRU", direction, states=True, linear_before_reset=1)
    recurrent(f"linear_before_reset_clip_{direction}", "GRU", direction, states=True, linear_before_reset=1, clip=0.4)
    recurrent(f"linear_before_reset_lengths_{direction}", "GRU", direction, lengths=i32(1, 5, 4),
              linear_before_reset=1)
    recurrent(f"peephole_{direction}", "LSTM", direction, states=True, peephole=True)
    recurrent(f"peephole_clip_{direction}", "LSTM", direction, states=True, peephole=True, clip=0.4)
    recurrent(f"peephole_lengths_{direction}", "LSTM", direction, states=True, peephole=True, lengths=i32(2, 5, 1))
recurrent("input_forget", "LSTM", states=True, input_forget=1)
recurrent("input_forget_peephole", "LSTM", peephole=True, input_forget=1)

# ---- norms

case("skip_layer_norm", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)],
     outputs=["y", "", "", "sum"])
case("skip_layer_norm_no_bias", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8)], epsilon=1e-5)
case("skip_layer_norm_no_beta", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)])
case("skip_layer_norm_broadcast", "SkipLayerNormalization", [f32(2, 3, 8), f32(3, 8), f32(8), f32(8)])
case("skip_simplified_layer_norm", "SkipSimplifiedLayerNormalization",
     [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8)], outputs=["y", "", "", "sum"])
case("skip_simplified_layer_norm_no_bias", "SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)])
case("simplified_layer_norm", "SimplifiedLayerNormalization", [f32(2, 3, 8), f32(8)], outputs=2, domain="", axis=-1)
case("layer_norm_opset_13", "LayerNormalization", [f32(2, 3, 8), f32(3, 8), f32(3, 8)], outputs=3, domain="",
     version=13, axis=1)
case("layer_norm_broadcast_scale", "LayerNormalization", [f32(2, 3, 8), f32(8), f32(1)], domain="", axis=1)


SYMBOLIC = "batch, length, 8"
case("skip_layer_norm_symbolic", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)],
     outputs=["y", "", "", "sum"], constants=(2, 3, 4), dims={0: SYMBOLIC, 1: SYMBOLIC})


def embed(name, segments=True, mask=True, positions=False, outputs=2):
    ids = RNG.integers(0, 11, (2, 4)).astype(np.int32)
    case(name, "EmbedLayerNormalization",
         [ids, RNG.integers(0, 2, (2, 4)).astype(np.int32) if segments else None, f32(11, 8), f32(6, 8),
          f32(2, 8) if segments else None, f32(8), f32(8), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32) if mask
          else None] + ([np.array([[3, 2, 1, 0]], np.int32)] if positions else []), outputs=outputs)


embed("embed_layer_norm")
embed("embed_layer_norm_no_mask", mask=False)
embed("embed_layer_norm_no_segments", segments=False, outputs=3)
embed("embed_layer_norm_positions", positions=True)

# ---- activations and products

case("gelu", "Gelu", [f32(3, 5, scale=2)])
case("bias_gelu", "BiasGelu", [f32(3, 5, scale=2), f32(5)])
case("fast_gelu", "FastGelu", [f32(3, 5, scale=2)])
case("fast_gelu_bias", "FastGelu", [f32(3, 5, scale=2), f32(5)])
case("quick_gelu", "QuickGelu", [f32(3, 5, scale=2)])
case("quick_gelu_alpha", "QuickGelu", [f32(3, 5, scale=2)], alpha=1.0)
case("fused_matmul", "FusedMatMul", [f32(2, 3, 4), f32(2, 4, 5)], alpha=0.25)
case("fused_matmul_transposed", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], transA=1, transB=1)
case("fused_matmul_vector", "FusedMatMul", [f32(4), f32(4, 5)])
case("fused_matmul_batch_a", "FusedMatMul", [f32(3, 2, 4), f32(2, 4, 5)], transBatchA=1)
case("fused_matmul_batch_b", "FusedMatMul", [f32(2, 3, 4), f32(4, 2, 5)], transBatchB=1)
case("fused_matmul_batch_both", "FusedMatMul", [f32(4, 2, 3), f32(5, 2, 4)], transBatchA=1, transBatchB=1, transA=1,
     transB=1)

X, W, B = f32(2, 4, 6, 7), f32(6, 2, 3, 3), f32(6)
for function, parameters in (("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.3]),
                             ("HardSigmoid", [0.3, 0.4]), ("Clip", [-0.5, 1.5])):
    extra = {"activation_params": parameters} if parameters else {}
    case(f"fused_conv_{function.lower()}", "FusedConv", [X, W, B], constants=(1, 2), activation=function, group=2,
         pads=[1, 0, 1, 2], strides=[2, 1], **extra)
    extra = dict(zip(("activation_alpha", "activation_beta"), parameters)) if parameters else {}
    if function in ("Relu", "LeakyRelu"):
        case(f"fused_gemm_{function.lower()}", "FusedGemm", [f32(4, 3), f32(5, 4), f32(5)], transA=1, transB=1,
             alpha=0.5, beta=2.0, activation=function, **extra)
case("fused_conv_summand", "FusedConv", [X, W, B, f32(2, 6, 6, 7)], constants=(1, 2), activation="Relu", group=2,
     pads=[1, 1, 1, 1])

# ---- weights in blocks


def n_bits(name, bits, k, n, block, zero=None, bias=False, rows=(2, 3)):
    blocks = (k + block - 1) // block
    inputs = [f32(*rows, k), codes(np.uint8, n, blocks, block * bits // 8), f32(n, blocks, scale=0.1)]
    if zero == "packed":
        inputs.append(codes(np.uint8, n, (blocks * bits + 7) // 8))
    elif zero == "float":
        inputs.append(f32(n, blocks, scale=2) + np.float32(2 ** (bits - 1)))
    if bias:
        inputs += [None] * (5 - len(inputs)) + [f32(n)]
    case(name, "MatMulNBits", inputs, constants=range(1, 6), K=k, N=n, bits=bits, block_size=block)


n_bits("matmul_4_bits", 4, 64, 5, 32)
n_bits("matmul_4_bits_short_block", 4, 40, 6, 16)
n_bits("matmul_4_bits_zero", 4, 96, 7, 32, zero="packed")
n_bits("matmul_4_bits_float_zero", 4, 64, 4, 16, zero="float")
n_bits("matmul_4_bits_bias", 4, 32, 9, 32, bias=True)
n_bits("matmul_4_bits_zero_bias", 4, 128, 8, 64, zero="packed", bias=True, rows=(1,))
n_bits("matmul_8_bits", 8, 64, 5, 32)
n_bits("matmul_8_bits_zero", 8, 64, 5, 32, zero="packed")
n_bits("matmul_2_bits", 2, 64, 8, 32)
n_bits("matmul_2_bits_zero", 2, 128, 8, 32, zero="packed")

ROWS = np.array([[0, 3, -1], [5, 2, 2]], np.int64)
for bits in (4, 8):
    each = 8 // bits
    blocks = (0, 2)
    case(f"gather_{bits}_bits", "GatherBlockQuantized",
         [codes(np.uint8, 6, 64 // each), ROWS, f32(6, 4, scale=0.1)], constants=blocks, bits=bits, block_size=16,
         quantize_axis=1, gather_axis=0)
    case(f"gather_{bits}_bits_zero", "GatherBlockQuantized",
         [codes(np.uint8, 6, 64 // each), ROWS, f32(6, 4, scale=0.1), codes(np.uint8, 6, 4 // each)],
         constants=(0, 2, 3), bits=bits, block_size=16, quantize_axis=1, gather_axis=0)
UINT4, INT4 = onnx.TensorProto.UINT4, onnx.TensorProto.INT4
case("gather_uint4", "GatherBlockQuantized",
     [RNG.integers(0, 16, (6, 3, 32)), ROWS.astype(np.int32), f32(6, 3, 2, scale=0.1),
      RNG.integers(0, 16, (6, 3, 2))], constants=(0, 2, 3), elem={0: UINT4, 3: UINT4}, block_size=16, quantize_axis=2,
     gather_axis=0)
case("gather_int4_axis_1", "GatherBlockQuantized",
     [RNG.integers(-8, 8, (32, 6)), np.array([1, 5], np.int64), f32(2, 6, scale=0.1)], constants=(0, 2),
     elem={0: INT4}, block_size=16, quantize_axis=0, gather_axis=1)

# ---- quantised ops

for dtype in (np.uint8, np.int8):
    kind = np.dtype(dtype).name
    zero = lambda value: scalar(value, dtype)  # noqa: E731
    x, y = codes(dtype, 2, 3, 4, 5), codes(dtype, 4, 5)
    for op in ("QLinearAdd", "QLinearMul"):
        case(f"{op.lower()}_{kind}", op,
             [x, scalar(0.031), zero(7), y, scalar(0.047), zero(3), scalar(0.0613 if op == "QLinearAdd" else 0.173),
              zero(5)])
    case(f"qlinearsigmoid_{kind}", "QLinearSigmoid", [x, scalar(0.037), zero(9), scalar(1 / 256), zero(0)])
    case(f"qlinearleakyrelu_{kind}", "QLinearLeakyRelu", [x, scalar(0.037), zero(9), scalar(0.029), zero(4)],
         alpha=0.23)
    case(f"qlinearpool_{kind}", "QLinearGlobalAveragePool", [x, scalar(0.037), zero(9), scalar(0.0119), zero(4)])
    case(f"qlinearpool_last_{kind}", "QLinearGlobalAveragePool", [x, scalar(0.037), zero(9), scalar(0.0119), zero(4)],
         channels_last=1)
    case(f"qlinearaveragepool_{kind}", "QLinearAveragePool", [x, scalar(0.037), zero(9), scalar(0.0219), zero(4)],
         kernel_shape=[2, 3], pads=[1, 0, 0, 1], strides=[2, 1])
    case(f"quantize_{kind}", "QuantizeLinear", [f32(3, 4, scale=3), scalar(0.043), zero(6)])
    case(f"quantize_axis_{kind}", "QuantizeLinear",
         [f32(3, 4, scale=3), np.abs(f32(4, scale=0.1)) + np.float32(0.01), codes(dtype, 4)], axis=1)
    case(f"dequantize_{kind}", "DequantizeLinear", [codes(dtype, 3, 4), scalar(0.043), zero(6)])
    case(f"dequantize_axis_{kind}", "DequantizeLinear", [codes(dtype, 3, 4), f32(3), codes(dtype, 3)], axis=0)
    case(f"qlinearconcat_{kind}", "QLinearConcat",
         [scalar(0.043), zero(6), codes(dtype, 2, 3), scalar(0.031), zero(1), codes(dtype, 2, 2), scalar(0.043),
          zero(6), codes(dtype, 2, 4), scalar(0.061), zero(2)], axis=1)
    case(f"qlinearwhere_{kind}", "QLinearWhere",
         [RNG.random((4, 5)) < 0.5, codes(dtype, 4, 5), scalar(0.031), zero(1), codes(dtype, 5), scalar(0.047),
          zero(3), scalar(0.053), zero(2)])
    case(f"qlinearsoftmax_{kind}", "QLinearSoftmax", [x, scalar(0.021), zero(9), scalar(1 / 256), zero(0)], axis=-1,
         opset=13)
    for weight in (np.uint8, np.int8):
        if dtype == np.int8 and weight == np.uint8:
            continue
        both = f"{kind}_{np.dtype(weight).name}"
        case(f"matmul_integer_to_float_{both}", "MatMulIntegerToFloat",
             [codes(dtype, 3, 8), weights(weight, 8, 5), scalar(0.03), scalar(0.02), zero(11), scalar(4, weight)])
        case(f"matmul_integer_to_float_columns_{both}", "MatMulIntegerToFloat",
             [codes(dtype, 3, 8), weights(weight, 8, 5), scalar(0.03), np.abs(f32(5)), zero(11), codes(weight, 5),
              f32(5)], constants=(1, 3, 5, 6))
        case(f"qgemm_float_{both}", "QGemm",
             [codes(dtype, 3, 8), scalar(0.03), zero(11), weights(weight, 8, 5), scalar(0.02), scalar(4, weight),
              RNG.integers(-999, 999, 5).astype(np.int32)], constants=(3, 4, 5, 6), alpha=0.5)
        case(f"qgemm_{both}", "QGemm",
             [codes(dtype, 8, 3), scalar(0.03), zero(11), weights(weight, 5, 8), scalar(0.02), scalar(4, weight),
              RNG.integers(-999, 999, 5).astype(np.int32), scalar(0.2), zero(3)], constants=(3, 4, 5, 6), transA=1,
             transB=1)

for weight in (np.uint8, np.int8):
    kind = np.dtype(weight).name
    case(f"dynamic_quantize_matmul_{kind}", "DynamicQuantizeMatMul",
         [f32(3, 8), weights(weight, 8, 5), scalar(0.02), scalar(4, weight)], constants=(1, 2, 3))
    case(f"dynamic_quantize_matmul_columns_{kind}", "DynamicQuantizeMatMul",
         [f32(2, 3, 8), weights(weight, 8, 5), np.abs(f32(5, scale=0.02)), codes(weight, 5), f32(5)],
         constants=(1, 2, 3, 4))
    case(f"dynamic_quantize_matmul_positive_{kind}", "DynamicQuantizeMatMul",
         [np.abs(f32(3, 8)) + np.float32(1), weights(weight, 8, 5), scalar(0.02)], constants=(1, 2))

# ---- attention: batch 2, 3 queries, 2 heads of 4

PAST = f32(2, 2, 2, 5, 4)
LENGTHS = {"none": None, "ends": i32(2, 3), "ends_starts": i32(3, 3, 0, 1),
           "keys": np.array([[1, 1, 0], [1, 1, 1]], np.int32),
           "rows": RNG.integers(0, 2, (2, 3, 3)).astype(np.int32)}


def project(mask=None, past=None, bias=None):
    inputs = [f32(2, 3, 6), f32(6, 24, scale=0.5), f32(24, scale=0.5), mask, past, bias]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


for name, mask in LENGTHS.items():
    case(f"attention_{name}", "Attention", project(mask), num_heads=2)
    case(f"attention_causal_{name}", "Attention", project(mask), num_heads=2, unidirectional=1)
case("attention_bias", "Attention", project(bias=f32(2, 2, 3, 3)), num_heads=2, scale=0.3)
case("attention_bias_broadcast", "Attention", project(LENGTHS["keys"], bias=f32(1, 1, 3, 3)), num_heads=2)
case("attention_past", "Attention", project(past=PAST), outputs=2, num_heads=2, unidirectional=1)
case("attention_past_mask", "Attention", project(np.array([[1] * 8, [0, 0] + [1] * 6], np.int32), past=PAST),
     outputs=2, num_heads=2)
case("attention_present", "Attention", project(), outputs=2, num_heads=2)
case("attention_widths", "Attention", [f32(2, 3, 6), f32(6, 28, scale=0.5), f32(28)], num_heads=2,
     qkv_hidden_sizes=[8, 8, 12])
case("attention_symbolic", "Attention", project(LENGTHS["keys"]), num_heads=2,
     dims={0: "batch, length, 6", 3: "batch, length"})
case("attention_symbolic_causal", "Attention", project(LENGTHS["ends"]), num_heads=2, unidirectional=1,
     dims={0: "batch, length, 6", 3: "batch"})
case("attention_symbolic_past", "Attention", project(past=PAST), outputs=2, num_heads=2, unidirectional=1,
     dims={0: "batch, length, 6", 4: "2, batch, 2, past, 4"})
case("attention_filter_value", "Attention", project(LENGTHS["rows"]), num_heads=2, mask_filter_value=-5.0)


def q_attention(name, weight, columns=False, mask=None, past=None, **attrs):
    inputs = [codes(np.uint8, 2, 3, 6), weights(weight, 6, 24), f32(24), scalar(0.01),
              np.abs(f32(24, scale=0.01)) if columns else scalar(0.008), mask, scalar(121, np.uint8),
              codes(weight, 24) if columns else scalar(3, weight)]
    if past is not None:
        inputs.append(past)
    case(f"qattention_{name}_{np.dtype(weight).name}", "QAttention", inputs, outputs=1 if past is None else 2,
         constants=(1, 2, 4, 7), num_heads=2, **attrs)


for weight in (np.uint8, np.int8):
    q_attention("plain", weight)
    q_attention("mask", weight, mask=LENGTHS["keys"])
    q_attention("causal", weight, unidirectional=1)
    q_attention("past", weight, past=PAST, unidirectional=1)
q_attention("columns", np.int8, columns=True)


def mha(name, query=None, key=None, value=None, bias=None, mask=None, summand=None, pasts=(), outputs=1, **attrs):
    inputs = [f32(2, 3, 8) if query is None else query, key, value, bias, mask, summand, *pasts]
    while inputs[-1] is None:
        inputs.pop()
    case(f"mha_{name}", "MultiHeadAttention", inputs, outputs=outputs, num_heads=2, **attrs)


mha("plain", key=f32(2, 5, 8), value=f32(2, 5, 8))
mha("widths", key=f32(2, 5, 8), value=f32(2, 5, 12), bias=f32(28))
mha("bias", key=f32(2, 3, 8), value=f32(2, 3, 8), bias=f32(24))
mha("causal", key=f32(2, 3, 8), value=f32(2, 3, 8), unidirectional=1)
mha("mask_keys", key=f32(2, 3, 8), value=f32(2, 3, 8), mask=LENGTHS["keys"], scale=0.7)
mha("mask_rows", key=f32(2, 3, 8), value=f32(2, 3, 8), mask=LENGTHS["rows"])
mha("mask_ends", key=f32(2, 3, 8), value=f32(2, 3, 8), mask=LENGTHS["ends"])
mha("summand", key=f32(2, 5, 8), value=f32(2, 5, 8), summand=f32(1, 2, 3, 5))
mha("mask_summand", key=f32(2, 3, 8), value=f32(2, 3, 8), mask=LENGTHS["keys"], summand=f32(2, 1, 3, 3))
PACKED = f32(2, 3, 2, 3, 4)
APART = [PACKED[:, :, :, i].reshape(2, 3, 8) for i in range(3)]
mha("packed_qkv", query=PACKED, judge=APART)
mha("packed_kv", query=APART[0], key=PACKED[:, :, :, 1:].copy(), judge=APART)
mha("heads", key=f32(2, 2, 5, 4), value=f32(2, 2, 5, 4))
mha("heads_bias", key=f32(2, 2, 5, 4), value=f32(2, 2, 5, 4), bias=f32(24))
mha("past", key=f32(2, 3, 8), value=f32(2, 3, 8), pasts=(f32(2, 2, 5, 4), f32(2, 2, 5, 4)), outputs=3)
mha("past_causal", key=f32(2, 3, 8), value=f32(2, 3, 8), bias=f32(24), pasts=(f32(2, 2, 5, 4), f32(2, 2, 5, 4)),
    outputs=3, unidirectional=1)
mha("symbolic", key=f32(2, 5, 8), value=f32(2, 5, 8), summand=f32(1, 2, 3, 5),
    dims={0: "batch, length, 8", 1: "batch, keys, 8", 2: "batch, keys, 8", 5: "1, 2, length, keys"})
mha("symbolic_past", key=f32(2, 3, 8), value=f32(2, 3, 8), pasts=(f32(2, 2, 5, 4), f32(2, 2, 5, 4)), outputs=3,
    unidirectional=1, dims={0: "batch, length, 8", 1: "batch, length, 8", 2: "batch, length, 8",
                            6: "batch, 2, past, 4", 7: "batch, 2, past, 4"})
mha("present", key=f32(2, 3, 8), value=f32(2, 3, 8), outputs=3)

# ONNX's own, with sizes that are not known

HEADS, PASTS = "batch, 2, length, 4", "batch, 2, past, 4"
case("onnx_attention_symbolic", "Attention", [f32(2, 2, 3, 4) for _ in range(3)], domain="", version=23, is_causal=1,
     dims={0: HEADS, 1: HEADS, 2: HEADS})
case("onnx_attention_symbolic_past", "Attention",
     [*(f32(2, 2, 3, 4) for _ in range(3)), None, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], outputs=3, domain="", version=23,
     is_causal=1, dims={0: HEADS, 1: HEADS, 2: HEADS, 4: PASTS, 5: PASTS})
case("onnx_attention_symbolic_flat", "Attention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(3, 5)], domain="",
     version=23, q_num_heads=2, kv_num_heads=2,
     dims={0: "batch, length, 8", 1: "batch, keys, 8", 2: "batch, keys, 8", 3: "length, keys"})
case("onnx_attention_symbolic_cross", "Attention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8)], domain="", version=23,
     q_num_heads=2, kv_num_heads=2, is_causal=1,
     dims={0: "batch, length, 8", 1: "batch, keys, 8", 2: "batch, keys, 8"})

ANGLES = f32(16, 8) * 3
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)


def gqa(name, length, past, lengths=None, packed=False, batch=2, capacity=None, summand=None, rotary=False,
        positions=None, sink=None, heads=4, kv_heads=2, outputs=3, rotated=16, width=16, **attrs):
    total = past + length
    seqlens = np.full(batch, total - 1, np.int32) if lengths is None else lengths
    if packed:
        qkv = [f32(batch, length, (heads + 2 * kv_heads) * width), None, None]
    else:
        qkv = [f32(batch, length, heads * width), f32(batch, length, kv_heads * width),
               f32(batch, length, kv_heads * width)]
    rows = past if capacity is None else capacity
    pasts = [f32(batch, kv_heads, rows, width) for _ in range(2)] if rows else [None, None]
    for b in range(batch if rows else 0):  # what lies behind the rows in use is not specified: ONNX Runtime has zeros
        for p in pasts:
            p[b, :, seqlens[b] + 1 - length:] = 0
    tables = [COS[:, :rotated // 2].copy(), SIN[:, :rotated // 2].copy()] if rotary else [None, None]
    inputs = [*qkv, *pasts, seqlens, i32(total), *tables, positions, summand, sink]
    while inputs[-1] is None:
        inputs.pop()
    case(f"gqa_{name}", "GroupQueryAttention", inputs, outputs=outputs, constants=(6, 7, 8), num_heads=heads,
         kv_num_heads=kv_heads, do_rotary=int(rotary), **attrs)


gqa("prompt", 5, 0)
gqa("prompt_packed", 5, 0, packed=True)
gqa("prompt_rotary", 5, 0, rotary=True)
gqa("prompt_rotary_interleaved", 5, 0, rotary=True, rotary_interleaved=1)
gqa("prompt_rotary_part", 5, 0, rotary=True, width=32)
gqa("prompt_softcap", 5, 0, softcap=1.5, scale=0.6)
gqa("prompt_window", 6, 0, local_window_size=2)
gqa("prompt_sink", 5, 0, sink=f32(4))
gqa("prompt_smooth", 5, 0, smooth_softmax=1)
gqa("prompt_summand", 5, 0, summand=f32(2, 4, 5, 5))
gqa("token", 1, 6)
gqa("token_packed_rotary", 1, 6, packed=True, rotary=True)
gqa("token_lengths", 1, 6, lengths=i32(6, 3), rotary=True)
gqa("token_window", 1, 7, local_window_size=3)
gqa("token_softcap", 1, 7, softcap=2.0)
gqa("token_sink", 1, 7, sink=f32(4))
gqa("token_summand", 1, 7, summand=f32(1, 4, 1, 8))
gqa("token_positions", 1, 6, rotary=True, positions=np.array([[2], [9]], np.int64))
gqa("chunk", 3, 4, batch=1)
gqa("chunk_rotary_window", 3, 6, batch=1, rotary=True, local_window_size=4)
gqa("chunk_summand", 3, 4, batch=1, summand=f32(1, 1, 3, 7))
gqa("buffer", 1, 6, capacity=10)
gqa("buffer_summand", 1, 6, capacity=10, summand=f32(2, 1, 1, 7))
gqa("one_head", 2, 0, heads=3, kv_heads=1)
gqa("both_ways", 5, 0, causal=0)
gqa("qk", 5, 0, outputs=4, qk_output=2)


def rotary(name, shape, positions, rotated=8, **attrs):
    case(f"rotary_{name}", "RotaryEmbedding",
         [f32(*shape), positions, COS[:, :rotated // 2].copy(), SIN[:, :rotated // 2].copy()], constants=(2, 3),
         **attrs)


BATCH = np.array([[0, 3, 5], [7, 2, 2]], np.int64)
rotary("offset", (2, 3, 16), np.array([4], np.int64))
rotary("positions", (2, 3, 16), BATCH)
rotary("heads", (2, 2, 3, 8), BATCH)
rotary("interleaved", (2, 3, 16), BATCH, interleaved=1)
rotary("symbolic", (2, 3, 16), BATCH, dims={0: "batch, length, 16", 1: "batch, length"})
rotary("symbolic_offset", (2, 3, 16), np.array([4], np.int64), dims={0: "batch, length, 16"})
rotary("part", (2, 3, 16), BATCH, rotated=4, num_heads=2, rotary_embedding_dim=4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rlx", help="the program to test")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="*", help="only cases whose names match")
    parser.add_argument("--keep", help="a new folder for the cases, which stays")
    parser.add_argument("--rtol", default="1e-4")
    parser.add_argument("--atol", default="1e-5")
    args = parser.parse_args()
    names = fnmatch.filter(CASES, args.filter)
    if not names:
        sys.exit(f"No case matches '{args.filter}'.")
    refused = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for name in names:
            try:
                write(name, folder)
            except Exception as e:  # noqa: BLE001: whatever it is, the others go on
                refused.append(name)
                print(f"{name}: ONNX Runtime does not run it: {e}")
        command = [args.rlx, "test-onnx", folder, "--json", "--device", args.device, "--rtol", args.rtol, "--atol", args.atol]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        report = json.loads(done.stdout)
    failed = 0
    for c in report["cases"]:
        why = f"{c['result']}. {c['why']}" if c["result"] != "passed" else ""
        if not why and c["staged"] and CASES[c["name"]]["dims"]:
            why = "It is not one graph for all sizes."
        if why:
            failed += 1
            print(f"{c['name']}: {why}")
    print(f"{len(report['cases']) - failed} passed, {failed} failed, {len(refused)} refused by ONNX Runtime")
    sys.exit(1 if failed or refused else 0)


if __name__ == "__main__":
    main()
