// The defects of spec 20, appendix A, that fusions could have: each graph gives the same results on the oracle before
// and after the whole pipeline, and the fusion does what it should.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

using namespace rlx::ops;

constexpr Tolerance kPipeline{.of_max = 1e-5};

int64_t count(const Graph& graph, const OpDef& op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return n.op == &op; });
}

// The graph after the pipeline, which must give the results that it gave before.
Graph optimized(const Graph& graph, const passes::PassContext& context = pass_context(),
                const Tolerance& tolerance = kPipeline) {
  const Graph after = passes::optimize(graph, context).graph;
  const Outcome expected = run_on_random_data(graph, 3), actual = run_on_random_data(after, 3);
  EXPECT_FALSE(expected.fails || actual.fails);
  EXPECT_EQ(expected.values.size(), actual.values.size());
  for (size_t i = 0; i < std::min(expected.values.size(), actual.values.size()); ++i)
    EXPECT_TRUE(near(actual.values[i], expected.values[i], tolerance)) << "output " << i;
  return after;
}

struct Maker {
  Graph g{"g"};
  Value input(const std::string& name, Shape shape, DType dtype = DType::F32) { return g.input(name, {shape, dtype}); }
  Value param(const std::string& name, Shape shape) { return g.param(name, {shape, DType::F32}); }
  int outputs = 0;
  void out(const Value& v) { g.output(v, str("y", outputs++)); }
};

}  // namespace

TEST(DefectsFusion, D01AProductThatIsAnOutputIsNotAbsorbed) {
  Maker m;
  const Value mm = matmul(m.input("x", {3, 4}), m.param("w", {4, 5}));
  m.out(mm);
  m.out(gelu(mm + m.param("b", {5})));
  const Graph after = optimized(m.g);
  EXPECT_EQ(count(after, fused_matmul_bias_act), 0);
  EXPECT_EQ(count(after, matmul), 1);
}

TEST(DefectsFusion, D10ABiasOfOneElementIsRepeated) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}, Shape{1, 5}}) {
    Maker m;
    m.out(matmul(m.input("x", {3, 4}), m.param("w", {4, 5})) + m.param("b", shape));
    EXPECT_EQ(count(optimized(m.g), fused_matmul_bias_act), 1) << str(shape);
  }
}

TEST(DefectsFusion, D11ABroadcastSumAndAnotherAxisAreNoResidualNorm) {
  Maker m;
  const Value x = m.input("x", {2, 3, 4}), b = m.param("b", {4}), p = m.param("p", {3, 4});
  m.out(layer_norm(x + b, b, b));
  m.out(layer_norm(x + relu(x), p, p, {.axis = 1}));
  m.out(rms_norm(x + m.input("row", {1, 4}), b));
  const Graph after = optimized(m.g);
  EXPECT_EQ(count(after, fused_residual_ln) + count(after, fused_residual_rms_norm), 0);
}

TEST(DefectsFusion, D12BetaOfAnRmsNormTakesPart) {
  Maker m;
  const Value x = m.input("x", {3, 4}), r = m.input("r", {3, 4});
  m.out(rms_norm(x + r, m.param("gamma", {4}), m.param("beta", {4})));
  EXPECT_EQ(count(optimized(m.g), fused_residual_rms_norm), 1);
  optimized(m.g, pass_context({"fused_residual_rms_norm"}));
}

TEST(DefectsFusion, D13AGateThatIsAnOutputKeepsItsProduct) {
  Maker m;
  const Value x = m.input("x", {3, 4});
  const Value up = matmul(x, m.param("up", {4, 5})), gate = matmul(x, m.param("gate", {4, 5}));
  m.out(up * silu(gate));
  m.out(gate);
  EXPECT_EQ(count(optimized(m.g), fused_swiglu), 0);
}

TEST(DefectsFusion, D14WeightsThatDependOnAnInputAreNotPutTogether) {
  Maker m;
  const Value x = m.input("x", {4, 4}), w = m.param("w", {4, 4});
  const Value first = matmul(x, w);
  m.out(matmul(x, first));  // its weight is the other product
  m.out(matmul(x, tanh(x)));
  const Graph after = optimized(m.g);
  EXPECT_EQ(count(after, concat), 0);
  EXPECT_EQ(count(after, fused_matmul_split), 0);
}

