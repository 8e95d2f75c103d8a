// Every pass alone, and all of them, keep the results of random graphs; they are deterministic and idempotent. A graph
// for which that does not hold is made small and printed.
#include <gtest/gtest.h>

#include "shrink.h"
#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

using passes::Numerics;
using passes::Pass;

// A rewrite, and how close its results must be.
struct Rewrite {
  std::function<Graph(const Graph&)> apply;
  bool exact = true;
};

Graph random_case(Rng& rng, bool smooth) {
  const bool symbols = rng.chance(0.2);
  return random_graph(rng, {.nodes = rng.integer(3, 30),
                            .states = rng.chance(0.3),
                            .regions = !symbols,
                            .symbols = symbols,
                            .patterns = 0.6,
                            .smooth = smooth})
      .graph;
}

// Why the rewrite is wrong for this graph; empty when it is right.
std::string fault(const Graph& graph, const Rewrite& rewrite) {
  Outcome expected;
  try {
    expected = run_on_random_data(graph, 7);
  } catch (const Error&) {
    return "";  // a symbol is broadcast with a size that is not its own
  }
  const Graph after = rewrite.apply(graph);
  const Outcome actual = run_on_random_data(after, 7);
  if (expected.fails != actual.fails)
    return actual.fails ? "it fails, and did not before" : "it does not fail any more";
  if (expected.values.size() != actual.values.size()) return "the number of outputs differs";
  for (size_t i = 0; i < expected.values.size(); ++i) {
    // Terms are about 1: what is left where they cancel (the mean of a centred row) is noise.
    const testing::AssertionResult same =
        rewrite.exact ? same_bits(actual.values[i], expected.values[i])
                      : near(actual.values[i], expected.values[i], {.abs = 1e-6, .of_max = 1e-4});
    if (!same) return str("output ", i, ": ", same.message());
  }
  if (print(rewrite.apply(graph)) != print(after)) return "a second run gives another graph";
  if (print(rewrite.apply(after)) != print(after)) return "running it twice is not running it once";
  return "";
}

void expect_right(const Graph& graph, const Rewrite& rewrite) {
  const auto reason = [&](const Graph& g) {
    try {
      return fault(g, rewrite);
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const std::string why = reason(graph);
  if (why.empty()) return;
  const Graph small = shrink(graph, [&](const Graph& g) { return !reason(g).empty(); });
  ADD_FAILURE() << why << "\nSmallest graph found (" << reason(small) << "):\n"
                << print(small) << "which becomes\n"
                << [&] {
                     try {
                       return print(rewrite.apply(small));
                     } catch (const Error& e) {
                       return std::string(e.what());
                     }
                   }();
}

// Ops that a target may lack. Those that the oracle computes with a kernel of its own, more precisely than their
// definition, make the comparison inexact.
const char* const kFused[] = {"elementwise_region", "fused_matmul_bias_act", "fused_residual_ln", "fused_swiglu",
                              "resize_nearest_2x"};
const char* const kInexact[] = {"activation_backward", "group_norm"};

passes::PassContext random_context(Rng& rng, bool inexact) {
  std::set<std::string, std::less<>> unclaimed;
  for (const char* op : kFused)
    if (rng.chance(0.5)) unclaimed.insert(op);
  if (inexact)
    for (const char* op : kInexact) unclaimed.insert(op);
  passes::PassContext context = pass_context(std::move(unclaimed));
  if (rng.chance(0.2)) context.options.unroll = passes::Unroll::kAlways;
  return context;
}

class EachPass : public testing::TestWithParam<const Pass*> {};

std::vector<const Pass*> distinct_passes() {
  std::vector<const Pass*> out;
  for (const Pass& p : passes::pipeline())
    if (passes::find_pass(p.name) == &p && p.numerics != Numerics::kLossy) out.push_back(&p);  // its own test does
  return out;
}

}  // namespace

TEST_P(EachPass, KeepsTheResultsOfRandomGraphs) {
  const Pass& pass = *GetParam();
  int changed = 0, random = 0;
  for_random(1000, [&](Rng& rng) {
    const bool inexact = pass.numerics != Numerics::kExact && rng.chance(0.5);
    const passes::PassContext context = random_context(rng, inexact);
    const Graph graph = random_case(rng, inexact);
    const auto apply = [&](const Graph& g) { return after_pass(g, pass.name, context); };
    ++random;
    changed += print(apply(graph)) != print(graph);
    expect_right(graph, {.apply = apply, .exact = !inexact && pass.numerics != Numerics::kReassoc});
  });
  if (random == 1000) {  // not RLX_SEED=…, which runs one
    EXPECT_GE(changed, 50) << "random graphs hardly ever hold what the pass looks for";
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, EachPass, testing::ValuesIn(distinct_passes()),
                         [](const auto& pass) { return std::string(pass.param->name); });

TEST(Pipeline, KeepsTheResultsOfRandomGraphs) {
  for_random(4000, [&](Rng& rng) {
    const bool inexact = rng.chance(0.3);
    const passes::PassContext context = random_context(rng, inexact);
    const Graph graph = random_case(rng, true);
    expect_right(graph, {.apply = [&](const Graph& g) { return passes::optimize(g, context).graph; }, .exact = false});
  });
}

}  // namespace rlx::test
