// Defects of the implementation that rlx was specified from (spec 20, appendix A): each is a test here, named by its
// id. D05, D08, D19 and D23 have text cases too.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/reference/evaluate.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

TensorType f32(Shape shape) { return {std::move(shape), DType::F32}; }

Graph optimized(const Graph& g, const passes::PassContext& context = pass_context()) {
  return passes::optimize(g, context).graph;
}

void expect_same_results(const Graph& before, const Graph& after, Tolerance tolerance = kExact) {
  const Outcome a = run_on_random_data(before, 3), b = run_on_random_data(after, 3);
  ASSERT_EQ(a.values.size(), b.values.size());
  EXPECT_FALSE(a.fails || b.fails);
  for (size_t i = 0; i < a.values.size(); ++i)
    EXPECT_TRUE(near(b.values[i], a.values[i], tolerance)) << "output " << i << "\n" << print(after);
}

std::vector<ops::ActivationKind> all_activations() {
  std::vector<ops::ActivationKind> kinds;
  for (size_t i = 1; i < enum_names<ops::ActivationKind>.size(); ++i)
    kinds.push_back(static_cast<ops::ActivationKind>(i));
  return kinds;
}

int64_t count(const Graph& g, const OpDef& op) {
  int64_t n = 0;
  for (const Node& node : g.nodes()) n += node.op == &op;
  return n;
}

// A loop that doubles x as long as `condition` is true, at most n times.
Graph doubling_loop(const Tensor& condition, int64_t n) {
  Graph g("loop");
  const Value x = g.input("x", f32({2})), c = g.input("c", condition.type());
  auto cond = std::make_shared<Graph>("cond"), body = std::make_shared<Graph>("body");
  cond->input("x", x.type());
  cond->output(cond->input("c", c.type()), "more");
  const Value v = body->input("x", x.type());
  const Value same = body->input("c", c.type());
  body->output(v + v, "x");
  body->output(same, "c");
  const Value loop = ops::while_(x, c, {.cond = cond, .body = body, .max_iterations = n});
  g.output(loop, "y");
  return g;
}

}  // namespace

TEST(Defects, D01AnAbsorbedValueThatIsAnOutputStays) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3})), w = g.param("w", f32({3, 4})), b = g.param("b", f32({4}));
  const Value mm = ops::matmul(x, w);
  g.output(mm, "mm");
  g.output(ops::gelu(mm + b), "y");
  expect_same_results(g, optimized(g));
}

TEST(Defects, D02IdsSurviveThePipelineOrAreRemapped) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3}));
  const Value y = ops::reshape(ops::reshape(x, {.new_shape = {6}}), {.new_shape = {2, 3}});
  const Value w = g.param("late", f32({3}));  // declared after a node that goes
  const Value z = y * w;
  g.output(z, "z");
  const passes::OptimizeResult result = passes::optimize(g, pass_context());
  EXPECT_EQ(result.graph.node_of(result.remap.find(w.id()).id).name, "late");
  EXPECT_EQ(result.remap.find(y.id()).id, x.id());
  EXPECT_FALSE(result.remap.find(y.id()).absorbed);
  EXPECT_EQ(result.remap.find(z.id()).id, result.graph.outputs()[0].value);
}

TEST(Defects, D03TheSameGraphGivesTheSameScheduleHoweverItIsMade) {
  Graph built("g");
  const Value x = built.input("x", f32({2, 3}));
  built.output(ops::softmax(ops::relu(ops::cast(x, {.to = DType::F32}))), "y");
  const Graph parsed = parse(print(built));
  EXPECT_EQ(print(optimized(built)), print(optimized(parsed)));
  const auto steps = [](const Graph& g) {
    std::string text;
    for (const StepInfo& s : compile(g, {.device = "reference"}).plan().steps) text += str(s.op, " ", s.result, "\n");
    return text;
  };
  EXPECT_EQ(steps(built), steps(parsed));
}