TEST(DefectsFusion, D15SlicesThatAreNotTheHalvesOfTheLastAxisAreNoSwiglu) {
  Maker m;
  const Value x = m.input("x", {4, 6});
  const auto part = [&](int64_t axis, int64_t start, int64_t len) {
    return narrow(x, {.axis = axis, .start = start, .len = len});
  };
  m.out(part(0, 0, 2) * silu(part(0, 2, 2)));
  m.out(part(1, 0, 2) * silu(part(1, 2, 2)));  // the source is wider
  m.out(part(1, 0, 3) * silu(part(1, 2, 3)));
  EXPECT_EQ(count(optimized(m.g), fused_swiglu), 0);
}

TEST(DefectsFusion, D17ARegionBroadcastsByShape) {
  Maker m;
  const Value a = m.input("a", {8, 4}), b = m.input("b", {8, 1}), c = m.input("c", {2, 4, 3}),
              d = m.input("d", {2, 1, 3});
  m.out(tanh(a * b) - b);
  m.out(neg(c + d) * d);
  const Graph after = optimized(m.g, pass_context(), kExact);
  EXPECT_EQ(count(after, elementwise_region), 2);
  EXPECT_EQ(count(after, mul) + count(after, add) + count(after, sub), 0);
}

TEST(DefectsFusion, D18EveryActivationIsTheSameInAnEpilogueAndInARegion) {
  for (size_t i = 1; i < enum_names<ActivationKind>.size(); ++i) {
    const auto kind = static_cast<ActivationKind>(i);
    SCOPED_TRACE(name_of(kind));
    Maker m;
    const Value x = m.input("x", {3, 4});
    m.out(activate(x, kind));
    m.out(activate(x * x, kind));
    m.out(activate(matmul(x, m.param("w", {4, 5})) + m.param("b", {5}), kind));
    const Graph after = optimized(m.g, pass_context(), kExact);
    EXPECT_EQ(count(after, activation_op(kind)), 1);
    EXPECT_EQ(count(after, elementwise_region), 1);
    const auto fused = std::find_if(after.nodes().begin(), after.nodes().end(),
                                    [](const Node& n) { return n.op == &fused_matmul_bias_act; });
    ASSERT_NE(fused, after.nodes().end());
    EXPECT_EQ(fused->attrs.as<FusedMatmulBiasActAttrs>().activation, kind);
  }
}

TEST(DefectsFusion, D20SlicesAreMergedInTheirOrderOnlyAndWithTheirLengths) {
  Maker m;
  const Value x = m.input("x", {3, 4}), z = m.input("z", {3, 4});
  const auto part = [](const Value& v, int64_t start, int64_t len) {
    return narrow(v, {.axis = 0, .start = start, .len = len});
  };
  m.out(concat(relu(part(x, 0, 1)), sigmoid(part(x, 1, 2)), {.axis = 0}));  // different work
  m.out(concat(tanh(part(x, 1, 2)), tanh(part(x, 0, 1)), {.axis = 0}));     // the other order
  m.out(concat(exp(part(z, 0, 1)), exp(part(z, 1, 2)), {.axis = 0}));       // lengths 1 and 2
  const Graph after = optimized(m.g, pass_context(), kExact);
  EXPECT_EQ(count(after, concat), 2);
  EXPECT_EQ(count(after, exp), 1);
}

