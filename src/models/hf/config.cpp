#include "models/hf/config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <optional>
#include <span>

#include "models/hf/json_fields.h"
#include "rlx/error.h"

namespace rlx::models::hf {

namespace {

// A model type: what GGUF calls it, and which activations its builder has (all others are refused).
struct Type {
  std::string_view name, architecture;
  std::initializer_list<std::string_view> activations;
};
const std::initializer_list<std::string_view> kSilu = {"silu", "swish"};
const std::initializer_list<std::string_view> kGeluTanh = {"gelu_pytorch_tanh", "gelu_new"};
const std::initializer_list<std::string_view> kEncoder = {"gelu", "gelu_new", "gelu_pytorch_tanh",
                                                          "relu", "silu",     "swiglu"};
const Type kTypes[] = {
    {"llama", "llama", kSilu},
    {"mistral", "llama", kSilu},
    {"mixtral", "llama", kSilu},
    {"qwen2", "qwen2", kSilu},
    {"qwen3", "qwen3", kSilu},
    {"qwen3_moe", "qwen3moe", kSilu},
    {"qwen3_next", "qwen3next", kSilu},
    {"gemma2", "gemma2", kGeluTanh},
    {"gemma3", "gemma3", kGeluTanh},
    {"gemma3_text", "gemma3", kGeluTanh},
    {"phi3", "phi3", kSilu},
    {"gpt2", "gpt2", kGeluTanh},
    {"starcoder2", "starcoder2", kGeluTanh},
    {"mamba", "mamba", kSilu},
    {"bert", "bert", kEncoder},
    {"roberta", "bert", kEncoder},
    {"xlm-roberta", "bert", kEncoder},
    {"distilbert", "bert", kEncoder},
    {"nomic_bert", "nomic-bert", kEncoder},
    {"modernbert", "modern-bert", kEncoder},
};

// Keys that mean the same in every model type that has them; the first that is there counts.
struct KeyRow {
  const char* gguf;
  enum Kind { kInteger, kNumber, kBoolean } kind;
  std::initializer_list<const char*> hf;
};
const KeyRow kKeys[] = {
    {"block_count", KeyRow::kInteger, {"num_hidden_layers", "n_layers", "n_layer"}},
    {"embedding_length", KeyRow::kInteger, {"hidden_size", "dim", "n_embd"}},
    {"context_length", KeyRow::kInteger, {"max_position_embeddings", "n_positions"}},
    {"feed_forward_length", KeyRow::kInteger, {"intermediate_size", "hidden_dim", "n_inner"}},
    {"attention.head_count", KeyRow::kInteger, {"num_attention_heads", "n_heads", "n_head"}},
    {"attention.head_count_kv", KeyRow::kInteger, {"num_key_value_heads"}},
    {"attention.key_length", KeyRow::kInteger, {"head_dim"}},
    {"attention.value_length", KeyRow::kInteger, {"head_dim"}},
    {"attention.layer_norm_rms_epsilon", KeyRow::kNumber, {"rms_norm_eps"}},
    {"attention.layer_norm_epsilon",
     KeyRow::kNumber,
     {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}},
    {"attention.sliding_window", KeyRow::kInteger, {"sliding_window"}},
    {"attn_logit_softcapping", KeyRow::kNumber, {"attn_logit_softcapping"}},
    {"final_logit_softcapping", KeyRow::kNumber, {"final_logit_softcapping"}},
    {"expert_count", KeyRow::kInteger, {"num_experts", "num_local_experts"}},
    {"expert_used_count", KeyRow::kInteger, {"num_experts_per_tok"}},
    {"expert_feed_forward_length", KeyRow::kInteger, {"moe_intermediate_size"}},
    {"expert_shared_feed_forward_length", KeyRow::kInteger, {"shared_expert_intermediate_size"}},
    {"expert_weights_norm", KeyRow::kBoolean, {"norm_topk_prob"}},
    {"token_type_count", KeyRow::kInteger, {"type_vocab_size"}},
    {"rope.freq_base", KeyRow::kNumber, {"rope_theta", "rotary_emb_base"}},
    {"rope.freq_base_swa", KeyRow::kNumber, {"rope_local_base_freq"}},
};

constexpr int64_t kMostRopeDims = 1 << 14;  // as heads may have: a divisor is made for every pair of them

class Translation {
 public:
  Translation(const JsonFields& in, Config& out) : in_(in), out_(out) {}

  void run(const Type& type) {
    for (const KeyRow& row : kKeys) copy(row);
    check_activation(type);
    const std::string& name = out_.model_type;
    if (name == "roberta" || name == "xlm-roberta") skip_positions();
    if (name == "distilbert") set("attention.layer_norm_epsilon", 1e-12);  // the code's, not the config's
    if (name == "nomic_bert") nomic();
    if (name == "gpt2") set("attention.layer_norm_epsilon", in_.number("layer_norm_epsilon").value_or(1e-5));
    if (name == "mamba") mamba();
    if (name == "qwen3_next") gated_delta();
    if (out_.architecture == "gemma2" || out_.architecture == "gemma3") gemma();
    layer_kinds();
    rope();
  }