TEST(Defects, D05ConstantsFoldInTheirOwnDtypeWithTheOraclesKernels) {
  Graph g("g");
  for (const DType d : {DType::I32, DType::F16, DType::I64, DType::U8, DType::F64}) {
    const double numbers[] = {3, 5};
    const Value c = g.constant(Tensor::from_doubles(d, {2}, numbers));
    g.output(c * c, str("square_", d));
    g.output(ops::gt(c, c), str("compare_", d));
  }
  g.output(ops::cast(g.constant(Tensor::f32({}, {2.7f})), {.to = DType::I32}), "cast");
  g.output(ops::gelu(g.constant(Tensor::f32({}, {1}))), "gelu");
  const Graph folded = optimized(g);
  for (const Output& o : folded.outputs()) EXPECT_EQ(folded.node_of(o.value).op, &ops::constant) << o.name;
  expect_same_results(g, folded);
  const auto value = [&](std::string_view name) {
    for (const Output& o : folded.outputs())
      if (o.name == name) return folded.node_of(o.value).attrs.as<ops::ConstantAttrs>().value;
    return Tensor();
  };
  EXPECT_EQ(value("cast").at(0), 2);
  EXPECT_NEAR(value("gelu").at(0), 0.5 * (1 + std::erf(std::sqrt(0.5))), 1e-7);
  EXPECT_EQ(value("square_i32").at(1), 25);
}

TEST(Defects, D06ALoopConditionIsTrueOrFalseWhateverItsValue) {
  for (const float c : {3.0f, -2.5f, 0.0f, std::nanf("")}) {
    const Graph g = doubling_loop(Tensor::f32({1}, {c}), 50);
    const Graph flat = optimized(g);
    EXPECT_EQ(count(flat, ops::while_), 0);
    const std::vector<Tensor> inputs = {Tensor::f32({2}, {1, -3}), Tensor::f32({1}, {c})};
    const Tensor expected = reference::evaluate(g, inputs)[0];
    EXPECT_TRUE(near(reference::evaluate(flat, inputs)[0], expected, kExact)) << "condition " << c;
    EXPECT_EQ(expected.at(0), c == 0 ? 1.0 : std::ldexp(1.0, 50)) << "condition " << c;
  }
}

TEST(ControlFlow, UnrollingHasALimitThatTheErrorNames) {
  passes::PassContext context = pass_context();
  context.options.unroll = passes::Unroll::kAlways;
  const Graph g = doubling_loop(Tensor::f32({1}, {1}), 100);
  EXPECT_EQ(count(optimized(g), ops::while_), 1);  // beyond the usual limits
  EXPECT_EQ(count(optimized(g, context), ops::while_), 0);
  context.limits.most_nodes = 400;
  EXPECT_ERROR(optimized(g, context), kInvalid, "Unrolling %2 (while) gives 500 nodes; the limit is 400.");
}

TEST(Defects, D07AWeightInALoopIsOneParam) {
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  auto cond = std::make_shared<Graph>("cond"), body = std::make_shared<Graph>("body");
  cond->output(
      ops::lt(ops::reduce_sum(cond->input("x", x.type()), {.axes = {0}}), cond->constant(Tensor::f32({}, {1e9f}))),
      "more");
  const Value v = body->input("x", x.type());
  body->output(v * body->param("w", f32({2})), "x");
  g.output(ops::while_(x, {.cond = cond, .body = body, .max_iterations = 3}), "y");
  const Graph flat = optimized(g);
  EXPECT_EQ(count(flat, ops::while_), 0);
  EXPECT_EQ(count(flat, ops::param), 1);
  const NamedTensors params = {{"w", Tensor::f32({2}, {2, -1})}};
  const std::vector<Tensor> inputs = {Tensor::f32({2}, {1, 1})};
  EXPECT_EQ(reference::evaluate(flat, inputs, params)[0], Tensor::f32({2}, {8, -1}));
  EXPECT_EQ(reference::evaluate(g, inputs, params)[0], Tensor::f32({2}, {8, -1}));
}

TEST(Defects, D08DotGeneralOfRankThreeContractsTheAxisItNames) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3, 5})), w = g.param("w", f32({3, 4}));
  g.output(ops::dot_general(x, w, {.lhs_contracting = {1}, .rhs_contracting = {0}}), "y");
  const Graph flat = optimized(g);
  EXPECT_EQ(count(flat, ops::matmul), 1);
  Rng rng(1);
  const Tensor a = rng.tensor({2, 3, 5}), b = rng.tensor({3, 4});
  const Tensor y = reference::evaluate(flat, std::vector<Tensor>{a}, {{"w", b}})[0];
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 5, 4}));
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 3; ++k) sum += a.at((n * 3 + k) * 5 + i) * b.at(k * 4 + j);
        EXPECT_NEAR(y.at((n * 5 + i) * 4 + j), sum, 1e-6);
      }
}