TEST(DefectsFusion, D21IndicesIntegersAndOutputsKeepTheirTypes) {
  Maker m;
  passes::PassContext context = pass_context();
  context.options.precision = passes::PrecisionPolicy::kAutoMixed;
  const Value table = m.param("table", {40960, 2}), x = m.input("x", {2, 2});
  // f16 knows no 40001.
  const Value index = m.g.constant(Tensor::i32({2}, {40000, 40001}));
  const Value wide = m.input("wide", {3}, DType::I64);
  m.out(gather(table, index));
  m.out(matmul(x, gather(table, index)));
  m.out(wide + wide);
  m.out(cast(m.input("d", {3}, DType::F64) * m.g.constant(Tensor::from_doubles(DType::F64, {}, std::vector{1.0 / 3})),
             {.to = DType::F64}));
  const Graph after = optimized(m.g, context, {.of_max = 5e-3});
  for (size_t i = 0; i < m.g.outputs().size(); ++i)
    EXPECT_EQ(after.type(after.outputs()[i].value), m.g.type(m.g.outputs()[i].value));
  const auto product =
      std::find_if(after.nodes().begin(), after.nodes().end(), [](const Node& n) { return n.op == &matmul; });
  ASSERT_NE(product, after.nodes().end());
  EXPECT_EQ(product->results[0].type.dtype, DType::F16);
  const Outcome exact = run_on_random_data(m.g, 3), mixed = run_on_random_data(after, 3);
  EXPECT_EQ(mixed.values[0], exact.values[0]);
  EXPECT_EQ(mixed.values[2], exact.values[2]);
  EXPECT_EQ(mixed.values[3], exact.values[3]);
}

TEST(DefectsFusion, D22WhatStandsBetweenTwoRoundingsStays) {
  Maker m;
  passes::PassContext context = pass_context();
  context.options.quant_propagate = true;
  const Value x = m.input("x", {1, 2, 4, 4}), s = m.g.constant(Tensor::f32({1}, {0.1f}));
  const FakeQuantizeAttrs attrs{.scale_mode = ScaleMode::kFixed};
  const Value pooled = pool_max(relu(fake_quantize(x, s, attrs)),
                                {.kernel_size = {2, 2}, .stride = {2, 2}, .padding = {0, 0}, .dilation = {1, 1}});
  m.out(fake_quantize(reshape(pooled, {.new_shape = {8}}), s, attrs));
  m.out(fake_quantize(relu(fake_quantize(x))));  // the scale of a batch is another after relu
  const Graph after = optimized(m.g, context, kExact);
  EXPECT_EQ(count(after, fake_quantize), 3);
  EXPECT_EQ(count(after, relu), 2);
  EXPECT_EQ(count(after, pool_max), 1);
  for (const double v : run_on_random_data(after, 3).values[0].to_doubles()) EXPECT_GE(v, 0);
}

TEST(DefectsFusion, D26ScaleAndSoftcapSurviveInEveryLayout) {
  for (const bool scaled : {false, true}) {
    Maker m;
    const Value x = m.input("x", {1, 3, 4}), w = m.param("w", {4, 12}), b = m.param("b", {12});
    const Value mask = m.input("mask", {1, 3}), qkv = matmul(x, w) + b;
    const auto part = [&](int64_t i) { return narrow(qkv, {.axis = 2, .start = 4 * i, .len = 4}); };
    AttentionAttrs attrs{
        .num_heads = 2, .head_dim = 2, .layout = AttentionLayout::kBsf, .mask_kind = MaskKind::kCustom};
    if (scaled) attrs.score_scale = 0.1f;
    if (!scaled) attrs.attn_logit_softcap = 30.f;
    m.out(matmul(attention({part(0), part(1), part(2), mask}, attrs), m.param("o", {4, 4})) + m.param("c", {4}));
    const Graph after = optimized(m.g);
    EXPECT_EQ(count(after, fused_attention_block), 0);
    const auto node =
        std::find_if(after.nodes().begin(), after.nodes().end(), [](const Node& n) { return n.op == &attention; });
    ASSERT_NE(node, after.nodes().end());
    EXPECT_EQ(node->attrs, Attrs(attrs));
  }
}

TEST(DefectsFusion, D27SwigluKeepsItsOrderAndItsCastOnEveryPath) {
  for (const bool gate_first : {false, true})
    for (const std::optional<DType> cast_to : {std::optional<DType>(), std::optional(DType::F16)})
      for (const bool claimed : {false, true}) {
        Maker m;
        m.out(fused_swiglu(m.input("x", {3, 8}), {.cast_to = cast_to, .gate_first = gate_first}));
        const Graph after =
            optimized(m.g, claimed ? pass_context() : pass_context({"fused_swiglu", "elementwise_region"}), kExact);
        EXPECT_EQ(count(after, fused_swiglu), claimed ? 1 : 0);
      }
}

}  // namespace rlx::test
