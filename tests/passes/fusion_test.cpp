// What the text cases cannot say: whole models, limits, targets that claim a part, functions on graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "graphs.h"
#include "passes/quantize_graph.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

using namespace rlx::ops;

std::map<std::string_view, int64_t> counts(const Graph& graph) {
  std::map<std::string_view, int64_t> out;
  for (const Node& node : graph.nodes())
    if (!node.op->traits.leaf) ++out[node.op->name];
  return out;
}

using Counts = std::map<std::string_view, int64_t>;

void expect_same(const Graph& before, const Graph& after) {
  const Outcome expected = run_on_random_data(before, 5), actual = run_on_random_data(after, 5);
  ASSERT_EQ(expected.values.size(), actual.values.size());
  for (size_t i = 0; i < expected.values.size(); ++i) EXPECT_TRUE(same_bits(actual.values[i], expected.values[i]));
}

const TensorType kRow{{4}, DType::F32};

}  // namespace

TEST(Fusion, AnEncoderIsFusedThroughout) {
  const auto result = passes::optimize(bench::transformer_encoder(), pass_context());
  // Per layer: Q, K and V at once, attention, three more products with their epilogues, two norms with their sums. What
  // is left besides: weights put side by side, once, and the table of positions as a view.
  EXPECT_EQ(counts(result.graph), (Counts{{"attention", 12},
                                          {"concat", 24},
                                          {"fused_matmul_bias_act", 36},
                                          {"fused_matmul_split", 12},
                                          {"fused_residual_ln", 25},
                                          {"gather", 1},
                                          {"reshape", 1}}));
  for (const passes::Miss& m : result.report.misses) ADD_FAILURE() << m.node << ": " << m.guard << ". " << m.hint;
}

TEST(Fusion, ASmallEncoderBecomesBlocksAndOnDemandLayers) {
  const Graph graph = bench::transformer_encoder(1, 16);
  passes::PassContext context = pass_context();
  EXPECT_EQ(counts(passes::optimize(graph, context).graph), (Counts{{"concat", 24},
                                                                    {"fused_attention_block", 12},
                                                                    {"fused_matmul_bias_act", 24},
                                                                    {"fused_residual_ln", 25},
                                                                    {"gather", 1},
                                                                    {"reshape", 1}}));
  context.options.fuse_layers = true;
  EXPECT_EQ(
      counts(passes::optimize(graph, context).graph),
      (Counts{
          {"concat", 24}, {"fused_residual_ln", 1}, {"fused_transformer_layer", 12}, {"gather", 1}, {"reshape", 1}}));
}

TEST(Fusion, ADecoderIsFusedThroughout) {
  const auto result = passes::optimize(bench::transformer_decoder(), pass_context());
  // The add is the length of the cache; reshapes are views.
  EXPECT_EQ(counts(result.graph), (Counts{{"add", 1},
                                          {"attention", 12},
                                          {"concat", 24},
                                          {"fused_matmul_split", 12},
                                          {"fused_residual_rms_norm", 24},
                                          {"fused_swiglu", 12},
                                          {"gather", 1},
                                          {"kv_append", 24},
                                          {"matmul", 37},
                                          {"reshape", 48},
                                          {"rms_norm", 1},
                                          {"rope", 24}}));
  for (const passes::Miss& m : result.report.misses) ADD_FAILURE() << m.node << ": " << m.guard << ". " << m.hint;
}

TEST(Fusion, ConvolutionsLeaveNoElementwiseOps) {
  // Every sum of a block and relu is the epilogue of a convolution; a bias alone is its third operand.
  const auto resnet = counts(passes::optimize(bench::resnet50(), pass_context()).graph);
  EXPECT_EQ(resnet.at("fused_conv_bias_act"), 49);
  EXPECT_EQ(resnet.at("conv"), 4);
  EXPECT_EQ(resnet.at("fused_matmul_bias_act"), 1);
  for (const char* op : {"add", "relu", "elementwise_region"}) EXPECT_EQ(resnet.count(op), 0u) << op;
  const auto unet = counts(passes::optimize(bench::unet(), pass_context()).graph);
  EXPECT_EQ(unet.at("fused_conv_bias_act"), 18);
  for (const char* op : {"add", "relu", "elementwise_region"}) EXPECT_EQ(unet.count(op), 0u) << op;
}

