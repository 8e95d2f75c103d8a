// auto_mixed_precision: which values change their type, and that the results stay near.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

using passes::PrecisionPolicy;

passes::PassContext context_for(PrecisionPolicy policy) {
  passes::PassContext context = pass_context();
  context.options.precision = policy;
  return context;
}

void expect_rewrite(std::string_view before, const passes::PassContext& context, std::string_view after) {
  const Graph graph = parse(before), expected = parse(after);
  verify(graph);
  verify(expected);
  const Graph actual = after_pass(graph, "auto_mixed_precision", context);
  EXPECT_EQ(print(actual), print(expected));
  EXPECT_EQ(print(after_pass(actual, "auto_mixed_precision", context)), print(actual));
}

constexpr std::string_view kFeedForward = R"(graph @g {
  %x = input() : [2, 4] f32
  %w = param() : [4, 4] f32
  %b = param() : [4] f32
  %gamma = param() : [4] f32
  %4 = fused_matmul_bias_act(%x, %w, %b) {activation=relu} : [2, 4] f32
  %5 = reshape(%4) {new_shape=[1, 2, 4]} : [1, 2, 4] f32
  %6 = rms_norm(%5, %gamma) : [1, 2, 4] f32
  %7 = softmax(%5) : [1, 2, 4] f32
  return a=%6, b=%7
}
)";

}  // namespace

TEST(MixedPrecision, NothingHappensInF32) {
  expect_rewrite(kFeedForward, context_for(PrecisionPolicy::kAlwaysF32), kFeedForward);
}

TEST(MixedPrecision, ProductsAreHalfNormsAreNotAndMovementFollows) {
  expect_rewrite(kFeedForward, context_for(PrecisionPolicy::kAutoMixed), R"(graph @g {
  %x = input() : [2, 4] f32
  %w = param() : [4, 4] f32
  %b = param() : [4] f32
  %gamma = param() : [4] f32
  %4 = cast(%x) {to=f16} : [2, 4] f16
  %5 = cast(%w) {to=f16} : [4, 4] f16
  %6 = cast(%b) {to=f16} : [4] f16
  %7 = fused_matmul_bias_act(%4, %5, %6) {activation=relu} : [2, 4] f16
  %8 = reshape(%7) {new_shape=[1, 2, 4]} : [1, 2, 4] f16
  %9 = cast(%8) : [1, 2, 4] f32
  %10 = rms_norm(%9, %gamma) : [1, 2, 4] f32
  %11 = softmax(%8) : [1, 2, 4] f16
  %12 = cast(%11) : [1, 2, 4] f32
  return a=%10, b=%12
}
)");
}

TEST(MixedPrecision, ReductionsAreF32WhenConservative) {
  expect_rewrite(kFeedForward, context_for(PrecisionPolicy::kAutoMixedConservative), R"(graph @g {
  %x = input() : [2, 4] f32
  %w = param() : [4, 4] f32
  %b = param() : [4] f32
  %gamma = param() : [4] f32
  %4 = cast(%x) {to=f16} : [2, 4] f16
  %5 = cast(%w) {to=f16} : [4, 4] f16
  %6 = cast(%b) {to=f16} : [4] f16
  %7 = fused_matmul_bias_act(%4, %5, %6) {activation=relu} : [2, 4] f16
  %8 = reshape(%7) {new_shape=[1, 2, 4]} : [1, 2, 4] f16
  %9 = cast(%8) : [1, 2, 4] f32
  %10 = rms_norm(%9, %gamma) : [1, 2, 4] f32
  %11 = softmax(%9) : [1, 2, 4] f32
  return a=%10, b=%11
}
)");
}

TEST(MixedPrecision, ACategoryMayHaveATypeOfItsOwn) {
  passes::PassContext context = context_for(PrecisionPolicy::kCustom);
  context.options.custom_precision = {.compute = DType::BF16};
  expect_rewrite(R"(graph @g {
  %x = input() : [2, 4] f32
  %w = param() : [4, 4] f32
  %2 = matmul(%x, %w) : [2, 4] f32
  %3 = relu(%2) : [2, 4] f32
  %4 = transpose(%3) {perm=[1, 0]} : [4, 2] f32
  return y=%4
}
)",
                 context, R"(graph @g {
  %x = input() : [2, 4] f32
  %w = param() : [4, 4] f32
  %2 = cast(%x) {to=bf16} : [2, 4] bf16
  %3 = cast(%w) {to=bf16} : [4, 4] bf16
  %4 = matmul(%2, %3) : [2, 4] bf16
  %5 = cast(%4) : [2, 4] f32
  %6 = relu(%5) : [2, 4] f32
  %7 = transpose(%6) {perm=[1, 0]} : [4, 2] f32
  return y=%7
}
)");
  context.options.custom_precision = {.compute = DType::I32};
  EXPECT_ERROR(after_pass(parse(kFeedForward), "auto_mixed_precision", context), kInvalid,
               "Precision (i32) of a category is not f32, f16 or bf16.");
}