TEST(Defects, D09AWeightPerChannelIsBroadcastOnEveryDevice) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3, 2, 2})), w = g.param("w", f32({1, 3, 1, 1}));
  g.output(x + w, "y");
  Rng rng(1);
  const Tensor a = rng.tensor({2, 3, 2, 2}), b = rng.tensor({1, 3, 1, 1});
  for (const DeviceInfo& device : devices()) {
    if (!device.available) continue;
    for (const Graph& graph : {g, optimized(g)}) {
      Executable exe = compile(graph, {.device = device.name});
      exe.set_param("w", b);
      const Tensor y = exe.run({{"x", a}})["y"];
      for (int64_t i = 0; i < y.num_elements(); ++i)
        EXPECT_EQ(y.at(i), static_cast<float>(a.at(i) + b.at(i / 4 % 3))) << device.name;
    }
  }
}

TEST(Defects, D18AnActivationIsTheSameAloneInARegionAndInAnEpilogue) {
  for (const ops::ActivationKind kind : all_activations()) {
    Graph g("g");
    const Value x = g.input("x", f32({2, 3}));
    const Value w = g.constant(Tensor::f32({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})),
                b = g.constant(Tensor::f32({3}, {0, 0, 0}));
    const Chain chain = {{.op = &ops::activation_op(kind), .operands = {{false, 0}}}};
    g.output(ops::activate(x, kind), "alone");
    g.output(ops::elementwise_region(x, {.chain = chain}), "region");
    g.output(ops::fused_matmul_bias_act(x, w, b, {.activation = kind}), "epilogue");
    for (const auto& context : {pass_context(), pass_context({"elementwise_region", "fused_matmul_bias_act"})}) {
      const Graph after = optimized(g, context);
      const std::vector<Tensor> inputs = {Tensor::f32({2, 3}, {-2, -0.5f, 0.25f, 1, 2, 30})};
      const auto y = reference::evaluate(after, inputs);
      EXPECT_TRUE(near(y[1], y[0], kExact)) << name_of(kind);
      EXPECT_TRUE(near(y[2], y[0], kExact)) << name_of(kind);
    }
  }
}

TEST(Defects, D19AComparisonInARegionIsBool) {
  Graph g("g");
  const Value x = g.input("x", f32({3})), y = g.input("y", f32({3}));
  const Chain chain = {{.op = &ops::add, .operands = {{false, 0}, {false, 1}}},
                       {.op = &ops::lt, .operands = {{true, 0}, {false, 1}}}};
  g.output(ops::elementwise_region(x, y, {.chain = chain, .num_inputs = 2}), "less");
  const Graph after = optimized(g, pass_context({"elementwise_region"}));
  EXPECT_EQ(count(after, ops::elementwise_region), 0);
  EXPECT_EQ(after.type(after.outputs()[0].value).dtype, DType::Bool);
  expect_same_results(g, after);
}

TEST(Defects, D20SlicesKeepTheirOpsTheirOrderAndTheirLengths) {
  Graph g("g");
  const Value x = g.input("x", f32({3, 2}));
  const Value one = ops::narrow(x, {.axis = 0, .start = 0, .len = 1}),
              two = ops::narrow(x, {.axis = 0, .start = 1, .len = 2});
  g.output(ops::concat(ops::relu(one), ops::sigmoid(two), {.axis = 0}), "other_ops");
  g.output(ops::concat(ops::relu(two), ops::relu(one), {.axis = 0}), "other_order");
  g.output(ops::concat(ops::relu(one), ops::relu(two), {.axis = 0}), "other_lengths");
  expect_same_results(g, optimized(g));
  // The op that the reference made of such slices: its operands' order counts.
  Graph batch("batch");
  const Value a = batch.input("a", f32({1, 2})), b = batch.input("b", f32({1, 2}));
  const Chain chain = {{.op = &ops::relu, .operands = {{false, 0}}}};
  batch.output(ops::batch_elementwise_region(b, a, {.chain = chain, .num_batch_inputs = 2}), "y");
  const Graph after = optimized(batch, pass_context({"batch_elementwise_region", "elementwise_region"}));
  const std::vector<Tensor> inputs = {Tensor::f32({1, 2}, {1, -2}), Tensor::f32({1, 2}, {3, 4})};
  EXPECT_EQ(reference::evaluate(after, inputs)[0], Tensor::f32({2, 2}, {3, 4, 1, 0}));
}

