// Broken GGUF files: one sentence each, at once, and without much memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "gguf_bytes.h"
#include "models/architectures.h"
#include "models/encoders/encoder.h"
#include "models/gguf_source.h"
#include "rlx/error.h"
#include "support/random.h"

namespace rlx::test {

namespace {

// As far as a model gets before it is compiled.
void open(const std::string& bytes) {
  const models::GgufSource source(gguf::File::parse(std::as_bytes(std::span(bytes)), "model.gguf"));
  if (models::is_encoder(source)) {
    models::EncoderBuilder b(source, models::read_encoder_config(source));
    models::find_encoder(source).build(b);
    return;
  }
  const models::Architecture& architecture = models::find_architecture(source);
  models::DecoderConfig config = models::read_decoder_config(source);
  architecture.configure(source, config);
  models::DecoderBuilder b(source, std::move(config), {.batch = 1, .context = 16, .capacity = 16});
  models::logits_of(b, architecture.build(b));
}

// What is wrong with it; empty when nothing is.
std::string fault_of(const std::string& bytes) {
  const auto begin = std::chrono::steady_clock::now();
  std::string message;
  try {
    open(bytes);
  } catch (const Error& e) {
    message = e.what();
    EXPECT_TRUE(message.ends_with('.')) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  return message;
}

void expect_fault(const GgufBytes& g, const std::string& part) {
  const std::string message = fault_of(g.bytes());
  EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' does not say: " << part;
}

// A Nomic BERT of one layer, from the matrices of the llama.
GgufBytes small_encoder() {
  GgufBytes g = small_llama();
  GgufBytes::Tensor norm = g.tensors["output_norm.weight"];
  for (const char* name : {"token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"})
    g.tensors[std::string(name) + ".weight"] = norm;
  g.set("general.architecture", "nomic-bert");
  g.set("nomic-bert.block_count", 1u);
  g.set("nomic-bert.context_length", 64u);
  g.set("nomic-bert.embedding_length", 32u);
  g.set("nomic-bert.attention.head_count", 2u);
  return g;
}

int64_t peak_kib() {
#ifdef __SANITIZE_ADDRESS__  // which keeps what was freed for a while
  return 0;
#else
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
#endif
}

}  // namespace

TEST(BadGguf, TheGoodFileIsGood) { EXPECT_EQ(fault_of(small_llama().bytes()), ""); }

TEST(BadGguf, EveryTruncation) {
  const std::string bytes = small_llama().bytes();
  for (size_t n = 0; n < bytes.size(); ++n) ASSERT_NE(fault_of(bytes.substr(0, n)), "") << n;
}

TEST(BadGguf, FlippedBytes) {
  const std::string good = small_llama().bytes();
  const int64_t before = peak_kib();
  Rng rng(5);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = good;
    const size_t flips = 1 + rng.bits() % 3;
    for (size_t f = 0; f < flips; ++f)
      bytes[rng.bits() % (i % 2 == 0 ? 1200 : good.size())] = static_cast<char>(rng.bits());  // the header, or anywhere
    refused += fault_of(bytes).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(peak_kib() - before, 100 * 1024);
}

TEST(BadGguf, Headers) {
  GgufBytes g = small_llama();
  g.version = 9;
  expect_fault(g, "has GGUF version 9");
  for (const int64_t huge : {INT64_MAX, int64_t{1} << 62, int64_t{1} << 40}) {
    g = small_llama();
    g.tensor_count = huge;
    expect_fault(g, "claims");
    g = small_llama();
    g.value_count = huge;
    expect_fault(g, "claims");
  }
  EXPECT_NE(fault_of("GGML and more"), "");
  EXPECT_NE(fault_of(""), "");
}

TEST(BadGguf, Metadata) {
  GgufBytes g = small_llama();
  g.values.erase("general.architecture");
  expect_fault(g, "'general.architecture' is missing");
  g = small_llama();
  g.set("general.architecture", "transformer9000");
  expect_fault(g, "'transformer9000' is not supported; rlx has: ");
  g = small_llama();
  g.values.erase("llama.block_count");
  expect_fault(g, "'block_count' (architecture llama) is missing");
  g = small_llama();
  g.set("llama.block_count", "one");
  expect_fault(g, "llama.block_count");
  g.set("llama.block_count", 1.5f);
  expect_fault(g, "llama.block_count");
  g.set("llama.block_count", 0u);
  expect_fault(g, "'block_count' (0) is not between 1 and 10000");
  g.set("llama.block_count", 2u);
  expect_fault(g, "tensor 'blk.1.attn_norm.weight' (architecture llama) is missing");
  g.set("llama.block_count", 4'000'000'000u);
  expect_fault(g, "is not between");
  g = small_llama();
  g.values["llama.block_count"] = GgufBytes::raw<uint32_t>(77) + GgufBytes::raw(1u);
  expect_fault(g, "has an unknown type (77)");
  g.values["llama.block_count"] =
      GgufBytes::raw<uint32_t>(9) + GgufBytes::raw(4u) + GgufBytes::raw<uint64_t>(1ull << 63);
  expect_fault(g, "claims 9223372036854775808 elements");
  g.values["llama.block_count"] = GgufBytes::raw<uint32_t>(9) + GgufBytes::raw(9u) + GgufBytes::raw<uint64_t>(1);
  expect_fault(g, "a list of an unknown type (9)");
  g.values["llama.block_count"] = GgufBytes::raw<uint32_t>(8) + GgufBytes::raw<uint64_t>(1ull << 63);
  EXPECT_NE(fault_of(g.bytes()), "");
  const std::pair<const char*, const char*> numbers[] = {{"llama.embedding_length", "token_embd.weight"},
                                                         {"llama.attention.head_count_kv", "does not divide"},
                                                         {"llama.rope.dimension_count", "rope.dimension_count (7)"},
                                                         {"llama.attention.value_length", "different sizes"}};
  for (const auto& [key, part] : numbers) {
    g = small_llama();
    g.set(key, 7u);
    expect_fault(g, part);
  }
  g = small_llama();
  g.set("llama.rope.scaling.type", "magic");
  expect_fault(g, "rope scaling 'magic' is unknown");
  g = small_llama();
  g.set("llama.expert_count", 4u);
  expect_fault(g, "expert_used_count is missing or 0");
  g.set("llama.expert_used_count", 5u);
  expect_fault(g, "expert_used_count (5) exceeds expert_count (4)");
}

TEST(BadGguf, Tensors) {
  GgufBytes g = small_llama();
  for (const auto& [name, tensor] : small_llama().tensors) {
    g = small_llama();
    g.tensors.erase(name);
    expect_fault(g, "tensor '" + name + "' (architecture llama) is missing");
    g = small_llama();
    g.tensors[name].offset = 1 << 20;
    expect_fault(g, "ends behind the end of the file");
    g.tensors[name].offset = INT64_MAX / 32 * 32;
    expect_fault(g, "ends behind the end of the file");
    g = small_llama();
    g.tensors[name].type = 99;
    expect_fault(g, "has type 99, which rlx does not know");
    g.tensors[name].type = 16;  // IQ2_XXS: rows of 256
    expect_fault(g, "whose rows are multiples of 256");
  }
  g = small_llama();
  g.tensors["blk.0.attn_q.weight"].offset = 0;
  expect_fault(g, "overlap");
  g = small_llama();
  g.tensors["blk.0.attn_q.weight"].offset = 3;
  expect_fault(g, "is not a multiple of the alignment");
  g = small_llama();
  g.tensors["blk.0.attn_q.weight"].sizes = {1ull << 40, 1ull << 40};
  expect_fault(g, "overflow");
  g.tensors["blk.0.attn_q.weight"].sizes = {1ull << 63, 32};
  expect_fault(g, "has a size of");
  g.tensors["blk.0.attn_q.weight"].sizes = {1, 1, 1, 1, 32};
  expect_fault(g, "has 5 dimensions");
  g.tensors["blk.0.attn_q.weight"].sizes = {16, 32};
  expect_fault(g, "projects to 16 columns, not 32");
  g = small_llama();
  g.tensors["blk.0.ffn_down.weight"].sizes = {16, 64};
  expect_fault(g, "does not fit 32 columns");
  g = small_llama();
  g.tensors["blk.0.attn_norm.weight"] = g.tensors["blk.0.attn_q.weight"];
  expect_fault(g, "is packed; plain numbers are expected");
  g = small_llama();
  g.tensors["rope_freqs.weight"] = {{3}, 0, std::string(12, '\1')};
  expect_fault(g, "there are 3 rope factors for 8 pairs");
}

TEST(BadGguf, TokensOfAnEncoder) {
  GgufBytes g = small_encoder();
  EXPECT_EQ(fault_of(g.bytes()), "");
  g.set("nomic-bert.embedding.max_length", 0u);
  expect_fault(g, "the model takes 0 tokens");
  g.values["nomic-bert.embedding.max_length"] = GgufBytes::raw<uint32_t>(5) + GgufBytes::raw<int32_t>(-3);
  expect_fault(g, "the model takes -3 tokens");
  g = small_encoder();
  g.tensors["position_embd.weight"] = {{0, 32}, 0, ""};
  expect_fault(g, "the model takes 0 tokens");
  // Angles are computed for each position: for as many as are of use, not for as many as a small file claims (1 GiB).
  g = small_encoder();
  g.set("nomic-bert.context_length", 1u << 24);
  const int64_t before = peak_kib();
  EXPECT_EQ(fault_of(g.bytes()), "");
  EXPECT_LT(peak_kib() - before, 100 * 1024);
}

}  // namespace rlx::test
