"""Real models beside onnxruntime: magika, silero-vad, RapidOCR; a picture of a text that is read back; and an encoder
like BERT with random weights. On a GPU no step of RapidOCR's models or of the encoder runs on the host.

usage: real_models.py RLX RUN_CHUNKS [--device NAME]
"""

import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

RTOL, ATOL = 1e-3, 1e-4


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def ort_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check(what, got, want):
    if got.shape != want.shape:
        sys.exit(f"{what}: the shape is {got.shape} instead of {want.shape}.")
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    if not np.all(difference <= ATOL + RTOL * np.abs(want)):
        sys.exit(f"{what}: the largest difference is {difference.max()}.")
    print(f"{what}: {got.shape}, largest difference {difference.max():.2g}")


class Rlx:
    def __init__(self, tool, device, folder):
        self.tool, self.device, self.folder = tool, device, folder

    def run(self, model, allow_host_steps=False, **inputs):
        """Outputs by name, through `rlx run`."""
        command = [self.tool, "run", str(model), "--device", self.device, "--save", str(self.folder / "out")]
        for name, value in inputs.items():
            path = self.folder / f"{name}.npy"
            np.save(path, value)
            command += ["--input", f"{name}={path}"]
        result = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"RLX_WGPU_SCHEDULE": "1"})
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}: {result.stderr}")
        if self.device == "webgpu" and not allow_host_steps:
            on_host = [int(n) for n in re.findall(r"schedule: \d+ steps, (\d+) on the host", result.stderr)]
            if not on_host or any(on_host):
                sys.exit(f"{model}: {on_host} steps of its schedules run on the host.\n{result.stderr}")
        return {p.stem: np.load(p) for p in (self.folder / "out").glob("*.npy")}


def check_magika(rlx):
    model = package("magika") / "models" / "standard_v3_3" / "model.onnx"
    rng = np.random.default_rng(1)
    session = ort_session(model)
    for batch in (1, 5):
        x = rng.integers(0, 257, (batch, 2048), dtype=np.int32)
        want = session.run(None, {"bytes": x})[0]
        check(f"magika, batch {batch}", rlx.run(model, allow_host_steps=True, bytes=x)["target_label"], want)


def check_silero(run_chunks, device, folder):
    """100 chunks of noise, tones and silence; the state of each run is what the last one returned."""
    model = package("silero_vad") / "data" / "silero_vad.onnx"
    session = ort_session(model)
    rng = np.random.default_rng(2)
    for rate, chunk, context in ((16000, 512, 64), (8000, 256, 32)):
        time = np.arange(100 * chunk + context) / rate
        loud = np.repeat(rng.uniform(0, 0.6, 101), chunk)[: time.size]
        sound = (loud * np.sin(2 * np.pi * 180 * time * (1 + time)) + 0.01 * rng.standard_normal(time.size))
        sound = sound.astype(np.float32)
        chunks = [sound[None, i * chunk : (i + 1) * chunk + context] for i in range(100)]
        where = folder / f"silero_{rate}"
        where.mkdir()
        state, want = np.zeros((2, 1, 128), np.float32), []
        np.save(where / "state.npy", state)
        np.save(where / "sr.npy", np.array(rate, np.int64))
        for i, x in enumerate(chunks):
            np.save(where / f"input_{i}.npy", x)
            probability, state = session.run(None, {"input": x, "state": state, "sr": np.array(rate, np.int64)})
            want.append(probability)
        subprocess.run([run_chunks, str(model), str(where), device], check=True)
        got = np.concatenate([np.load(where / f"output_{i}.npy") for i in range(100)])
        check(f"silero-vad at {rate} Hz, 100 chunks", got, np.concatenate(want))
        check(f"silero-vad at {rate} Hz, the last state", np.load(where / "stateN.npy"), state)


