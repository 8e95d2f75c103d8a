// DecoderBuilder: the parts that decoders are made of, as nodes of one graph. An architecture calls them in its order.
//
// The graph runs `rows` new tokens of each of `batch` sequences:
//   inputs   tokens I32 [batch, rows], positions I32 [batch, rows], past I32 [batch]: rows that the caches hold
//   states   per layer the keys and values of all rows, [batch, capacity, kv_heads, head_dim]
// The host knows how many rows are valid: it may go back, or begin again, by saying another `past`.
//
// Recurrent layers have states of a fixed size instead, those after the last row. They begin again where `past` is 0,
// and can go back to nothing else. Padded rows must not enter them: of a single sequence an active extent cuts those
// off, several say which rows count:
//   input    in_use F32 [batch, rows], 1 or 0
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "models/parts.h"
#include "rlx/graph.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/attention.h"
#include "rlx/ops/binary.h"

namespace rlx::models {

Value softplus(const Value& x);  // ln(1 + e^x)

// How keys and values are kept: as numbers, or as GGUF's q8_0 keeps them (which needs heads of a multiple of 32).
enum class CacheType : int32_t { kF32, kF16, kQ8 };
constexpr auto names_of(CacheType) { return std::array<std::string_view, 3>{"f32", "f16", "q8_0"}; }
CacheType cache_type(std::string_view name);

struct CacheOptions {
  int64_t batch = 1;
  int64_t context = 0;   // tokens of a sequence
  int64_t capacity = 0;  // rows of a sequence: at least as many, padding is written behind them
  CacheType type = CacheType::kF32;
};

class DecoderBuilder : public ModelParts {
 public:
  DecoderBuilder(const ModelSource& source, DecoderConfig config, CacheOptions cache);

  const DecoderConfig& config() const { return config_; }
  const Value& tokens() const { return tokens_; }
  const Value& positions() const { return positions_; }
  const Dim& rows() const { return rows_; }
  const CacheOptions& cache() const { return cache_; }
  bool has_recurrent_states() const { return recurrent_; }

  // x [batch, rows, heads * head_dim], rotated; `rope` must be one of a few: each has tables of its own.
  Value rope(const Value& x, const RopeConfig& rope);
  // x [batch, rows, heads * head_dim] with each head normalised.
  Value head_norm(const Value& x, const std::string& name);

  struct Qkv {
    Value q, k, v;  // [batch, rows, heads * head_dim] each
  };
  // Projections of layer `i`, from one matrix or from three, with the biases and norms of heads that the file has; q
  // and k rotated.
  Qkv qkv(const Value& x, int64_t i);
  // Appends k and v to the layer's caches, and lets q look at them as the configuration says.
  Value attention(int64_t i, const Qkv& qkv);

  // The state `name` [batch, …], zeros where a sequence begins. updated() says what it becomes.
  Value recurrent_state(const std::string& name, std::vector<int64_t> sizes);
  void updated(const std::string& name, const Value& value);
  // A causal convolution of x [batch, rows, channels] with name.weight [channels, kernel], over the rows before.
  Value causal_conv(int64_t i, const Value& x, const std::string& name);
  // x with 0 in rows that are not in use: those must not enter a state. x is [batch, rows, …].
  Value zero_unused(const Value& x);

  // down(act(up(x))), and down(act(gate(x)) * up(x)).
  Value feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation);
  Value gated_feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation);

 private:
  const Value& in_use();
  Value paged_attention(int64_t i, const Qkv& qkv);
  Value dense_attention(int64_t i, const Qkv& qkv);

  DecoderConfig config_;
  CacheOptions cache_;
  Dim rows_;
  Value tokens_, positions_, past_, length_;
  std::optional<Value> in_use_, pages_;
  bool recurrent_ = false;
  std::map<std::string, Value> states_;
  struct Tables {
    RopeConfig config;
    Value cos, sin;
  };
  std::vector<Tables> tables_;
};

}  // namespace rlx::models
