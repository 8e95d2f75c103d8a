// Runs a graph on the oracle with data that depends on the names of its leaves alone, so that a graph and its rewrite
// see the same.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "rlx/graph.h"

namespace rlx::test {

// Outputs, then the new values of states. Symbols are bound to 4. `fails`: the oracle found fault with the data.
struct Outcome {
  std::vector<Tensor> values;
  bool fails = false;
};
Outcome run_on_random_data(const Graph& graph, uint64_t seed);

// Equal bit for bit; any NaN equals any other.
testing::AssertionResult same_bits(const Tensor& actual, const Tensor& expected);

}  // namespace rlx::test