TEST(Fusion, AnActivationThatTheTargetLacksStaysBehindTheFusedProduct) {
  Graph g("g");
  const Value sum =
      matmul(g.input("x", {{3, 4}, DType::F32}), g.param("w", {{4, 5}, DType::F32})) + g.param("b", {{5}, DType::F32});
  g.output(tan(sum), "y");
  passes::PassContext context = pass_context();
  context.claims = [](const passes::Signature& s) {
    return &s.op != &fused_matmul_bias_act || s.attrs.as<FusedMatmulBiasActAttrs>().activation == ActivationKind::kNone;
  };
  const auto result = passes::optimize(g, context);
  EXPECT_EQ(counts(result.graph), (Counts{{"fused_matmul_bias_act", 1}, {"tan", 1}}));
  ASSERT_EQ(result.report.misses.size(), 1u);
  EXPECT_EQ(result.report.misses[0].guard, "UnsupportedEpilogueActivation");
}

namespace {

std::vector<int64_t> region_sizes(const Graph& graph) {
  std::vector<int64_t> sizes;
  for (const Node& node : graph.nodes())
    if (node.op == &elementwise_region)
      sizes.push_back(static_cast<int64_t>(node.attrs.as<ElementwiseRegionAttrs>().chain.size()));
  return sizes;
}

}  // namespace

TEST(Regions, ALongChainIsCutIntoFullOnes) {
  Graph g("g");
  Value x = g.input("x", kRow);
  for (int i = 0; i < 300; ++i) x = i % 2 == 0 ? tanh(x) : neg(x);
  g.output(x, "y");
  const Graph after = after_pass(g, "mark_elementwise_regions");
  const std::vector<int64_t> sizes = region_sizes(after);
  EXPECT_EQ(sizes.size(), 10u);  // 300 steps of at most 32
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 32);
  EXPECT_EQ(counts(after).size(), 1u);
  expect_same(g, after);
}

TEST(Regions, TheCutIsWhereTheValueIsSmallest) {
  Graph g("g");
  Value x = g.input("x", kRow);
  for (int i = 0; i < 20; ++i) x = x + x;  // cheap, so that it may be done again
  for (int i = 0; i < 20; ++i) x = x + g.input(str("wide", i), i == 0 ? TensorType{{8, 4}, DType::F32} : kRow);
  g.output(x, "y");
  passes::PassContext context = pass_context();
  context.limits.max_region_inputs = 100;
  const Graph after = after_pass(g, "mark_elementwise_regions", context);
  EXPECT_EQ(region_sizes(after), (std::vector<int64_t>{20, 20}));
  expect_same(g, after);
}

