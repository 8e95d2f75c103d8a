// Shapes of real models, op by op: what `rlx bench --op` measures besides the cases of the tests.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "rlx/graph.h"

namespace rlx::cli {

struct BenchShape {
  const OpDef* op;
  std::string_view label;    // "BERT-base FFN up, 512 tokens"
  Value (*build)(Graph&);    // the op's result; inputs and params are filled at random
  int64_t index_limit = 10;  // integer inputs are 0 … index_limit - 1
};
const std::vector<BenchShape>& bench_shapes();

}  // namespace rlx::cli
