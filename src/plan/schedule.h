// The order in which steps run.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace rlx::plan {

// A problem with the questions the planner asks often answered once.
struct Facts {
  explicit Facts(const Problem& p);
  int32_t root(int32_t v) const { return roots[static_cast<size_t>(v)].value; }
  const Value& value(int32_t v) const { return problem.values[static_cast<size_t>(v)]; }
  bool planned(int32_t root) const { return value(root).region == Region::kActivation && value(root).size_bytes > 0; }

  const Problem& problem;
  std::vector<Root> roots;
  std::vector<bool> is_output;  // by root: read after the last step
};

// Topological; among the ready steps the one that frees most bytes (the operands that die less the results that are
// born), then the first.
std::vector<int32_t> greedy_order(const Facts& facts);

}  // namespace rlx::plan