TEST(Regions, TooManyInputsAreSharedOut) {
  Graph g("g");
  std::vector<Value> level;
  for (int i = 0; i < 24; ++i) level.push_back(g.input(str("x", i), kRow));
  while (level.size() > 1) {  // a tree of sums
    std::vector<Value> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  g.output(level[0], "y");
  const Graph after = after_pass(g, "mark_elementwise_regions");
  EXPECT_EQ(counts(after), (Counts{{"elementwise_region", 2}}));
  for (const Node& node : after.nodes()) EXPECT_LE(node.inputs.size(), 16u);
  expect_same(g, after);
}

TEST(Regions, WhatTheTargetRefusesIsLeftOut) {
  Graph g("g");
  const Value x = g.input("x", kRow);
  const Value wide = cast(tanh(neg(x)), {.to = DType::F64});
  g.output(relu(neg(cast(exp(sqrt(wide)), {.to = DType::F32}))), "y");
  passes::PassContext context = pass_context();
  // A kernel for one dtype at a time: no region that mixes two.
  context.claims = [](const passes::Signature& s) {
    if (&s.op != &elementwise_region) return true;
    for (const ChainStep& step : s.attrs.as<ElementwiseRegionAttrs>().chain)
      if (step.op == &cast) return false;
    return true;
  };
  const Graph after = after_pass(g, "mark_elementwise_regions", context);
  EXPECT_EQ(region_sizes(after), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(counts(after), (Counts{{"cast", 2}, {"elementwise_region", 3}}));
  expect_same(g, after);
  // Claims that depend on the whole: at most three steps.
  context.claims = [](const passes::Signature& s) {
    return &s.op != &elementwise_region || s.attrs.as<ElementwiseRegionAttrs>().chain.size() <= 3;
  };
  EXPECT_EQ(region_sizes(after_pass(g, "mark_elementwise_regions", context)), (std::vector<int64_t>{2, 3, 3}));
}

TEST(Regions, AnUnclaimedRegionBecomesItsOps) {
  Graph g("g");
  const Value x = g.input("x", kRow), y = g.input("y", kRow);
  g.output(elementwise_region(x, y,
                              {.chain = {{.op = &lt, .operands = {{false, 0}, {false, 1}}},
                                         {.op = &where, .operands = {{true, 0}, {false, 0}, {false, 1}}}},
                               .num_inputs = 2}),
           "z");
  const Graph after = passes::optimize(g, pass_context({"elementwise_region"})).graph;
  EXPECT_EQ(counts(after), (Counts{{"lt", 1}, {"where", 1}}));
  expect_same(g, after);
}

TEST(Quantise, TapsRoundWhatEveryoneReads) {
  Graph g("g");
  const Value x = g.input("x", {{2, 3}, DType::F32});
  const Value y = tanh(x);
  g.output(y, "y");
  g.output(relu(x), "r");
  const std::vector<passes::QuantTap> taps = {{"x", {.axis = 1, .scales = {0.5f, 0.25f, 1}, .zero_points = {0, 1, 2}}}};
  const Graph after = passes::insert_q_dq(g, taps);
  verify(after);
  Graph expected("g");
  const Value z = expected.input("x", {{2, 3}, DType::F32});
  const Value rounded = dequantize(quantize(z, taps[0].attrs), taps[0].attrs);
  expected.output(tanh(rounded), "y");
  expected.output(relu(rounded), "r");
  EXPECT_EQ(print(after), print(expected));
  EXPECT_TRUE(after.contains(y.id())) << "ids stay";
}

TEST(Quantise, RecordsThatDoNotFitAreErrors) {
  Graph g("g");
  const Value x = g.input("x", {{2, 3}, DType::F32});
  g.input("i", {{2}, DType::I32});
  g.output(relu(x), "y");
  const auto tap = [&](const std::string& name, std::optional<int64_t> axis, std::vector<float> scales) {
    return passes::insert_q_dq(g, std::vector<passes::QuantTap>{{name, {.axis = axis, .scales = std::move(scales)}}});
  };
  EXPECT_ERROR(tap("z", {}, {1}), kInvalid, "Graph 'g' has no node 'z' to quantise.");
  EXPECT_ERROR(tap("i", {}, {1}), kInvalid, "Tapped value 'i' is i32, not f32.");
  EXPECT_ERROR(tap("x", 1, {1, 2}), kInvalid, "Number of scales (2) is not 1 or the channels (3).");
  const std::vector<passes::QuantTap> twice = {{"x", {.scales = {1}}}, {"x", {.scales = {1}}}};
  EXPECT_ERROR(passes::insert_q_dq(g, twice), kInvalid, "Node 'x' is tapped twice.");
}

TEST(Promote, ParamsBecomeInputs) {
  Graph g("g");
  const Value w = g.param("w", kRow), x = g.input("x", kRow), v = g.param("v", kRow);
  g.output(x * w + v, "y");
  const std::vector<std::string> names = {"w"}, unknown = {"w", "u"};
  const Graph after = passes::promote_params_to_inputs(g, names);
  verify(after);
  ASSERT_EQ(after.leaves(ops::input).size(), 2u);
  EXPECT_EQ(after.leaves(ops::input)[0]->name, "w");
  EXPECT_EQ(after.leaves(ops::param).size(), 1u);
  EXPECT_EQ(after.type(w.id()), kRow);
  expect_same(g, after);
  EXPECT_ERROR(passes::promote_params_to_inputs(g, unknown), kInvalid, "Graph 'g' has no param 'u'.");
  EXPECT_EQ(print(passes::promote_params_to_inputs(g, unknown, true)), print(after));
}

}  // namespace rlx::test
