// ModelParts: what every model's graph is made of, decoder or encoder: weights of its file as params, and the layers
// that need nothing but those.
#pragma once

#include <map>
#include <string>

#include "models/source.h"
#include "rlx/graph.h"
#include "rlx/ops/binary.h"

namespace rlx::models {

class ModelParts {
 public:
  ModelParts(const ModelSource& source, std::string name, float norm_eps)
      : source_(source), graph_(std::move(name)), norm_eps_(norm_eps) {}
  ModelParts(const ModelParts&) = delete;
  ModelParts& operator=(const ModelParts&) = delete;

  const ModelSource& source() const { return source_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // The weights that the graph's params name; bytes of the file.
  const std::map<std::string, Tensor>& weights() const { return weights_; }
  bool has(const std::string& name) const { return source_.find(name).has_value(); }

  // Rows of a table [n, width], packed or not.
  Value embedding(const Value& ids, const std::string& name);
  // x · Wᵀ, plus the bias where the file has one: name.weight, name.bias.
  Value linear(const Value& x, const std::string& name);
  // The same where the weight is another one's: a head that shares the embeddings.
  Value linear_with(const Value& x, const std::string& weight_name);
  // Row i of x by the weight of expert choice[i]: name.weight is [experts, out, in], x [n, in].
  Value expert_linear(const Value& x, const std::string& name, const Value& choice);
  Value rms_norm(const Value& x, const std::string& name);
  Value layer_norm(const Value& x, const std::string& name);  // gamma and, where there is one, beta
  // A weight in f32 as it is, such as a table or a scale.
  Value weight(const std::string& name);
  Value scalar(float value);
  Value scale(const Value& x, float factor) { return x * scalar(factor); }
  // Columns [start, start + count) of the last axis.
  static Value columns(const Value& x, int64_t start, int64_t count);

 protected:
  Value param(const std::string& name, const Tensor& data);

  const ModelSource& source_;
  Graph graph_;
  float norm_eps_;

 private:
  std::map<std::string, Tensor> weights_;
  std::map<std::string, Value> params_;
};

}  // namespace rlx::models