TEST(Defects, D23NearestResizeRepeatsPixelsNotTheImage) {
  Graph g("g");
  g.output(ops::resize_nearest_2x(g.input("x", f32({1, 1, 2, 2}))), "y");
  const Graph after = optimized(g, pass_context({"resize_nearest_2x"}));
  EXPECT_EQ(count(after, ops::resize_nearest_2x), 0);
  const std::vector<Tensor> inputs = {Tensor::f32({1, 1, 2, 2}, {1, 2, 3, 4})};
  EXPECT_EQ(reference::evaluate(after, inputs)[0],
            Tensor::f32({1, 1, 4, 4}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(Defects, D25DecomposedGradientsAreThoseOfTheKernels) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16})
    for (const ops::ActivationKind kind : all_activations()) {
      Graph g("g");
      const TensorType type{{9}, dtype};
      g.output(ops::activation_backward(g.input("x", type), g.input("dy", type), {.kind = kind}), "dx");
      const Graph after = optimized(g, pass_context({"activation_backward"}));
      EXPECT_EQ(count(after, ops::activation_backward), 0);
      const double x[] = {-9, -2, -0.5, -0.0, 0.0, 1e-3, 0.5, 2, 9}, dy[] = {1, -2, 3, 4, -5, 1, 2, 3, 0.5};
      const std::vector<Tensor> inputs = {Tensor::from_doubles(dtype, {9}, x), Tensor::from_doubles(dtype, {9}, dy)};
      const Tensor expected = reference::evaluate(g, inputs)[0], actual = reference::evaluate(after, inputs)[0];
      const Tolerance tolerance = dtype == DType::F64   ? Tolerance{.rel = 1e-12, .abs = 1e-14}
                                  : dtype == DType::F32 ? Tolerance{.rel = 1e-5, .abs = 1e-6}
                                                        : Tolerance{.rel = 1e-3, .abs = 1e-6};
      EXPECT_TRUE(near(actual, expected, tolerance)) << name_of(kind) << " " << str(dtype);
    }
  // relu's gradient selects: an infinite dy where x is negative does not show.
  Graph g("g");
  const Value x = g.input("x", f32({2})), dy = g.input("dy", f32({2}));
  g.output(ops::relu_backward(x, dy), "dx");
  const Graph after = optimized(g, pass_context({"relu_backward"}));
  const std::vector<Tensor> inputs = {Tensor::f32({2}, {-1, 2}), Tensor::f32({2}, {INFINITY, 3})};
  EXPECT_EQ(reference::evaluate(after, inputs)[0], Tensor::f32({2}, {0, 3}));
}

TEST(Defects, D27SwigluKeepsItsOrderAndItsCast) {
  for (const bool gate_first : {false, true})
    for (const std::optional<DType> cast_to : {std::optional<DType>(), std::optional(DType::F16)}) {
      Graph g("g");
      g.output(ops::fused_swiglu(g.input("x", f32({2, 4})), {.cast_to = cast_to, .gate_first = gate_first}), "y");
      const Graph after = optimized(g, pass_context({"fused_swiglu"}));
      EXPECT_EQ(count(after, ops::fused_swiglu), 0);
      Rng rng(5);
      const Tensor x = rng.tensor({2, 4});
      const Tensor y = reference::evaluate(after, std::vector<Tensor>{x})[0];
      EXPECT_EQ(y.dtype(), cast_to.value_or(DType::F32));
      for (int64_t r = 0; r < 2; ++r)
        for (int64_t i = 0; i < 2; ++i) {
          const double first = x.at(r * 4 + i), second = x.at(r * 4 + 2 + i);
          const double gate = gate_first ? first : second, up = gate_first ? second : first;
          EXPECT_NEAR(y.at(r * 2 + i), gate / (1 + std::exp(-gate)) * up, cast_to ? 2e-3 : 1e-6);
        }
    }
}

// Every definition consists of ops of a lower rank, so that decomposing ends (spec 20, 1.4.16).
TEST(Defects, D04DecompositionsEndAndTouchOnlyWhatIsUnclaimed) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 4})), w = g.param("w", f32({4, 4})), b = g.param("b", f32({4}));
  const Value lora_a = g.param("a", f32({4, 2})), lora_b = g.param("lb", f32({2, 4}));
  g.output(ops::fused_matmul_bias_act(ops::lora_matmul({x, w, lora_a, lora_b}), w, b), "y");
  const Graph after = optimized(g, pass_context({"lora_matmul"}));
  EXPECT_EQ(count(after, ops::lora_matmul), 0);
  EXPECT_EQ(count(after, ops::fused_matmul_bias_act), 1);
  expect_same_results(g, after);
}

}  // namespace rlx::test
