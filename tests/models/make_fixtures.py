#!/usr/bin/env python3
"""What Hugging Face transformers computes with tiny models: the expected results of the tests of src/models.

    make_fixtures.py FOLDER [NAME…]        needs torch, transformers and numpy

Each model is made by its config class and saved, so that config.json and the tensors' names are transformers' own; the
weights are replaced by those of tiny_hf.py, loaded again, and run. FOLDER/NAME gets config.json, tensors.json (names and
sizes) and expected.npz (ids and logits, or ids, lengths and hidden rows). Models that this version of transformers does not
have are left out, and named.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import traceback

import numpy as np
import torch
import transformers

import tiny_hf

ROWS = 20
VOCABULARY = 96
COMMON = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, head_dim=16)
BERT = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=40, type_vocab_size=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
LONG = dict(rope_type="longrope", long_factor=[1.5, 2.0, 3.0, 5.0, 6.0, 8.0, 9.0, 11.0],
            short_factor=[1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.1])
NEXT = dict(head_dim=16, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=16, linear_value_head_dim=16,
            linear_conv_kernel_dim=4, partial_rotary_factor=0.5, num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=48, shared_expert_intermediate_size=48)

# name: (config class, its arguments)
DECODERS = {
    "llama": ("LlamaConfig", dict(tie_word_embeddings=False)),
    "llama_bias": ("LlamaConfig", dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=32)),
    "llama_rope_linear": ("LlamaConfig", dict(rope_scaling=dict(rope_type="linear", factor=2.0))),
    "llama_rope_llama3": ("LlamaConfig", dict(rope_scaling=LLAMA3)),
    "llama_rope_yarn": ("LlamaConfig", dict(rope_scaling=YARN)),
    "llama_rope_dynamic": ("LlamaConfig", dict(rope_scaling=dict(rope_type="dynamic", factor=2.0))),
    "mistral": ("MistralConfig", dict(sliding_window=6)),
    "mixtral": ("MixtralConfig", dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    "qwen2": ("Qwen2Config", dict(tie_word_embeddings=True)),
    "qwen3": ("Qwen3Config", dict(head_dim=32, tie_word_embeddings=True)),
    "qwen3_moe": ("Qwen3MoeConfig", dict(norm_topk_prob=True, **MOE)),
    "qwen3_moe_raw": ("Qwen3MoeConfig", dict(norm_topk_prob=False, mlp_only_layers=[0], **MOE)),
    "qwen3_next": ("Qwen3NextConfig", dict(num_hidden_layers=4, **NEXT)),
    "gemma2": ("Gemma2Config", dict(head_dim=32, query_pre_attn_scalar=16, sliding_window=6, attn_logit_softcapping=2.0,
                                    final_logit_softcapping=3.0)),
    "gemma3": ("Gemma3TextConfig", dict(head_dim=32, query_pre_attn_scalar=16, sliding_window=6, num_hidden_layers=7,
                                        rope_theta=100000.0, rope_local_base_freq=5000.0)),
    "gemma3_linear": ("Gemma3TextConfig", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=6, num_hidden_layers=6,
                                               rope_scaling=dict(rope_type="linear", factor=8.0))),
    "phi3": ("Phi3Config", dict(sliding_window=6)),
    "phi3_long": ("Phi3Config", dict(rope_scaling=LONG, original_max_position_embeddings=16, sliding_window=None)),
    "phi3_short": ("Phi3Config", dict(rope_scaling=LONG, original_max_position_embeddings=64, sliding_window=None)),
    "gpt2": ("GPT2Config", dict(n_embd=64, n_layer=2, n_head=4, n_positions=64)),
    "starcoder2": ("Starcoder2Config", dict(use_bias=True, sliding_window=6)),
    "mamba": ("MambaConfig", dict(state_size=16, conv_kernel=4, expand=2, time_step_rank=8)),
}
ENCODERS = {
    "bert": ("BertConfig", {}),
    "roberta": ("RobertaConfig", dict(type_vocab_size=1, pad_token_id=1)),
    "xlm_roberta": ("XLMRobertaConfig", dict(type_vocab_size=1, pad_token_id=1)),
    "distilbert": ("DistilBertConfig", dict(dim=64, n_layers=2, n_heads=4, hidden_dim=96)),
    "modernbert": ("ModernBertConfig", dict(num_hidden_layers=4, global_attn_every_n_layers=3, local_attention=6,
                                            global_rope_theta=16000.0, local_rope_theta=1000.0, reference_compile=False,
                                            bos_token_id=1, cls_token_id=1, sep_token_id=2, eos_token_id=2)),
    "nomic_bert": ("NomicBertConfig", {}),
}


def without_unknown(config_class, arguments):
    """Arguments of COMMON that another family spells otherwise are no harm: config classes keep what they do not know."""
    if config_class.__name__ == "GPT2Config":
        keep = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "n_embd", "n_layer", "n_head", "n_positions")
        return {k: v for k, v in arguments.items() if k in keep}
    if config_class.__name__ == "MambaConfig":
        drop = ("num_attention_heads", "num_key_value_heads", "max_position_embeddings", "intermediate_size")
        return {k: v for k, v in arguments.items() if k not in drop}
    return arguments


def build(name, config_class, arguments, auto, folder):
    """The model with the deterministic weights, and the folder it came from."""
    config = config_class(**without_unknown(config_class, arguments))
    try:
        model = auto.from_config(config, attn_implementation="eager")
    except (TypeError, ValueError):
        model = auto.from_config(config)
    saved = folder / "saved"
    model.save_pretrained(saved, safe_serialization=True)
    shapes = {n: list(t.shape) for n, t in tiny_hf.read_safetensors(saved / "model.safetensors").items()}
    made = folder / "made"
    tiny_hf.write_model((saved / "config.json").read_text(), shapes, made)
    try:
        model = auto.from_pretrained(made, attn_implementation="eager")
    except (TypeError, ValueError):
        model = auto.from_pretrained(made)
    return model.to(torch.float32).eval(), made, shapes


def same_weights(model, made):
    """transformers has taken the weights of the folder: none is left at its random start, as far as names are the same."""
    state = model.state_dict()
    for name, value in tiny_hf.read_safetensors(made / "model.safetensors").items():
        for key in (name, name.split(".", 1)[-1]):
            if key in state and list(state[key].shape) == list(value.shape):
                if not np.array_equal(state[key].numpy(), value):
                    raise RuntimeError(f"{name} was not loaded")
                break


def run_decoder(name, model):
    ids = tiny_hf.token_ids(name, ROWS, VOCABULARY)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None], use_cache=False).logits[0]
    return dict(ids=ids, logits=logits.float().numpy())


def run_encoder(name, model):
    lengths = np.array([ROWS, 13, 1])
    pad = model.config.pad_token_id or 0
    ids = np.full((len(lengths), ROWS), pad)
    for i, length in enumerate(lengths):
        row = tiny_hf.token_ids(f"{name}.{i}", length, VOCABULARY - 4) + 4  # a pad token within would count as padding
        ids[i, :length] = row
    mask = (np.arange(ROWS) < lengths[:, None]).astype(np.int64)
    with torch.no_grad():
        hidden = model(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state
    return dict(ids=ids, lengths=lengths, hidden=hidden.float().numpy() * mask[..., None].astype(np.float32))


def main(target, names):
    target = pathlib.Path(target)
    missing, failed = [], []
    todo = [(n, *row, True) for n, row in DECODERS.items()] + [(n, *row, False) for n, row in ENCODERS.items()]
    for name, class_name, arguments, is_decoder in todo:
        if names and name not in names:
            continue
        config_class = getattr(transformers, class_name, None)
        if config_class is None:
            missing.append(name)
            continue
        torch.manual_seed(0)
        try:
            with tempfile.TemporaryDirectory() as temporary:
                auto = transformers.AutoModelForCausalLM if is_decoder else transformers.AutoModel
                merged = {**(COMMON if is_decoder else BERT), **arguments}
                model, made, shapes = build(name, config_class, merged, auto, pathlib.Path(temporary))
                same_weights(model, made)
                result = run_decoder(name, model) if is_decoder else run_encoder(name, model)
                out = target / name
                out.mkdir(parents=True, exist_ok=True)
                shutil.copy(made / "config.json", out)
                lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(shape)}" for n, shape in shapes.items())
                (out / "tensors.json").write_text("{\n" + lines + "\n}\n")
                np.savez_compressed(out / "expected.npz", **result)
                print(f"{name}: {sum(f.stat().st_size for f in out.iterdir())} bytes", flush=True)
        except Exception:  # the others are wanted all the same
            traceback.print_exc()
            failed.append(name)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print("not in this transformers:", ", ".join(missing) or "none")
    print("failed:", ", ".join(failed) or "none")
    (target / "versions.json").write_text(json.dumps(
        {"transformers": transformers.__version__, "torch": torch.__version__, "missing": missing}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