// (1 - m) * -1e9 is -inf in f16, and a mask of it would leave no key at all.
TEST(MixedPrecision, MasksTablesAndIndicesStayAsTheyAre) {
  expect_rewrite(R"(graph @g {
  %q = input() : [1, 2, 4] f32
  %m = input() : [1, 2] f32
  %cos = param() : [2, 2] f32
  %one = constant() {value=[1]} : [] f32
  %big = constant() {value=[-1e9]} : [] f32
  %5 = sub(%one, %m) : [1, 2] f32
  %6 = mul(%5, %big) : [1, 2] f32
  %7 = tanh(%q) : [1, 2, 4] f32
  %8 = rope(%7, %cos, %cos) {head_dim=4, layout=bsf} : [1, 2, 4] f32
  %9 = attention(%8, %8, %7, %6) {head_dim=4, layout=bsf, mask_kind=bias} : [1, 2, 4] f32, [1, 1, 2] f32
  return y=%9
}
)",
                 context_for(PrecisionPolicy::kAutoMixed), R"(graph @g {
  %q = input() : [1, 2, 4] f32
  %m = input() : [1, 2] f32
  %cos = param() : [2, 2] f32
  %one = constant() {value=[1]} : [] f32
  %big = constant() {value=[-1e9]} : [] f32
  %5 = sub(%one, %m) : [1, 2] f32
  %6 = mul(%5, %big) : [1, 2] f32
  %7 = cast(%q) {to=f16} : [1, 2, 4] f16
  %8 = tanh(%7) : [1, 2, 4] f16
  %9 = rope(%8, %cos, %cos) {head_dim=4, layout=bsf} : [1, 2, 4] f16
  %10 = attention(%9, %9, %8, %6) {head_dim=4, layout=bsf, mask_kind=bias} : [1, 2, 4] f16, [1, 1, 2] f32
  %11 = cast(%10) : [1, 2, 4] f32
  return y=%11
}
)");
}

TEST(MixedPrecision, ConstantsBeyondTheRangeComparisonsAndOtherTypesStay) {
  const std::string_view graph = R"(graph @g {
  %x = input() : [2] f32
  %d = input() : [2] f64
  %i = input() : [2] i32
  %3 = constant() {value=[70000]} : [] f32
  %4 = min(%x, %3) : [2] f32
  %5 = lt(%x, %4) : [2] bool
  %6 = neg(%d) : [2] f64
  %7 = add(%i, %i) : [2] i32
  return %5, %6, %7
}
)";
  expect_rewrite(graph, context_for(PrecisionPolicy::kAlwaysF16), graph);
}

TEST(MixedPrecision, WhatTheTargetHasNoHalfKernelForStaysF32) {
  passes::PassContext context = context_for(PrecisionPolicy::kAutoMixed);
  context.claims = [](const passes::Signature& s) {
    return std::all_of(s.inputs.begin(), s.inputs.end(), [](const TensorType& t) { return t.dtype != DType::F16; });
  };
  expect_rewrite(kFeedForward, context, kFeedForward);
}

// A cast to half that is there already is not undone, and one back is skipped.
TEST(MixedPrecision, CastsThatAreThereAreUsed) {
  expect_rewrite(R"(graph @g {
  %h = input() : [2, 2] f16
  %1 = cast(%h) : [2, 2] f32
  %2 = transpose(%1) {perm=[1, 0]} : [2, 2] f32
  %3 = matmul(%1, %2) : [2, 2] f32
  %4 = cast(%3) {to=f16} : [2, 2] f16
  return y=%4
}
)",
                 context_for(PrecisionPolicy::kAutoMixed), R"(graph @g {
  %h = input() : [2, 2] f16
  %1 = transpose(%h) {perm=[1, 0]} : [2, 2] f16
  %2 = matmul(%h, %1) : [2, 2] f16
  %3 = cast(%2) : [2, 2] f32
  %4 = cast(%3) {to=f16} : [2, 2] f16
  return y=%4
}
)");
}

namespace {

bool has_norm(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name.find("norm") != std::string_view::npos || node.op->name.find("_ln") != std::string_view::npos ||
        node.op == &ops::fused_transformer_layer)
      return true;
    for (const GraphPtr& body : node.attrs.graphs())
      if (has_norm(*body)) return true;
  }
  return false;
}

// The largest magnitude of any value of the graph: errors are measured against it. NaN or inf: not comparable.
double largest(const Graph& graph) {
  Graph all = graph;
  int n = 0;
  for (const Node& node : graph.nodes())
    for (const Result& r : node.results)
      if (is_float(r.type.dtype)) all.output(all.value(r.id), str("value.", n++));
  double top = 0;
  for (const Tensor& t : run_on_random_data(all, 7).values)
    for (const double v : t.to_doubles()) top = std::isfinite(v) ? std::max(top, std::abs(v)) : v * 0;
  return top;
}

}  // namespace

TEST(MixedPrecision, RandomGraphsStayNear) {
  int compared = 0, changed = 0;
  for_random(1000, [&](Rng& rng) {
    const Graph graph =
        random_graph(rng, {.nodes = rng.integer(3, 12), .states = rng.chance(0.3), .patterns = 0.6, .smooth = true})
            .graph;
    const passes::PassContext context =
        context_for(rng.chance(0.5) ? PrecisionPolicy::kAutoMixed : PrecisionPolicy::kAutoMixedConservative);
    const Graph after = after_pass(graph, "auto_mixed_precision", context);
    EXPECT_EQ(print(after_pass(after, "auto_mixed_precision", context)), print(after)) << print(graph);
    changed += print(after) != print(graph);
    // A norm of rows that are nearly constant makes much of a small difference.
    if (has_norm(graph)) return;
    const double top = largest(graph);
    if (!(top < 1000)) return;
    ++compared;
    const Outcome expected = run_on_random_data(graph, 7), actual = run_on_random_data(after, 7);
    ASSERT_EQ(expected.values.size(), actual.values.size());
    for (size_t i = 0; i < expected.values.size(); ++i)
      EXPECT_TRUE(near(actual.values[i], expected.values[i], {.abs = 0.02 * (top + 1)}))
          << print(graph) << print(after);
  });
  EXPECT_TRUE(changed > 300 || changed <= 1);  // one: RLX_SEED=…
  EXPECT_TRUE(compared > 300 || compared <= 1);
}

}  // namespace rlx::test
