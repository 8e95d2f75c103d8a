// What a node costs: arithmetic and memory traffic, for benchmarks and reports.
#pragma once

#include <span>

#include "rlx/op.h"

namespace rlx {

struct Cost {
  double flops = 0;  // multiply-add counts two; of cheap ops one per element and operation
  double bytes = 0;  // operands and results, each once
};
// Types are bound.
Cost cost_of(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
             std::span<const TensorType> outputs);

}  // namespace rlx
