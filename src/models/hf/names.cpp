#include "models/hf/names.h"

#include <span>

#include "rlx/error.h"

namespace rlx::models::hf {

namespace {

// clang-format off
// Decoders that are built like Llama; each has some of these.
constexpr NameRow kDecoder[] = {
    {"token_embd", "embed_tokens"},
    {"output", "^lm_head"},
    {"output", "^language_model.lm_head"},
    {"attn_q", "layers.{i}.self_attn.q_proj"},
    {"attn_k", "layers.{i}.self_attn.k_proj"},
    {"attn_v", "layers.{i}.self_attn.v_proj"},
    {"attn_qkv", "layers.{i}.self_attn.qkv_proj"},
    {"attn_output", "layers.{i}.self_attn.o_proj"},
    {"ffn_gate", "layers.{i}.mlp.gate_proj"},
    {"ffn_up", "layers.{i}.mlp.up_proj"},
    {"ffn_up", "layers.{i}.mlp.gate_up_proj"},
    {"ffn_up", "layers.{i}.mlp.c_fc"},
    {"ffn_down", "layers.{i}.mlp.down_proj"},
    {"ffn_down", "layers.{i}.mlp.c_proj"},
    {"ffn_gate_inp", "layers.{i}.mlp.gate"},
    {"ffn_gate_inp", "layers.{i}.block_sparse_moe.gate"},
    {"ffn_gate_exps", "layers.{i}.mlp.experts.{e}.gate_proj", Change::kStacked},
    {"ffn_gate_exps", "layers.{i}.block_sparse_moe.experts.{e}.w1", Change::kStacked},
    {"ffn_up_exps", "layers.{i}.mlp.experts.{e}.up_proj", Change::kStacked},
    {"ffn_up_exps", "layers.{i}.block_sparse_moe.experts.{e}.w3", Change::kStacked},
    {"ffn_down_exps", "layers.{i}.mlp.experts.{e}.down_proj", Change::kStacked},
    {"ffn_down_exps", "layers.{i}.block_sparse_moe.experts.{e}.w2", Change::kStacked},
    {"ffn_gate_up_exps.weight", "layers.{i}.mlp.experts.gate_up_proj"},
    {"ffn_down_exps.weight", "layers.{i}.mlp.experts.down_proj"},
};
constexpr NameRow kNorms[] = {
    {"output_norm", "norm"},
    {"attn_norm", "layers.{i}.input_layernorm"},
    {"ffn_norm", "layers.{i}.post_attention_layernorm"},
    {"attn_q_norm", "layers.{i}.self_attn.q_norm"},
    {"attn_k_norm", "layers.{i}.self_attn.k_norm"},
};
constexpr NameRow kGemma[] = {
    {"output_norm", "norm", Change::kPlusOne},
    {"attn_norm", "layers.{i}.input_layernorm", Change::kPlusOne},
    {"post_attention_norm", "layers.{i}.post_attention_layernorm", Change::kPlusOne},
    {"ffn_norm", "layers.{i}.pre_feedforward_layernorm", Change::kPlusOne},
    {"post_ffw_norm", "layers.{i}.post_feedforward_layernorm", Change::kPlusOne},
    {"attn_q_norm", "layers.{i}.self_attn.q_norm", Change::kPlusOne},
    {"attn_k_norm", "layers.{i}.self_attn.k_norm", Change::kPlusOne},
};
constexpr NameRow kQwenNext[] = {
    {"output_norm", "norm", Change::kPlusOne},
    {"attn_norm", "layers.{i}.input_layernorm", Change::kPlusOne},
    {"post_attention_norm", "layers.{i}.post_attention_layernorm", Change::kPlusOne},
    {"attn_q_norm", "layers.{i}.self_attn.q_norm", Change::kPlusOne},
    {"attn_k_norm", "layers.{i}.self_attn.k_norm", Change::kPlusOne},
    {"attn_qkv", "layers.{i}.linear_attn.in_proj_qkvz", Change::kQkvOfGroups},
    {"attn_gate", "layers.{i}.linear_attn.in_proj_qkvz", Change::kGateOfGroups},
    {"ssm_ba", "layers.{i}.linear_attn.in_proj_ba"},
    {"ssm_conv1d", "layers.{i}.linear_attn.conv1d", Change::kFlat},
    {"ssm_a", "layers.{i}.linear_attn.A_log", Change::kNegativeExp},
    {"ssm_dt.bias", "layers.{i}.linear_attn.dt_bias"},
    {"ssm_norm", "layers.{i}.linear_attn.norm"},
    {"ssm_out", "layers.{i}.linear_attn.out_proj"},
    {"ffn_gate_shexp", "layers.{i}.mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "layers.{i}.mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "layers.{i}.mlp.shared_expert.down_proj"},
    {"ffn_gate_inp_shexp", "layers.{i}.mlp.shared_expert_gate", Change::kFlat},
};
constexpr NameRow kGpt2[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output", "^lm_head"},
    {"output_norm", "ln_f"},
    {"attn_norm", "h.{i}.ln_1"},
    {"attn_qkv", "h.{i}.attn.c_attn", Change::kTransposed},
    {"attn_output", "h.{i}.attn.c_proj", Change::kTransposed},
    {"ffn_norm", "h.{i}.ln_2"},
    {"ffn_up", "h.{i}.mlp.c_fc", Change::kTransposed},
    {"ffn_down", "h.{i}.mlp.c_proj", Change::kTransposed},
};
constexpr NameRow kMamba[] = {
    {"token_embd", "embeddings"},
    {"token_embd", "embedding"},  // of the model's own code
    {"output", "^lm_head"},
    {"output_norm", "norm_f"},
    {"attn_norm", "layers.{i}.norm"},
    {"ssm_in", "layers.{i}.mixer.in_proj"},
    {"ssm_conv1d", "layers.{i}.mixer.conv1d", Change::kFlat},
    {"ssm_x", "layers.{i}.mixer.x_proj"},
    {"ssm_dt", "layers.{i}.mixer.dt_proj"},
    {"ssm_a", "layers.{i}.mixer.A_log", Change::kNegativeExp},
    {"ssm_d", "layers.{i}.mixer.D"},
    {"ssm_out", "layers.{i}.mixer.out_proj"},
};
constexpr NameRow kBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"position_embd", "embeddings.position_embeddings", Change::kSkipPositions},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "encoder.layer.{i}.attention.self.query"},
    {"attn_k", "encoder.layer.{i}.attention.self.key"},
    {"attn_v", "encoder.layer.{i}.attention.self.value"},
    {"attn_output", "encoder.layer.{i}.attention.output.dense"},
    {"attn_output_norm", "encoder.layer.{i}.attention.output.LayerNorm"},
    {"ffn_up", "encoder.layer.{i}.intermediate.dense"},
    {"ffn_down", "encoder.layer.{i}.output.dense"},
    {"layer_output_norm", "encoder.layer.{i}.output.LayerNorm"},
};
constexpr NameRow kDistilBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "transformer.layer.{i}.attention.q_lin"},
    {"attn_k", "transformer.layer.{i}.attention.k_lin"},
    {"attn_v", "transformer.layer.{i}.attention.v_lin"},
    {"attn_output", "transformer.layer.{i}.attention.out_lin"},
    {"attn_output_norm", "transformer.layer.{i}.sa_layer_norm"},
    {"ffn_up", "transformer.layer.{i}.ffn.lin1"},
    {"ffn_down", "transformer.layer.{i}.ffn.lin2"},
    {"layer_output_norm", "transformer.layer.{i}.output_layer_norm"},
};
constexpr NameRow kNomicBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "emb_ln"},
    {"attn_qkv", "encoder.layers.{i}.attn.Wqkv"},
    {"attn_output", "encoder.layers.{i}.attn.out_proj"},
    {"attn_output_norm", "encoder.layers.{i}.norm1"},
    {"ffn_up", "encoder.layers.{i}.mlp.fc11"},
    {"ffn_gate", "encoder.layers.{i}.mlp.fc12"},
    {"ffn_down", "encoder.layers.{i}.mlp.fc2"},
    {"layer_output_norm", "encoder.layers.{i}.norm2"},
};
constexpr NameRow kModernBert[] = {
    {"token_embd", "embeddings.tok_embeddings"},
    {"token_embd_norm", "embeddings.norm"},
    {"output_norm", "final_norm"},
    {"attn_norm", "layers.{i}.attn_norm"},
    {"attn_qkv", "layers.{i}.attn.Wqkv"},
    {"attn_output", "layers.{i}.attn.Wo"},
    {"ffn_norm", "layers.{i}.mlp_norm"},
    {"ffn_up", "layers.{i}.mlp.Wi"},
    {"ffn_down", "layers.{i}.mlp.Wo"},
};
// clang-format on