 private:
  template <class T>
  void set(const char* key, T value) {
    out_.values.insert_or_assign(key, KeyValue(std::move(value)));
  }
  void erase(const char* key) { out_.values.erase(key); }
  bool is(std::string_view name) const { return out_.model_type == name; }
  int64_t need(const char* key) const {
    const std::optional<int64_t> value = in_.integer(key);
    require(value.has_value(), in_.where(), ": '", key, "' is missing.");
    return *value;
  }
  int64_t known(const char* gguf_key, int64_t otherwise) const {
    const auto found = out_.values.find(gguf_key);
    return found == out_.values.end() ? otherwise : std::get<int64_t>(found->second);
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    fail(ErrorKind::kUnsupported, str(in_.where(), ": ", what));
  }

  void copy(const KeyRow& row) {
    for (const char* key : row.hf) {
      if (in_.find(key) == nullptr) continue;
      if (row.kind == KeyRow::kInteger) set(row.gguf, *in_.integer(key));
      if (row.kind == KeyRow::kNumber) set(row.gguf, *in_.number(key));
      if (row.kind == KeyRow::kBoolean) set(row.gguf, *in_.boolean(key));
      return;
    }
  }

  void check_activation(const Type& type) {
    std::optional<std::string> act;
    for (const char* key : {"hidden_activation", "hidden_act", "activation_function", "activation"})
      if (!act) act = in_.text(key);
    if (!act) return;
    if (std::ranges::find(type.activations, *act) == type.activations.end() &&
        !(out_.architecture.starts_with("gemma") &&
          *act == "gelu"))  // old configs say gelu, and mean its approximation
      unsupported(str("the activation '", *act, "' is not one that rlx has for ", type.name, "."));
    if (out_.architecture.find("bert") != std::string::npos) set("hidden_activation", *act);
  }

  // Positions begin behind the padding's: the rows before are never used.
  void skip_positions() {
    out_.skipped_positions = in_.integer("pad_token_id").value_or(1) + 1;
    const int64_t rows = need("max_position_embeddings");
    require(out_.skipped_positions >= 0 && out_.skipped_positions < rows, in_.where(), ": pad_token_id leaves none of ",
            rows, " positions.");
    set("context_length", rows - out_.skipped_positions);
  }

  void nomic() {
    if (in_.boolean("prenorm").value_or(false)) unsupported("'prenorm' is not supported for nomic_bert.");
    if (in_.boolean("rotary_emb_interleaved").value_or(false))
      unsupported("'rotary_emb_interleaved' is not supported for nomic_bert.");
    if (in_.find("rotary_emb_scale_base") != nullptr) unsupported("'rotary_emb_scale_base' is not supported.");
    if (in_.integer("moe_every_n_layers").value_or(0) > 0) unsupported("experts of nomic_bert are not supported.");
    partial_rotation(in_.number("rotary_emb_fraction"));
  }

  // Mamba's norms are root-mean-square ones, though their epsilon is named like a layer norm's.
  void mamba() {
    const int64_t width = need("hidden_size");
    const int64_t inner = in_.integer("intermediate_size").value_or(in_.integer("expand").value_or(2) * width);
    set("attention.layer_norm_rms_epsilon", in_.number("layer_norm_epsilon").value_or(1e-5));
    set("ssm.inner_size", inner);
    set("ssm.state_size", in_.integer("state_size").value_or(16));
    set("ssm.conv_kernel", in_.integer("conv_kernel").value_or(4));
    const Json* rank = in_.find("time_step_rank");
    set("ssm.time_step_rank",
        rank && rank->is_string() ? (width + 15) / 16 : in_.integer("time_step_rank").value_or((width + 15) / 16));
    erase("feed_forward_length");
  }

  void gated_delta() {
    set("ssm.conv_kernel", need("linear_conv_kernel_dim"));
    set("ssm.state_size", need("linear_key_head_dim"));
    set("ssm.group_count", need("linear_num_key_heads"));
    set("ssm.time_step_rank", need("linear_num_value_heads"));
    set("ssm.inner_size", need("linear_num_value_heads") * need("linear_value_head_dim"));
    set("full_attention_interval", in_.integer("full_attention_interval").value_or(4));
  }

