"""The graph that random_models.py makes: values with a dtype and a shape, nodes, and what onnxruntime makes of one node."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)

MS = "com.microsoft"
FLOATS = (np.float32, np.float16, np.float64)
INTS = (np.int64, np.int32)


def elem(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Refused(Exception):
    """onnxruntime does not take a node: it is not valid, or not one that the peer has."""


def reads(node):
    """What a node reads, also in its bodies."""
    names = {i for i in node.input if i}
    for a in node.attribute:
        for body in ([a.g] if a.HasField("g") else []):
            made = {i.name for i in body.input} | {i.name for i in body.initializer}
            for inner in body.node:
                names |= reads(inner) - made
                made |= set(inner.output)
    return names


def session(model):
    """Each node by itself: the peer's own fusions have no say."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Model:
    """A graph under construction. Values have a dtype and a shape; their numbers stay small."""

    def __init__(self, seed, ends=False, large=False):
        self.rng = np.random.default_rng(seed)
        self.large = large
        self.nodes, self.inputs, self.initializers, self.values = [], {}, {}, {}
        self.stand_ins = {}  # numbers of values, to see what a node makes of them
        self.loose = {}  # the dtypes of values whose sizes only a run knows
        self.refused = []
        self.exposed = set()  # outputs of the model although other nodes read them
        self.ends, self.made = ends, 0
        self.opset = int(self.rng.integers(13, 25))
        self.dynamic = bool(self.rng.random() < 0.3)  # the inputs' sizes are symbols in the file
        self.shared = bool(self.rng.random() < 0.5)   # and equal sizes are the same symbol
        for _ in range(int(self.rng.integers(1, 4))):
            shape = self.shape()
            dtype = self.rng.choice([np.float32, np.float32, np.float32, np.int64, np.int32])
            self.add_input(self.numbers(shape, dtype))

    def chance(self, p):
        return bool(self.rng.random() < p)

    def one_of(self, *choices):
        return choices[int(self.rng.integers(0, len(choices)))]

    def number(self, low, high):
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def size(self, high=5):
        """Of a dimension; in large models many are those that kernels have tiles for."""
        if self.large and self.rng.random() < 0.5:
            return int(self.rng.integers(8, 100))
        return int(self.rng.integers(1, high + 1))

    def shape(self, low=1, high=4):
        shape = tuple(self.size() for _ in range(int(self.rng.integers(low, high + 1))))
        return shape if np.prod(shape) < 100_000 else self.shape(low, high)

    def numbers(self, shape, dtype):
        dtype = np.dtype(dtype)
        if dtype == bool:
            return np.asarray(self.rng.random(shape) < 0.5)
        if np.issubdtype(dtype, np.integer):
            low, high = (-4, 5) if dtype.itemsize > 2 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
            return np.asarray(self.rng.integers(max(low, np.iinfo(dtype).min), high, shape)).astype(dtype)
        return np.asarray(self.rng.uniform(-2, 2, shape)).astype(dtype)

    def add_input(self, array):
        array = np.asarray(array)
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        self.values[name] = (array.dtype, array.shape)
        return name

    def constant(self, array, dtype=None):
        array = np.asarray(array, dtype)
        name = f"c{len(self.initializers)}"
        self.initializers[name] = array
        return name

    def given(self, array, dtype=None):
        """A constant, or now and then an input of the run."""
        return self.constant(array, dtype) if self.chance(0.8) else self.add_input(np.asarray(array, dtype))

    def operand(self, shape, dtype):
        """A weight: a constant, or an input of the run."""
        array = self.numbers(shape, dtype)
        return self.constant(array) if self.rng.random() < 0.6 else self.add_input(array)

    def pick(self, dtypes=(np.float32,), min_rank=0):
        found = [n for n, (d, s) in self.values.items()
                 if d in [np.dtype(t) for t in dtypes] and len(s) >= min_rank and 0 not in s]
        return str(self.rng.choice(found)) if found else None

    def some(self, dtypes=(np.float32,), low=0, high=4):
        """A value that is there, or a new input; sizes of 0 and 1 are common. At most 4,000 elements: results may be larger."""
        wanted = [np.dtype(t) for t in (dtypes if isinstance(dtypes, tuple) else (dtypes,))]
        found = [n for n, (d, s) in self.values.items() if d in wanted and low <= len(s) <= high and np.prod(s) <= (100_000 if self.large else 4000)]
        if found and self.chance(0.75):
            return str(self.rng.choice(found))
        shape = list(self.shape(low, high))
        for i in range(len(shape)):
            if self.chance(0.2):
                shape[i] = 0 if self.chance(0.1) else 1
        return self.add_input(self.numbers(tuple(shape), wanted[self.number(0, len(wanted) - 1)]))

    def fresh(self):
        self.made += 1
        return f"v{self.made}"

    def dtype(self, name):
        return self.initializers[name].dtype if name in self.initializers else self.values[name][0]

    def shape_of(self, name):
        return self.initializers[name].shape if name in self.initializers else self.values[name][1]

    def axis(self, name, negative=True):
        rank = len(self.shape_of(name))
        return int(self.rng.integers(-rank if negative else 0, rank)) if rank else 0

    def node(self, op, inputs, results, **attributes):
        """A node whose results are known."""
        outputs = [self.fresh() for _ in results]
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        for name, (dtype, shape) in zip(outputs, results):
            self.values[name] = (np.dtype(dtype), tuple(int(d) for d in shape))
        return outputs

    def apply(self, op, inputs, outputs=1, domain="", **attributes):
        """A node whose results are what onnxruntime makes of numbers like those. Floats that are not small get a Tanh, which is
        what is returned then. `outputs` is a number, or a list with "" for those not asked for."""
        wanted = ["y"] * outputs if isinstance(outputs, int) else outputs
        names = [self.fresh() if w else "" for w in wanted]
        node = helper.make_node(op, inputs, names, domain=domain, **attributes)
        results = self.evaluate(node)
        if any(np.size(r) > (400_000 if self.large else 20_000) for r in results):
            raise Refused(f"{op} makes much of little")
        self.nodes.append(node)
        made = [n for n in names if n]
        for name, array in zip(made, results):
            self.values[name] = (array.dtype, array.shape)
        return [self.tame(n, array) for n, array in zip(made, results)]

    def tame(self, name, array):
        if np.issubdtype(array.dtype, np.floating) and array.size and not np.max(np.abs(array)) < 6:
            return self.node("Tanh", [name], [self.values[name]])[0]
        return name

    def evaluate(self, node):
        feeds = {n: self.array(n) for n in sorted(reads(node))}
        inputs = [helper.make_tensor_value_info(n, elem(a.dtype), a.shape) for n, a in feeds.items() if n not in self.initializers]
        constants = [numpy_helper.from_array(a, n) for n, a in feeds.items() if n in self.initializers]
        outputs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
        model = self.proto(helper.make_graph([node], "node", inputs, outputs, constants))
        try:
            results = session(model).run(None, {n: a for n, a in feeds.items() if n not in self.initializers})
        except Exception as e:
            raise Refused(str(e)) from e
        self.stand_ins.update(zip([o for o in node.output if o], results))
        return results

    def array(self, name):
        """Its numbers, or such as they might be."""
        for known in (self.inputs, self.initializers, self.stand_ins):
            if name in known:
                return known[name]
        self.stand_ins[name] = self.numbers(self.values[name][1], self.values[name][0])
        return self.stand_ins[name]

    def proto(self, graph):
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid(MS, 1)], ir_version=10)

    def hide(self, names):
        """From the nodes to come: stand-ins had other sizes than a run finds."""
        for name in names:
            self.loose[name] = self.values.pop(name)[0]

    def attempt(self, f):
        """Adds what f adds, or nothing when onnxruntime refuses a part of it."""
        before = len(self.nodes), dict(self.values)
        try:
            f(self)
        except Refused as e:
            self.refused.append(f"{f.__name__}: {str(e).splitlines()[0]}")
            del self.nodes[before[0]:]
            self.values = {**before[1], **{n: (a.dtype, a.shape) for n, a in self.inputs.items()}}


OPS = []


def op(f):
    OPS.append(f)
    return f
