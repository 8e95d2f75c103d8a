"""Every architecture beside Hugging Face transformers, on tiny models whose results are kept in fixtures/ (make_fixtures.py).

usage: hf_models.py MODEL_TOOL [--device NAME] [--only NAME…] [--fixtures FOLDER]

Decoders: the scores behind every token, fed one by one, and behind all of them at once. Encoders: hidden rows of a batch with
padding, the pooled vectors of the Encoder, and the same weights as a GGUF file.
"""
import argparse
import pathlib
import tempfile

import numpy as np

import gguf_writer
import numpy_bert
import tiny_hf
from model_tool import Checks, ModelTool

HERE = pathlib.Path(__file__).parent
ATOL = 2e-4  # of scores and rows whose size is about 1 to 10; transformers computes in float32 as well


def check_decoder(checks, tool, name, folder, device, expected):
    got = tool.run("logits", folder, device, [expected["ids"]])
    scale = max(1.0, float(np.abs(expected["logits"]).max()))
    checks.close(f"{name}: one by one", got[:-1], expected["logits"], ATOL * scale)
    checks.close(f"{name}: all at once", got[-1], expected["logits"][-1], ATOL * scale)


def check_encoder(checks, tool, name, folder, device, ids, hidden):
    got = tool.run("rows", folder, device, ids)
    checks.close(f"{name}: rows", got, hidden, ATOL * max(1.0, float(np.abs(hidden).max())))
    for how in ("mean", "cls", "last"):
        want = np.stack([numpy_bert.pooled(rows[: len(row)], how) for rows, row in zip(hidden, ids)])
        checks.close(f"{name}: {how}", tool.run("embed", folder, device, ids, how, "unit"), want, ATOL)


def nomic_folder(folder):
    """As nomic-embed-text has it: transformers has no class of these names, so that NumPy is the oracle."""
    config = """{"model_type": "nomic_bert", "n_embd": 64, "n_head": 4, "n_inner": 96, "n_layer": 2, "n_positions": 64,
        "layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": false, "rotary_emb_scale_base": null, "prenorm": false, "type_vocab_size": 2,
        "vocab_size": 96}"""
    shapes = {"embeddings.word_embeddings.weight": [96, 64], "embeddings.token_type_embeddings.weight": [2, 64],
              "emb_ln.weight": [64], "emb_ln.bias": [64]}
    for i in range(2):
        layer = f"encoder.layers.{i}."
        shapes |= {layer + "attn.Wqkv.weight": [192, 64], layer + "attn.out_proj.weight": [64, 64],
                   layer + "mlp.fc11.weight": [96, 64], layer + "mlp.fc12.weight": [96, 64],
                   layer + "mlp.fc2.weight": [64, 96]}
        shapes |= {f"{layer}{n}.{part}": [64] for n in ("norm1", "norm2") for part in ("weight", "bias")}
    tiny_hf.write_model(config, shapes, folder)


GGUF_NAMES = {
    "bert": {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
             "embeddings.position_embeddings": "position_embd", "embeddings.LayerNorm": "token_embd_norm",
             "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
             "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
             "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"},
    "nomic-bert": {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
                   "emb_ln": "token_embd_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
                   "norm1": "attn_output_norm", "mlp.fc11": "ffn_up", "mlp.fc12": "ffn_gate", "mlp.fc2": "ffn_down",
                   "norm2": "layer_output_norm"},
}


def as_gguf(architecture, folder, path, keys, metadata=None):
    """A folder's weights as llama.cpp names them. `keys` stand behind the architecture's name."""
    tensors = {}
    for name, value in tiny_hf.read_safetensors(folder / "model.safetensors").items():
        base, suffix = name.rsplit(".", 1)
        parts = base.split(".")
        layer = next((p for p in parts if p.isdigit()), None)
        inner = base if layer is None else base.split(f".{layer}.", 1)[1]
        if inner in GGUF_NAMES[architecture]:
            block = "" if layer is None else f"blk.{layer}."
            tensors[f"{block}{GGUF_NAMES[architecture][inner]}.{suffix}"] = value
    values = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in keys.items()} | (metadata or {})
    gguf_writer.write(path, values, {n: (t, gguf_writer.F16 if t.dtype == np.float16 else gguf_writer.F32) for n, t in tensors.items()})


ENCODER_KEYS = {"block_count": 2, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
                "attention.layer_norm_epsilon": 1e-12, "attention.causal": False, "pooling_type": 1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--fixtures", default=HERE / "fixtures", type=pathlib.Path)
    arguments = parser.parse_args()
    tool, checks, device = ModelTool(arguments.tool), Checks(), arguments.device
    fixtures = sorted(p.parent for p in arguments.fixtures.glob("*/expected.npz"))
    checks.expect(bool(fixtures), f"{len(fixtures)} fixtures")
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for fixture in fixtures:
            if arguments.only and fixture.name not in arguments.only:
                continue
            folder = root / fixture.name
            tiny_hf.write_fixture_model(fixture, folder)
            expected = np.load(fixture / "expected.npz")
            try:
                if "logits" in expected:
                    check_decoder(checks, tool, fixture.name, folder, device, expected)
                else:
                    ids = [row[:n] for row, n in zip(expected["ids"], expected["lengths"])]
                    check_encoder(checks, tool, fixture.name, folder, device, ids, expected["hidden"])
                    if fixture.name == "bert":
                        as_gguf("bert", folder, root / "bert.gguf", ENCODER_KEYS | {"context_length": 40})
                        check_encoder(checks, tool, "bert.gguf", root / "bert.gguf", device, ids, expected["hidden"])
            except RuntimeError as error:
                checks.expect(False, f"{fixture.name}: {error}")
        if not arguments.only or "nomic" in arguments.only:
            folder = root / "nomic"
            nomic_folder(folder)
            ids = [tiny_hf.token_ids(f"nomic.{i}", n, 96) for i, n in enumerate((20, 13, 1))]
            hidden = np.zeros((3, 20, 64))
            for i, row in enumerate(ids):
                hidden[i, : len(row)] = numpy_bert.Encoder(folder).rows(row)
            check_encoder(checks, tool, "nomic", folder, device, ids, hidden)
            as_gguf("nomic-bert", folder, root / "nomic.gguf", ENCODER_KEYS | {"context_length": 64, "rope.freq_base": 1000.0})
            check_encoder(checks, tool, "nomic.gguf", root / "nomic.gguf", device, ids, hidden)
    checks.finish()


if __name__ == "__main__":
    main()
