"""Models of one node beside onnxruntime: options of ops that ONNX's own cases leave out, and ai.onnx.ml.

usage: op_models.py RLX [--device NAME]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
ML = "ai.onnx.ml"
F, I = np.float32, np.int64


def elem(array):
    return TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


class Cases:
    def __init__(self, folder):
        self.folder, self.rng, self.count = folder, np.random.default_rng(0), 0

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(F)

    def add(self, name, op, inputs, outputs=1, opset=17, ml=3, domain="", **attributes):
        inputs = {f"x{i}": np.asarray(v) for i, v in enumerate(inputs)}
        names = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, list(inputs), names, domain=domain, **attributes)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, ml)]

        def model(types):
            declared = [helper.make_tensor_value_info(k, elem(v), v.shape) for k, v in inputs.items()]
            graph = helper.make_graph([node], name, declared, types)
            return helper.make_model(graph, opset_imports=opsets, ir_version=8)

        data = model([helper.make_value_info(o, onnx.TypeProto()) for o in names]).SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        results = [np.asarray(r) for r in session.run(None, inputs)]
        where = self.folder / name / "test_data_set_0"
        where.mkdir(parents=True)
        types = [helper.make_tensor_value_info(o, elem(r), r.shape) for o, r in zip(names, results)]
        onnx.save(model(types), self.folder / name / "model.onnx")
        for kind, arrays in (("input", inputs.values()), ("output", results)):
            for k, array in enumerate(arrays):
                (where / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        self.count += 1

    def ml(self, name, op, inputs, outputs=1, ml=3, **attributes):
        self.add(name, op, inputs, outputs, ml=ml, domain=ML, **attributes)


def add_einsum(c):
    for equation, *shapes in [
            ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
            ("...ij,...jk->...ik", (5, 2, 3), (1, 3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (3, 3, 4)),
            ("ij->ji", (2, 3)), ("ij", (2, 3)), ("ba", (2, 3)), ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
            ("i,j->ij", (3,), (4,)), ("i,i->", (3,), (3,)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,kl->ijkl", (2, 3), (2, 2)),
            ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("...ij->...ji", (2, 3, 4)), ("ij->", (2, 3)),
            ("bi,bj,bk->bijk", (2, 3), (2, 4), (2, 5)), ("bnd,hdk->bhnk", (2, 3, 4), (5, 4, 6)),
            ("i...,i...->...", (3, 2), (3, 2)), ("iji->ij", (3, 2, 3)), ("a b c , c d -> a b d", (2, 3, 4), (4, 5)),
            ("ijk,ijl->kl", (2, 3, 4), (2, 3, 5)), ("bqhd,bkhd->bhqk", (1, 3, 2, 4), (2, 5, 2, 4))]:
        name = "einsum " + equation.replace("...", "~")
        c.add(name, "Einsum", [c.normal(*s) for s in shapes], equation=equation)


def add_tensor_ops(c):
    x, image = c.normal(7, 4), c.normal(2, 3, 4, 5)
    c.add("trilu", "Trilu", [x, np.array(-1)], upper=0)
    c.add("unique", "Unique", [np.array([[3, 1, 3, 1], [0, 2, 0, 2]], F)], outputs=4, axis=1, sorted=0)
    c.add("batch norm 9", "BatchNormalization", [image, *c.normal(3, 3), np.abs(c.normal(3))], opset=9)
    c.add("instance norm 1d", "InstanceNormalization", [c.normal(2, 3, 9), c.normal(3), c.normal(3)])
    c.add("lrn", "LRN", [c.normal(2, 7, 3, 3)], size=5, alpha=.1, beta=.6, bias=2.)
    c.add("lp norm", "LpNormalization", [x], p=1, axis=0)
    c.add("mvn", "MeanVarianceNormalization", [image], opset=13)
    c.add("global lp", "GlobalLpPool", [image], p=3)
    c.add("one hot", "OneHot", [np.array([1, -1, 9]), np.array([5]), np.array([2., 7.], F)], axis=0)
    c.add("reverse", "ReverseSequence", [c.normal(4, 3, 2), np.array([1, 4, 2])], time_axis=0, batch_axis=1)
    for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"):
        for dtype in (np.int32, I):  # the peer cuts exponentials to integers too, ONNX's definition has doubles
            c.add(f"{op} of {dtype.__name__}", op, [np.array([[1, 2, 3], [4, 0, 6], [7, 7, 7], [0, 100, 9]], dtype)], opset=13,
                  axes=[1], keepdims=0)
    c.add("log sum exp of uint32", "ReduceLogSumExp", [np.array([5, 4, 4, 4, 4, 4], np.uint32)], opset=18)  # 6.04
    c.add("non zero", "NonZero", [np.array([[True, False], [True, True]])])
    c.add("eye", "EyeLike", [x], k=1, dtype=TensorProto.INT64)
    c.add("compress", "Compress", [x, np.array([False, True, True])], axis=1)
    c.add("crop and pad", "CenterCropPad", [x, np.array([4, 9])], opset=18)
    c.add("depth to space", "DepthToSpace", [c.normal(2, 8, 3, 2)], blocksize=2, mode="CRD")
    c.add("nms", "NonMaxSuppression", [c.rng.random((2, 6, 4)).astype(F), np.round(c.rng.random((2, 3, 6)), 1).astype(F),
                                       np.array([3]), np.array([.4], F), np.array([.2], F)])
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        c.add(op, op, [np.array(11)], periodic=0)
    c.add("mel", "MelWeightMatrix", [np.array(20), np.array(400), np.array(16000), np.array(20, F), np.array(7600, F)])
    c.add("dft padded", "DFT", [c.normal(2, 10, 1), np.array(16)], axis=1, onesided=1)
    c.add("dft cut", "DFT", [c.normal(2, 3, 10, 2), np.array(7)], axis=2)
    c.add("dft inverse", "DFT", [c.normal(2, 10, 3, 2)], axis=1, inverse=1)
    c.add("stft", "STFT", [c.normal(2, 40, 2), np.array(5), np.hanning(16).astype(F), np.array(16)], onesided=0)
    words = np.array(["a", "b", "c", "a"], object)
    grams = dict(min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 4, 3])
    c.add("tf-idf", "TfIdfVectorizer", [np.array([[1, 2, 3, 1, 2], [2, 2, 3, 1, 1]])], mode="TFIDF",
          pool_int64s=[1, 2, 3, 1, 2, 2, 3], weights=[1., 2., 3., 4., 5.], **grams)
    c.add("idf of words", "TfIdfVectorizer", [words], mode="IDF", pool_strings=list("abcabbc"), **grams)
    c.add("regex", "RegexFullMatch", [np.array(["ab@x.com", "q", "z@y.orgg"], object)], opset=20,
          pattern=r"[a-z]+@\w+\.(com|org)")


def add_ml(c):
    x = c.normal(7, 4)
    for rows, labels in ((3, [10, 20, 30]), (2, [5, 6]), (1, [0, 1])):
        for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
            if rows == 1 and post == "PROBIT":
                continue  # the peer leaves one of two scores unwritten
            small = post == "PROBIT"  # of probabilities only
            a, b = .3 * c.normal(rows * 4), .1 * c.normal(rows)
            c.ml(f"linear {rows} {post}", "LinearClassifier", [np.abs(x) * F(.1) if small else x], 2, classlabels_ints=labels,
                 coefficients=np.abs(a) if small else a, intercepts=np.abs(b) if small else b, post_transform=post)
    c.ml("linear of words", "LinearClassifier", [x], 2, classlabels_strings=["a", "b", "c"], coefficients=c.normal(12),
         intercepts=[.1, .2, .3], post_transform="SOFTMAX")
    c.ml("regressor", "LinearRegressor", [x], targets=2, coefficients=c.normal(8), intercepts=[.1, .2])
    for norm in ("MAX", "L1", "L2"):
        c.ml(f"normalizer {norm}", "Normalizer", [np.concatenate([x, np.zeros((1, 4), F)])], norm=norm)
    c.ml("scaler", "Scaler", [x], offset=[1., 2., 3., 4.], scale=[.5, .25, 2., 1.])
    c.ml("scaler of ints", "Scaler", [(x * 10).astype(I)], offset=[1.], scale=[.5])
    holes = np.where(c.rng.random(x.shape) < .2, np.nan, x).astype(F)
    c.ml("imputer", "Imputer", [holes], imputed_value_floats=[1., 2., 3., 4.], replaced_value_float=float("nan"))
    c.ml("imputer of ints", "Imputer", [x.astype(I)], imputed_value_int64s=[9], replaced_value_int64=0)
    c.ml("one hot of ints", "OneHotEncoder", [np.array([[0, 1], [2, 5]])], cats_int64s=[0, 1, 2])
    c.ml("one hot of floats", "OneHotEncoder", [np.array([[0, 1], [2, 5]], F)], cats_int64s=[0, 1, 2])
    c.ml("one hot of words", "OneHotEncoder", [np.array(["a", "c", "b"], object)], cats_strings=["a", "b"])
    c.ml("vectorizer", "FeatureVectorizer", [x, x[:, :2].copy()], inputdimensions=[4, 2])
    c.ml("labels", "LabelEncoder", [np.array([[1, 2], [3, 4]])], ml=2, keys_int64s=[1, 2, 3], values_floats=[.5, 1.5, 2.5],
         default_float=-7.)
    c.ml("words of labels", "LabelEncoder", [np.array([1, 2, 3])], ml=2, keys_int64s=[1, 2], values_strings=["a", "b"])
    c.ml("labels 1", "LabelEncoder", [np.array(["a", "b", "c"], object)], ml=1, classes_strings=["a", "b"], default_int64=-5)
    c.ml("words of labels 1", "LabelEncoder", [np.array([1, 0, 7])], ml=1, classes_strings=["a", "b"], default_string="q")
    c.ml("extractor", "ArrayFeatureExtractor", [x, np.array([[2, 0]])])
    c.ml("extractor of a row", "ArrayFeatureExtractor", [x[0].copy(), np.array([2, 0])])


def forest(c, trees, features, depth, modes):
    """Attributes of random trees, and their leaves (tree, node)."""
    nodes, leaves = [], []

    def grow(tree, levels, numbers):
        me, row = next(numbers), {}
        nodes.append(row)
        leaf = levels == 0 or (levels < depth and c.rng.random() < .25)
        row.update(treeids=tree, nodeids=me, modes="LEAF", values=0., featureids=0, truenodeids=0, falsenodeids=0,
                   missing_value_tracks_true=0, hitrates=1.)
        if leaf:
            leaves.append((tree, me))
            return me
        row.update(modes=str(c.rng.choice(modes)), values=float(F(c.rng.standard_normal())),
                   featureids=int(c.rng.integers(features)), missing_value_tracks_true=int(c.rng.random() < .5))
        row["truenodeids"] = grow(tree, levels - 1, numbers)
        row["falsenodeids"] = grow(tree, levels - 1, numbers)
        return me

    for tree in range(trees):
        grow(tree, depth, iter(range(1 << (depth + 1))))
    return {f"nodes_{k}": [row[k] for row in nodes] for k in nodes[0]}, leaves


def add_trees(c):
    x = c.normal(20, 5)
    holes = np.where(c.rng.random(x.shape) < .15, np.nan, x).astype(F)
    every = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for modes in (every[:1], every):
        for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
            for targets, base in ((1, {}), (3, {}), (2, {"base_values": [.5, -1.]})):
                nodes, leaves = forest(c, 4, 5, 4, modes)
                rows = [leaf for leaf in leaves for _ in range(targets)]
                c.ml(f"trees {len(modes)} {aggregate} {targets}", "TreeEnsembleRegressor", [holes], n_targets=targets,
                     aggregate_function=aggregate, target_treeids=[t for t, _ in rows], target_nodeids=[n for _, n in rows],
                     target_ids=[i % targets for i in range(len(rows))], target_weights=c.normal(len(rows)), **base, **nodes)

    def classifier(name, labels, ids, weights, **attributes):
        nodes, leaves = forest(c, 3, 5, 3, every[:1])
        rows = [leaf for leaf in leaves for _ in range(ids)]
        c.ml(name, "TreeEnsembleClassifier", [x], 2, ml=1, class_treeids=[t for t, _ in rows],
             class_nodeids=[n for _, n in rows], class_ids=[i % ids for i in range(len(rows))],
             class_weights=weights(len(rows)), **labels, **attributes, **nodes)

    for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        for sign, weights in (("positive", lambda n: .1 * np.abs(c.normal(n))), ("any", lambda n: .3 * c.normal(n))):
            if post == "PROBIT" and sign == "any":
                continue  # of probabilities only
            for base in ({}, {"base_values": [.1, .15, .2]}):
                classifier(f"classes 3 {post} {sign} {len(base)}", {"classlabels_int64s": [3, 4, 5]}, 3, weights,
                           post_transform=post, **base)
            if post == "PROBIT":
                continue  # the peer leaves one of two scores unwritten
            for base in ({}, {"base_values": [.1]}):
                classifier(f"classes 2 {post} {sign} {len(base)}", {"classlabels_int64s": [0, 1]}, 1, weights,
                           post_transform=post, **base)
    classifier("classes of words", {"classlabels_strings": ["x", "y", "z"]}, 3, c.normal, post_transform="SOFTMAX")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rlx")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        cases = Cases(pathlib.Path(temporary))
        for add in (add_einsum, add_tensor_ops, add_ml, add_trees):
            add(cases)
        command = [args.rlx, "test-onnx", temporary, "--json", "--device", args.device]
        result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout:
        sys.exit(f"{' '.join(command)} failed: {result.stderr}")
    report = json.loads(result.stdout)
    for case in report["cases"]:
        if case["result"] != "passed":
            print(f"{case['name']}: {case['why']}")
    if report["passed"] != cases.count:
        sys.exit(f"{report['passed']} of {cases.count} models agree with onnxruntime.")
    print(f"{report['passed']} models of one node agree with onnxruntime")


if __name__ == "__main__":
    main()
