// Where the elements of a value lie inside another value's bytes, when narrows, slices, transposes and reshapes between
// the two move nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/graph.h"

namespace rlx::webgpu {

// Element `index` lies at offset + sum(index * strides), in elements.
struct StridedLayout {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  static StridedLayout dense(const TensorType& type);
  bool is_dense() const;   // one element after the other
  int64_t extent() const;  // elements from the first to the last, both included; 0: there are none
};

// May a node's result be read where its operand lies? Its place must not depend on a symbol of the graph.
bool moves_by_strides(const Node& symbolic);
// The layout of the node's result, given that of its operand; nothing where the elements lie at no strides.
std::optional<StridedLayout> layout_of(const Node& bound, const StridedLayout& operand);

}  // namespace rlx::webgpu