using Table = std::span<const NameRow>;

std::vector<Table> tables_of(std::string_view model_type) {
  if (model_type.starts_with("gemma")) return {kDecoder, kGemma};
  if (model_type == "qwen3_next") return {kDecoder, kQwenNext};
  if (model_type == "gpt2") return {kGpt2};
  if (model_type == "mamba") return {kMamba};
  if (model_type == "bert" || model_type == "roberta" || model_type == "xlm-roberta") return {kBert};
  if (model_type == "distilbert") return {kDistilBert};
  if (model_type == "nomic_bert") return {kNomicBert};
  if (model_type == "modernbert") return {kModernBert};
  return {kDecoder, kNorms};
}

// "blk.12.attn_q.weight": 12, and "attn_q.weight".
std::string_view without_layer(std::string_view name, std::string_view& layer) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return name;
  const size_t dot = name.find('.', kBlock.size());
  if (dot == std::string_view::npos) return name;
  layer = name.substr(kBlock.size(), dot - kBlock.size());
  return name.substr(dot + 1);
}

std::string filled(std::string_view pattern, std::string_view layer) {
  std::string out(pattern);
  if (const size_t at = out.find("{i}"); at != std::string::npos) out.replace(at, 3, layer);
  return out;
}

}  // namespace

std::vector<Place> places_of(std::string_view model_type, const std::string& gguf_name) {
  std::string_view layer;
  const std::string_view rest = without_layer(gguf_name, layer);
  const size_t dot = rest.rfind('.');
  const std::string_view base = rest.substr(0, dot);
  const std::string_view suffix = dot == std::string_view::npos ? "" : rest.substr(dot);
  std::vector<Place> out;
  for (const Table& table : tables_of(model_type))
    for (const NameRow& row : table) {
      const bool whole = row.gguf == rest;
      if (!whole && row.gguf != base) continue;
      if ((row.hf.find("{i}") != std::string_view::npos) != !layer.empty()) continue;
      const bool absolute = row.hf.starts_with('^');
      const std::string name = filled(absolute ? row.hf.substr(1) : row.hf, layer);
      out.push_back({whole ? name : str(name, suffix), absolute, row.change});
      // As TensorFlow called them, in BERT's first files.
      if (!whole && suffix == ".weight") out.push_back({name + ".gamma", absolute, row.change});
      if (!whole && suffix == ".bias") out.push_back({name + ".beta", absolute, row.change});
    }
  return out;
}

}  // namespace rlx::models::hf
