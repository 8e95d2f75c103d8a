// What several ops of ai.onnx.ml share.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

// NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT along the last axis.
Value post_transform(OnnxNode& n, const Value& scores, const std::string& kind);

// The labels of a classifier, numbers or strings.
struct ClassLabels {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  int64_t size() const { return static_cast<int64_t>(strings.empty() ? ints.size() : strings.size()); }
};
ClassLabels class_labels(OnnxNode& n, std::string_view ints, std::string_view strings);
// The label of each class number. Strings need the numbers to be known.
Item labels_of(OnnxNode& n, const ClassLabels& labels, const Value& classes);

// The operand as a matrix of floats: [C] is one row, integers become F32.
Value feature_matrix(OnnxNode& n, int64_t i);

}  // namespace rlx::onnx