  // What Gemma's classes take where the file is silent: multimodal ones say little of their text model.
  void gemma() {
    const auto otherwise = [&](const char* key, KeyValue value) { out_.values.emplace(key, std::move(value)); };
    otherwise("attention.key_length", int64_t{256});
    otherwise("attention.value_length", int64_t{256});
    otherwise("attention.layer_norm_rms_epsilon", 1e-6);
    otherwise("attention.head_count", int64_t{8});
    otherwise("attention.head_count_kv", int64_t{4});
    otherwise("attention.sliding_window", int64_t{4096});
    if (out_.architecture == "gemma3") {
      otherwise("context_length", int64_t{131072});
      otherwise("rope.freq_base", 1e6);
      otherwise("rope.freq_base_swa", 1e4);
    }
    const double scalar = in_.number("query_pre_attn_scalar").value_or(256);
    require(scalar > 0, in_.where(), ": 'query_pre_attn_scalar' is not positive.");
    set("attention.scale", 1 / std::sqrt(scalar));
    if (in_.boolean("use_bidirectional_attention").value_or(false))
      unsupported("'use_bidirectional_attention' is not supported.");
  }

  // Which layers see a window: attention.sliding_window_pattern is a period (its last layer is the one that sees all,
  // ModernBERT's first), or a list with a value per layer.
  void layer_kinds() {
    if (is("qwen2") || is("qwen3") || is("qwen3_moe")) {
      if (!in_.boolean("use_sliding_window").value_or(false)) return erase("attention.sliding_window");
      const std::vector<std::string> kinds = in_.texts("layer_types");
      if (!kinds.empty() && std::ranges::count(kinds, "full_attention") == std::ssize(kinds))
        return erase("attention.sliding_window");
      unsupported("'use_sliding_window' is not supported for this model type.");
    }
    if (out_.architecture == "modern-bert") {
      set("attention.sliding_window", in_.integer("local_attention").value_or(128));
      set("attention.sliding_window_pattern", in_.integer("global_attn_every_n_layers").value_or(3));
    }
    if (out_.architecture == "gemma2") set("attention.sliding_window_pattern", int64_t{2});
    if (out_.architecture == "gemma3") {
      std::optional<int64_t> period = in_.integer("sliding_window_pattern");
      if (!period) period = in_.integer("_sliding_window_pattern");
      set("attention.sliding_window_pattern", period.value_or(6));
    }
    const std::vector<std::string> kinds = in_.texts("layer_types");
    if (kinds.empty() || is("qwen3_next")) return;
    std::vector<int64_t> windowed;
    for (const std::string& kind : kinds) {
      if (kind != "sliding_attention" && kind != "full_attention")
        unsupported(str("the layer type '", kind, "' is not supported."));
      windowed.push_back(kind == "sliding_attention");
    }
    const auto with = std::ranges::count(windowed, 1);
    if (with == 0) return erase("attention.sliding_window");
    if (out_.values.contains("attention.sliding_window_pattern"))
      return set("attention.sliding_window_pattern", windowed);
    if (with < std::ssize(windowed)) unsupported("'layer_types' that differ are not supported for this model type.");
  }

  void partial_rotation(std::optional<double> fraction) {
    if (!fraction || *fraction == 1) return;
    require(*fraction >= 0 && *fraction <= 1, in_.where(), ": the part of a head that turns (", *fraction,
            ") is not between 0 and 1.");
    set("rope.dimension_count", static_cast<int64_t>(static_cast<double>(head_size()) * *fraction));
  }
  int64_t head_size() const {
    const int64_t heads = std::max<int64_t>(known("attention.head_count", 1), 1);
    return known("attention.key_length", known("embedding_length", 0) / heads);
  }

  void rope() {
    partial_rotation(in_.number("partial_rotary_factor"));
    if (out_.architecture == "modern-bert") {
      set("rope.freq_base", in_.number("global_rope_theta").value_or(160000));
      set("rope.freq_base_swa", in_.number("local_rope_theta").value_or(10000));
    }
    // Until transformers 5: rope_theta and rope_scaling; since then rope_parameters, by kind of layer where they
    // differ.
    std::optional<JsonFields> parameters = in_.object("rope_parameters");
    if (parameters) {
      if (const auto sliding = parameters->object("sliding_attention")) {
        if (const auto base = sliding->number("rope_theta")) set("rope.freq_base_swa", *base);
        if (sliding->text("rope_type").value_or("default") != "default")
          unsupported("rope scaling of sliding layers is not supported.");
      }
      if (const auto full = parameters->object("full_attention")) parameters = full;
      if (const auto base = parameters->number("rope_theta")) set("rope.freq_base", *base);
      partial_rotation(parameters->number("partial_rotary_factor"));
      return scaling(*parameters);
    }
    if (const auto old = in_.object("rope_scaling")) scaling(*old);
  }

