// Hugging Face folders: config.json and weights under GGUF's names, and folders that are none.
#include "models/hf_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "models/encoders/encoder.h"
#include "models/safetensors_file.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace rlx::test {

namespace {

using models::HfSource;
using models::Weight;

// Tensors of F32 0, 1, 2 …
struct Entry {
  std::string name;
  std::vector<int64_t> sizes;
};
std::string weights(const std::vector<Entry>& entries) {
  std::string header = "{", data;
  for (const Entry& e : entries) {
    int64_t count = 1;
    for (const int64_t s : e.sizes) count *= s;
    const auto begin = static_cast<int>(data.size());
    for (int64_t i = 0; i < count; ++i) {
      const auto v = static_cast<float>(i);
      data.append(reinterpret_cast<const char*>(&v), 4);
    }
    header += (header.size() > 1 ? "," : "") + entry(e.name, "F32", str(e.sizes), begin, static_cast<int>(data.size()));
  }
  return safetensors_bytes(header + "}", data);
}

std::string llama(const std::string& more = "") {
  return R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,"num_key_value_heads":1,
             "intermediate_size":16,"rms_norm_eps":1e-6,"max_position_embeddings":64,"rope_theta":500,"hidden_act":"silu")" +
         more + "}";
}
const Entry kEmbedding = {"model.embed_tokens.weight", {4, 8}};

std::vector<float> values(const models::ModelSource& source, const std::string& name) {
  const Weight w = source.require_weight(name);
  const auto span = w.data.values<float>();
  return {span.begin(), span.end()};
}

class Folder : public TempFolder {
 public:
  Folder(const std::string& config, const std::vector<Entry>& entries) {
    write("config.json", config);
    write("model.safetensors", weights(entries));
  }
  std::string root() const { return path(""); }
  HfSource source() const { return HfSource(root()); }
};

TEST(HfSource, KeysAreGgufs) {
  const Folder folder(llama(), {kEmbedding});
  const HfSource source = folder.source();
  EXPECT_EQ(source.architecture(), "llama");
  EXPECT_FALSE(source.pairs_are_adjacent());
  EXPECT_EQ(source.integer("block_count"), 1);
  EXPECT_EQ(source.integer("embedding_length"), 8);
  EXPECT_EQ(source.integer("attention.head_count_kv"), 1);
  EXPECT_EQ(source.integers("attention.head_count_kv"), std::vector<int64_t>{1});
  EXPECT_EQ(source.number("attention.layer_norm_rms_epsilon"), 1e-6);
  EXPECT_EQ(source.number("rope.freq_base"), 500);
  EXPECT_EQ(source.integer("attention.sliding_window"), std::nullopt);
  EXPECT_EQ(source.find("output.weight"), std::nullopt);
  EXPECT_ERROR(source.require_weight("output_norm.weight"), kInvalid, "'output_norm.weight'");
}

TEST(HfSource, WeightsAreFoundUnderEveryPrefix) {
  for (const std::string prefix : {"model.", "", "language_model.model.", "model.language_model."}) {
    const Folder folder(llama(), {{prefix + "embed_tokens.weight", {4, 8}},
                                  {prefix + "layers.0.self_attn.q_proj.weight", {8, 8}},
                                  {prefix + "layers.0.self_attn.q_proj.bias", {8}},
                                  {"lm_head.weight", {4, 8}}});
    const HfSource source = folder.source();
    EXPECT_EQ(source.require_weight("blk.0.attn_q.weight").sizes, (std::vector<int64_t>{8, 8}));
    EXPECT_TRUE(source.find("blk.0.attn_q.bias"));
    EXPECT_FALSE(source.find("blk.1.attn_q.weight"));
    EXPECT_TRUE(source.find("output.weight"));
  }
  const Folder tied(llama(R"(,"tie_word_embeddings":true)"), {kEmbedding, {"lm_head.weight", {4, 8}}});
  EXPECT_FALSE(tied.source().find("output.weight"));
}