def normalized(image):
    """A picture as the OCR models want it: [1, 3, H, W], -1 … 1, blue first."""
    array = np.asarray(image.convert("RGB"), np.float32)[:, :, ::-1]
    return np.ascontiguousarray(((array / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None])


def picture_of(text, size=40):
    font = ImageFont.load_default(size)
    image = Image.new("RGB", (640, 192), "white")
    ImageDraw.Draw(image).text((60, 70), text, "black", font)
    return image


def decode(probabilities, characters):
    """CTC: the best class of each column, repeats merged, class 0 left out."""
    best = probabilities[0].argmax(-1)
    kept = [c for i, c in enumerate(best) if c != 0 and (i == 0 or c != best[i - 1])]
    return "".join(characters[c] for c in kept)


def check_ocr(rlx):
    models = package("rapidocr_onnxruntime") / "models"
    detect = models / "ch_PP-OCRv4_det_infer.onnx"
    direction = models / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    recognize = models / "ch_PP-OCRv4_rec_infer.onnx"
    metadata = {p.key: p.value for p in onnx.load(recognize).metadata_props}
    characters = ["", *metadata["character"].splitlines(), " "]
    rng = np.random.default_rng(3)
    sizes = {detect: [(192, 640), (320, 256)], direction: [(48, 192), (48, 100)], recognize: [(48, 320), (48, 90)]}
    for model, shapes in sizes.items():
        session = ort_session(model)
        name, output = session.get_inputs()[0].name, session.get_outputs()[0].name
        for batch, (height, width) in zip((1, 2), shapes):
            x = rng.uniform(-1, 1, (batch, 3, height, width)).astype(np.float32)
            want = session.run(None, {name: x})[0]
            check(f"{model.stem}, {x.shape}", rlx.run(model, **{name: x})[output.replace("/", "_")], want)

    text = "Portable runtime 2026"
    image = picture_of(text)
    heat = rlx.run(detect, x=normalized(image))["sigmoid_0.tmp_0"][0, 0]
    rows, columns = np.nonzero(heat > 0.3)
    if rows.size == 0:
        sys.exit("The detection model finds no text in the picture.")
    margin = 10  # the model marks the middle of a line
    box = (columns.min() - margin, rows.min() - margin, columns.max() + margin, rows.max() + margin)
    line = image.crop(tuple(int(v) for v in box))
    line = line.resize((max(48, round(48 * line.width / line.height)), 48), Image.BILINEAR)
    read = decode(rlx.run(recognize, x=normalized(line))["softmax_11.tmp_0"], characters)
    if read != text:
        sys.exit(f"The picture of '{text}' is read as '{read}'.")
    print(f"OCR: the picture is read as '{read}'")


def write_encoder(path, layers=2, width=64, heads=4, vocabulary=500, positions=64):
    """BERT as PyTorch exports it: embeddings, attention with a mask, residual norms, GELU by erf; random weights."""
    rng = np.random.default_rng(4)
    nodes, weights = [], []

    def weight(name, *shape, scale=None):
        value = rng.standard_normal(shape).astype(np.float32) * np.float32(scale or shape[0] ** -0.5)
        weights.append(onnx.numpy_helper.from_array(value, name))
        return name

    def constant(name, value):
        weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op, *inputs, **attributes):
        output = f"{op}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def linear(x, name, k, n):
        return node("Add", weight(f"{name}.bias", n, scale=0.1), node("MatMul", x, weight(f"{name}.weight", k, n)))

    def norm(x, name):
        return node("LayerNormalization", x, weight(f"{name}.gamma", width, scale=1), weight(f"{name}.beta", width, scale=1),
                    axis=-1, epsilon=1e-12)

    size = width // heads
    split = constant("split", np.array([0, 0, heads, size], np.int64))
    merge = constant("merge", np.array([0, 0, width], np.int64))
    words = node("Gather", weight("words", vocabulary, width, scale=1), "input_ids")
    length = node("Slice", node("Shape", "input_ids"), *(constant(f"at{i}", np.array([i], np.int64)) for i in (1, 2)))
    places = node("Slice", weight("places", positions, width, scale=1), constant("at0", np.array([0], np.int64)), length)
    x = norm(node("Add", words, places), "embeddings")
    mask = node("Unsqueeze", node("Cast", "attention_mask", to=onnx.TensorProto.FLOAT), constant("axes", np.array([1, 2], np.int64)))
    mask = node("Mul", node("Sub", constant("one", np.float32(1)), mask), constant("far", np.float32(-1e4)))
    for layer in range(layers):
        def part(name, order):
            of_heads = node("Reshape", linear(x, f"{layer}.{name}", width, width), split)
            return node("Transpose", of_heads, perm=order)
        scores = node("MatMul", part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1]))
        scores = node("Div", scores, constant(f"{layer}.scale", np.float32(size**0.5)))
        weights_of_keys = node("Softmax", node("Add", scores, mask), axis=-1)
        mixed = node("Transpose", node("MatMul", weights_of_keys, part("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        attended = linear(node("Reshape", mixed, merge), f"{layer}.output", width, width)
        x = norm(node("Add", attended, x), f"{layer}.first")
        inner = linear(x, f"{layer}.up", width, 4 * width)
        erf = node("Erf", node("Div", inner, constant(f"{layer}.root", np.float32(2**0.5))))
        gelu = node("Mul", node("Mul", inner, node("Add", erf, constant(f"{layer}.one", np.float32(1)))), constant(f"{layer}.half", np.float32(0.5)))
        x = norm(node("Add", linear(gelu, f"{layer}.down", 4 * width, width), x), f"{layer}.second")
    nodes.append(onnx.helper.make_node("Identity", [x], ["last_hidden_state"]))
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")]
    result = onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["batch", "sequence", width])
    graph = onnx.helper.make_graph(nodes, "encoder", ports, [result], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def check_encoder(rlx, folder):
    model = folder / "encoder.onnx"
    write_encoder(model)
    session = ort_session(model)
    rng = np.random.default_rng(5)
    for batch, length in ((1, 17), (3, 32)):
        ids = rng.integers(0, 500, (batch, length), dtype=np.int64)
        mask = (np.arange(length)[None] < rng.integers(5, length + 1, (batch, 1))).astype(np.int64)
        want = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        check(f"encoder, {ids.shape}", rlx.run(model, input_ids=ids, attention_mask=mask)["last_hidden_state"], want)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rlx")
    parser.add_argument("run_chunks")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        rlx = Rlx(args.rlx, args.device, folder)
        check_magika(rlx)
        check_silero(args.run_chunks, args.device, folder)
        check_ocr(rlx)
        check_encoder(rlx, folder)


if __name__ == "__main__":
    main()
