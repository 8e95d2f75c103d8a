// DecoderBuilder: the parts that decoders are made of, as nodes of one graph. An architecture calls them in its order.
//
// The graph runs `rows` new tokens of each of `batch` sequences:
//   inputs   tokens I32 [batch, rows], positions I32 [batch, rows], past I32 [batch]: rows that the caches hold
//   states   per layer the keys and values of all rows, [batch, capacity, kv_heads * head_dim]
// The host knows how many rows are valid: it may go back, or begin again, by saying another `past`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/config.h"
#include "rlx/graph.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/attention.h"
#include "rlx/ops/binary.h"

namespace rlx::models {

struct CacheOptions {
  int64_t batch = 1;
  int64_t capacity = 0;  // rows of a sequence
  DType dtype = DType::F32;
};

class DecoderBuilder {
 public:
  DecoderBuilder(const ModelSource& source, DecoderConfig config, CacheOptions cache);

  const ModelSource& source() const { return source_; }
  const DecoderConfig& config() const { return config_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // The weights that the graph's params name; bytes of the file.
  const std::map<std::string, Tensor>& weights() const { return weights_; }
  bool has(const std::string& name) const { return source_.find(name).has_value(); }

  const Value& tokens() const { return tokens_; }
  const Value& positions() const { return positions_; }
  const Dim& rows() const { return rows_; }

  // Rows of a table [n, width], packed or not.
  Value embedding(const Value& ids, const std::string& name);
  // x · Wᵀ, plus the bias where the file has one: name.weight, name.bias.
  Value linear(const Value& x, const std::string& name);
  // The same where the weight is another one's: a head that shares the embeddings.
  Value linear_with(const Value& x, const std::string& weight_name);
  Value rms_norm(const Value& x, const std::string& name);
  Value layer_norm(const Value& x, const std::string& name);  // gamma and, where there is one, beta
  // An f32 weight as it is, such as a table or a scale.
  Value weight(const std::string& name);
  Value scalar(float value);
  Value scale(const Value& x, float factor) { return x * scalar(factor); }

  // x [batch, rows, heads * head_dim], rotated; `rope` must be one of a few: each has tables of its own.
  Value rope(const Value& x, const RopeConfig& rope);
  // x [batch, rows, heads * head_dim] with each head normalised.
  Value head_norm(const Value& x, const std::string& name);

  struct AttentionOptions {
    int64_t kv_heads = 0;  // 0: the layer's
    int64_t window = 0;    // 0: all keys
    std::optional<float> scale;
    std::optional<float> softcap;
  };
  // Appends k and v to the layer's caches, and lets q look at them: [batch, rows, heads * head_dim] each.
  Value attention(int64_t layer, const Value& q, const Value& k, const Value& v, const AttentionOptions& options);

  // down(act(gate(x)) * up(x)); without a gate down(act(up(x))).
  Value feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation);

 private:
  Value param(const std::string& name, const Tensor& data);

  const ModelSource& source_;
  DecoderConfig config_;
  CacheOptions cache_;
  Graph graph_;
  Dim rows_;
  Value tokens_, positions_, past_, length_;
  std::map<std::string, Tensor> weights_;
  std::map<std::string, Value> params_;
  struct Tables {
    RopeConfig config;
    Value cos, sin;
  };
  std::vector<Tables> tables_;
};

}  // namespace rlx::models