TEST(HfSource, ConversionsAreDoneWhenAskedFor) {
  const Folder gpt2(R"({"model_type":"gpt2","n_layer":1,"n_embd":2,"n_head":1,"n_positions":8})",
                    {{"wte.weight", {4, 2}}, {"h.0.attn.c_attn.weight", {2, 6}}, {"h.0.attn.c_attn.bias", {6}}});
  const HfSource source = gpt2.source();
  EXPECT_EQ(source.require_weight("blk.0.attn_qkv.weight").sizes, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(values(source, "blk.0.attn_qkv.weight"), (std::vector<float>{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
  EXPECT_EQ(values(source, "blk.0.attn_qkv.bias"), (std::vector<float>{0, 1, 2, 3, 4, 5}));

  const Folder gemma(R"({"model_type":"gemma2","num_hidden_layers":1,"hidden_size":8,"query_pre_attn_scalar":16})",
                     {kEmbedding, {"model.norm.weight", {3}}});
  EXPECT_EQ(values(gemma.source(), "output_norm.weight"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(gemma.source().number("attention.scale"), 0.25);

  const Folder mamba(R"({"model_type":"mamba","num_hidden_layers":1,"hidden_size":8,"time_step_rank":"auto"})",
                     {{"backbone.embeddings.weight", {4, 8}},
                      {"backbone.layers.0.mixer.A_log", {2}},
                      {"backbone.layers.0.mixer.conv1d.weight", {3, 1, 4}}});
  EXPECT_EQ(values(mamba.source(), "blk.0.ssm_a"), (std::vector<float>{-1, -std::exp(1.0f)}));
  EXPECT_EQ(mamba.source().require_weight("blk.0.ssm_conv1d.weight").sizes, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(mamba.source().integer("ssm.time_step_rank"), 1);
  EXPECT_EQ(mamba.source().integer("ssm.inner_size"), 16);

  const Folder roberta(R"({"model_type":"roberta","num_hidden_layers":1,"hidden_size":2,"num_attention_heads":1,
                           "max_position_embeddings":5,"pad_token_id":1})",
                       {{"roberta.embeddings.word_embeddings.weight", {4, 2}},
                        {"roberta.embeddings.position_embeddings.weight", {5, 2}}});
  EXPECT_EQ(values(roberta.source(), "position_embd.weight"), (std::vector<float>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(roberta.source().integer("context_length"), 3);
}

TEST(HfSource, ExpertsAreStacked) {
  const std::string config = R"({"model_type":"mixtral","num_hidden_layers":1,"hidden_size":2,"num_attention_heads":1,
                                 "num_local_experts":2,"num_experts_per_tok":1})";
  const std::string expert = "model.layers.0.block_sparse_moe.experts.";
  const Folder folder(
      config,
      {{"model.embed_tokens.weight", {4, 2}}, {expert + "0.w1.weight", {1, 2}}, {expert + "1.w1.weight", {1, 2}}});
  const HfSource source = folder.source();
  EXPECT_EQ(source.require_weight("blk.0.ffn_gate_exps.weight").sizes, (std::vector<int64_t>{2, 1, 2}));
  EXPECT_EQ(values(source, "blk.0.ffn_gate_exps.weight"), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(source.integer("expert_used_count"), 1);
  const Folder lost(config, {{"model.embed_tokens.weight", {4, 2}}, {expert + "0.w1.weight", {1, 2}}});
  EXPECT_ERROR(lost.source().find("blk.0.ffn_gate_exps.weight"), kInvalid, "experts.1.w1.weight' is missing");
  const Folder odd(
      config,
      {{"model.embed_tokens.weight", {4, 2}}, {expert + "0.w1.weight", {1, 2}}, {expert + "1.w1.weight", {1, 3}}});
  EXPECT_ERROR(odd.source().find("blk.0.ffn_gate_exps.weight"), kInvalid, "fellows");
}

// What a file claims costs nothing before it is there.
TEST(HfSource, WeightsThatAreNotThere) {
  const Folder many(
      R"({"model_type":"mixtral","num_hidden_layers":1,"hidden_size":2,"num_attention_heads":1,
                        "num_local_experts":4096,"num_experts_per_tok":1})",
      {{"model.embed_tokens.weight", {4, 2}}, {"model.layers.0.block_sparse_moe.experts.0.w1.weight", {512, 2}}});
  EXPECT_ERROR(many.source().find("blk.0.ffn_gate_exps.weight"), kInvalid, "experts.1.w1.weight' is missing");
  const int64_t huge = int64_t{1} << 57;
  const Folder empty(R"({"model_type":"gpt2","n_layer":1,"n_embd":2,"n_head":1,"n_positions":8})",
                     {{"wte.weight", {4, 2}}, {"h.0.attn.c_attn.weight", {huge, 0}}});
  EXPECT_ERROR(empty.source().find("blk.0.attn_qkv.weight"), kInvalid, "is empty");
  for (const std::string sizes : {R"("linear_num_key_heads":2147483647,"linear_key_head_dim":2147483647)",
                                  R"("linear_num_key_heads":1,"linear_key_head_dim":2147483647)"}) {
    const Folder nets(R"({"model_type":"qwen3_next","num_hidden_layers":1,"hidden_size":2,"linear_conv_kernel_dim":4,
                          "linear_num_value_heads":2147483647,"linear_value_head_dim":2147483647,)" +
                          sizes + "}",
                      {kEmbedding, {"model.layers.0.linear_attn.in_proj_qkvz.weight", {8, 2}}});
    EXPECT_ERROR(nets.source().find("blk.0.attn_qkv.weight"), kInvalid, "the projection of the delta nets");
  }
}

TEST(HfSource, RopeScalingIsSpelledInTwoWays) {
  const std::string llama3 =
      R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":32,"rope_theta":500})";
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const Folder folder(llama(",\"" + key + "\":" + llama3), {kEmbedding});
    const std::vector<float> factors = values(folder.source(), "rope_freqs.weight");
    ASSERT_EQ(factors.size(), 2u);
    // The first pair turns 5 times over 32 positions, the second a quarter of a time.
    EXPECT_EQ(factors[0], 1);
    EXPECT_EQ(factors[1], 8);
  }
  const Folder yarn(llama(R"(,"rope_scaling":{"type":"yarn","factor":4,"attention_factor":1})"), {kEmbedding});
  EXPECT_EQ(yarn.source().text("rope.scaling.type"), "yarn");
  EXPECT_NEAR(*yarn.source().number("rope.scaling.attn_factor"), 1 / (1 + 0.1 * std::log(4.0)), 1e-12);
  const Folder dynamic(llama(R"(,"rope_scaling":{"rope_type":"dynamic","factor":4})"), {kEmbedding});
  EXPECT_EQ(dynamic.source().text("rope.scaling.type"), std::nullopt);
  const Folder other(llama(R"(,"rope_scaling":{"rope_type":"spiral","factor":4})"), {kEmbedding});
  EXPECT_ERROR(other.source(), kUnsupported, "'spiral'");
  const Folder none(llama(R"(,"rope_scaling":{"rope_type":"linear"})"), {kEmbedding});
  EXPECT_ERROR(none.source(), kInvalid, "no positive 'factor'");
}

TEST(HfSource, FoldersThatAreNoModels) {
  const auto refused = [](const std::string& config, ErrorKind kind, const std::string& part) {
    const Folder folder(config, {kEmbedding});
    EXPECT_TRUE(throws_error([&] { (void)folder.source(); }, kind, part)) << config;
  };
  refused("{", ErrorKind::kInvalid, "not valid JSON");
  refused("[]", ErrorKind::kInvalid, "not an object");
  refused("{}", ErrorKind::kInvalid, "no 'model_type'");
  refused(R"({"model_type":"clip"})", ErrorKind::kUnsupported, "rlx has: llama, mistral");
  refused(llama(R"(,"head_dim":"64")"), ErrorKind::kInvalid, "'head_dim' is not an integer");
  refused(llama(R"(,"head_dim":1e30)"), ErrorKind::kInvalid, "'head_dim' is not an integer");
  refused(llama(R"(,"head_dim":4294967296)"), ErrorKind::kInvalid, "'head_dim' (4294967296) does not fit 32 bits");
  refused(llama(R"(,"head_dim":18446744073709551615)"), ErrorKind::kInvalid, "does not fit 32 bits");
  refused(llama(R"(,"head_dim":2147483646,"rope_scaling":{"rope_type":"llama3","factor":8})"), ErrorKind::kInvalid,
          "a head's size (2147483646) is more than 16384");
  refused(llama(R"(,"partial_rotary_factor":1e300)"), ErrorKind::kInvalid, "(1e+300) is not between 0 and 1");
  refused(R"({"model_type":"mamba","hidden_size":9223372036854775807,"expand":2})", ErrorKind::kInvalid, "32 bits");
  refused(R"({"model_type":"mamba","hidden_size":8,"time_step_rank":[]})", ErrorKind::kInvalid, "'time_step_rank'");
  refused(R"({"model_type":"roberta","max_position_embeddings":5,"pad_token_id":9223372036854775807})",
          ErrorKind::kInvalid, "'pad_token_id'");
  refused(llama(R"(,"rope_scaling":[])"), ErrorKind::kInvalid, "'rope_scaling' is not an object");
  refused(llama(R"(,"quantization_config":{})"), ErrorKind::kUnsupported, "quantized");
  refused(R"({"model_type":"llama","hidden_act":"gelu"})", ErrorKind::kUnsupported, "activation 'gelu'");
  refused(R"({"model_type":"gpt2"})", ErrorKind::kInvalid, "the token embeddings of a gpt2 ('wte.weight') are missing");
  refused(R"({"model_type":"qwen2","use_sliding_window":true})", ErrorKind::kUnsupported, "use_sliding_window");
  refused(R"({"model_type":"mistral","layer_types":["sliding_attention","full_attention"]})", ErrorKind::kUnsupported,
          "layer_types");

  const TempFolder empty;
  EXPECT_ERROR(HfSource(empty.path("")), kUnavailable, "config.json");
  empty.write("config.json", llama());
  EXPECT_ERROR(HfSource(empty.path("")), kUnavailable, "no .safetensors file");
  empty.write("model.safetensors",
              safetensors_bytes("{" + entry("model.embed_tokens.weight", "F8_E4M3", "[4,2]", 0, 8) + "}", "12345678"));
  EXPECT_ERROR(HfSource(empty.path("")).find("token_embd.weight"), kUnsupported, "dtype F8_E4M3");
}

TEST(HfSource, PathsThatAreModels) {
  const Folder folder(llama(), {kEmbedding});
  EXPECT_EQ(models::open_source(folder.root())->architecture(), "llama");
  EXPECT_EQ(models::open_source(folder.path("model.safetensors"))->architecture(), "llama");
  EXPECT_ERROR(models::open_source(folder.path("other.safetensors")), kUnavailable, "does not exist");
  EXPECT_ERROR(models::open_source(folder.path("missing")), kUnavailable, "does not exist");
  folder.write("x.bin", "x");
  EXPECT_ERROR(models::open_source(folder.path("x.bin")), kUnsupported, "neither");
  EXPECT_ERROR(models::open_source(folder.path("no.gguf")), kUnavailable, "no.gguf");
  std::filesystem::remove(folder.path("config.json"));
  EXPECT_ERROR(models::open_source(folder.path("model.safetensors")), kInvalid, "no config.json beside it");
}

TEST(HfSource, SentenceTransformersSayHowRowsBecomeAVector) {
  const Folder folder(
      R"({"model_type":"bert","num_hidden_layers":1,"hidden_size":2,"num_attention_heads":1,
                          "max_position_embeddings":9})",
      {{"embeddings.word_embeddings.weight", {4, 2}}, {"embeddings.position_embeddings.weight", {9, 2}}});
  EXPECT_EQ(models::read_encoder_config(folder.source()).pooling, models::Pooling::kMean);
  EXPECT_FALSE(models::read_encoder_config(folder.source()).normalize);
  EXPECT_EQ(models::read_encoder_config(folder.source()).context, 9);
  std::filesystem::create_directory(folder.path("1_Pooling"));
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})");
  folder.write("sentence_bert_config.json", R"({"max_seq_length":5})");
  folder.write("modules.json", R"([{"type":"sentence_transformers.models.Transformer","path":""},
      {"type":"sentence_transformers.models.Pooling","path":"1_Pooling"},{"type":"sentence_transformers.models.Normalize"}])");
  const models::EncoderConfig config = models::read_encoder_config(folder.source());
  EXPECT_EQ(config.pooling, models::Pooling::kCls);
  EXPECT_TRUE(config.normalize);
  EXPECT_EQ(config.context, 5);
  folder.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens":true})");
  EXPECT_ERROR(folder.source(), kUnsupported, "mean, cls or the last token");
  folder.write("modules.json", R"([{"type":"sentence_transformers.models.Dense","path":"2_Dense"}])");
  EXPECT_ERROR(folder.source(), kUnsupported, "'Dense'");
  folder.write("modules.json", R"([{"type":"x.Pooling","path":"../1_Pooling"}])");
  EXPECT_ERROR(folder.source(), kInvalid, "out of the folder");
}

}  // namespace

}  // namespace rlx::test