  void scaling(const JsonFields& r) {
    std::optional<std::string> type = r.text("rope_type");
    if (!type) type = r.text("type");
    // Positions up to max_position_embeddings are not changed by the dynamic one, and rlx goes no further.
    if (!type || *type == "default" || *type == "dynamic" || *type == "mrope") return;
    if (*type == "su") type = "longrope";
    const int64_t context = known("context_length", 2048);
    std::optional<int64_t> original = r.integer("original_max_position_embeddings");
    if (!original) original = in_.integer("original_max_position_embeddings");
    const std::optional<double> factor = r.number("factor");
    set("rope.scaling.original_context_length", original.value_or(context));
    if (*type == "longrope") return long_rope(r, original.value_or(context), context);
    require(factor && *factor > 0, in_.where(), ": the rope scaling '", *type, "' has no positive 'factor'.");
    if (*type == "llama3") return llama3(r, *factor, original.value_or(context));
    if (*type != "linear" && *type != "yarn") unsupported(str("rope scaling '", *type, "' is unknown."));
    set("rope.scaling.type", *type);
    set("rope.scaling.factor", *factor);
    if (*type == "linear") return;
    if (const auto v = r.number("beta_fast")) set("rope.scaling.yarn_beta_fast", *v);
    if (const auto v = r.number("beta_slow")) set("rope.scaling.yarn_beta_slow", *v);
    if (r.find("mscale") != nullptr || r.find("mscale_all_dim") != nullptr)
      unsupported("'mscale' of a yarn rope scaling is not supported.");
    // GGUF's is a factor on top of YaRN's own.
    if (const auto v = r.number("attention_factor"))
      set("rope.scaling.attn_factor", *v / (1 + 0.1 * std::log(*factor)));
  }

  // Frequencies whose waves are long against the original context are divided by the factor, short ones stay, those
  // between are mixed: a divisor per pair.
  void llama3(const JsonFields& r, double factor, int64_t original) {
    const double low = r.number("low_freq_factor").value_or(1), high = r.number("high_freq_factor").value_or(4);
    require(low > 0 && high > low, in_.where(), ": low_freq_factor (", low, ") is not below high_freq_factor (", high,
            ").");
    const int64_t dims = known("rope.dimension_count", head_size());
    require(dims <= kMostRopeDims, in_.where(), ": a head's size (", dims, ") is more than ", kMostRopeDims, ".");
    const auto base = std::get<double>(out_.values.try_emplace("rope.freq_base", 10000.0).first->second);
    std::vector<float> divisors;
    for (int64_t i = 0; i < dims; i += 2) {
      const double wave = 2 * std::numbers::pi * std::pow(base, static_cast<double>(i) / static_cast<double>(dims));
      const double turns = static_cast<double>(original) / wave;
      const double smooth = (turns - low) / (high - low);
      if (turns < low)
        divisors.push_back(static_cast<float>(factor));
      else if (turns > high)
        divisors.push_back(1);
      else
        divisors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
    }
    out_.factors["rope_freqs.weight"] = std::move(divisors);
  }

  void long_rope(const JsonFields& r, int64_t original, int64_t context) {
    require(original > 1, in_.where(), ": 'original_max_position_embeddings' is ", original, ".");
    out_.factors["rope_factors_long.weight"] = r.floats("long_factor");
    out_.factors["rope_factors_short.weight"] = r.floats("short_factor");
    const double scale = static_cast<double>(context) / static_cast<double>(original);
    const double magnitude = scale <= 1 ? 1 : std::sqrt(1 + std::log(scale) / std::log(static_cast<double>(original)));
    set("rope.scaling.attn_factor", r.number("attention_factor").value_or(magnitude));
  }

  const JsonFields& in_;
  Config& out_;
};

}  // namespace

Config read_config(const Json& json, const std::string& where) {
  require(json.is_object(), where, " is not an object.");
  Config out;
  const JsonFields top(json, where);
  const std::optional<std::string> type = top.text("model_type");
  require(type.has_value(), where, " has no 'model_type': it is not a model's.");
  out.model_type = *type;
  const Type* known = nullptr;
  std::string names;
  for (const Type& t : kTypes) {
    if (t.name == *type) known = &t;
    names += str(names.empty() ? "" : ", ", t.name);
  }
  if (known == nullptr)
    fail(ErrorKind::kUnsupported, str(where, ": the model type '", *type, "' is not supported; rlx has: ", names, "."));
  out.architecture = known->architecture;
  // A multimodal model keeps its text model's values in an object of their own.
  const std::optional<JsonFields> inner = top.object("text_config");
  const JsonFields& in = inner ? *inner : top;
  if (in.find("quantization_config") != nullptr || top.find("quantization_config") != nullptr)
    fail(ErrorKind::kUnsupported, str(where, ": quantized weights ('quantization_config') are not supported."));
  std::optional<bool> tied = in.boolean("tie_word_embeddings");
  if (!tied) tied = top.boolean("tie_word_embeddings");
  out.ties_head = tied.value_or(false);
  Translation(in, out).run(*known);
  return out;
}

}  // namespace rlx::models::hf
