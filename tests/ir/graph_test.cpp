// Graph building, identity of values, binding of sizes, decomposition.
#include <gtest/gtest.h>

#include "backends/reference/evaluate.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/random_graph.h"

namespace rlx::test {

TEST(Graph, BuildersRefuseValuesOfAnotherGraph) {
  Graph a("a"), b("b");
  const Value x = a.input("x", {{2}, DType::F32}), y = b.input("y", {{2}, DType::F32});
  EXPECT_ERROR(x + y, kInvalid, "is given a value of another graph ('b')");
  EXPECT_ERROR(a.output(y, "y"), kInvalid, "is a value of another graph");
}

TEST(Graph, BuildersSayWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {{2, 3}, DType::F32});
  EXPECT_ERROR(ops::softmax(x, {.axis = 3}), kInvalid, "Axis (3) is out of range for rank (2)");
  EXPECT_ERROR(ops::softmax(x, {.axis = 3}), kInvalid, "inferring the type of softmax([2, 3] f32)");
  EXPECT_ERROR(x.result(1), kInvalid, "has 1 results, not a result 1");
}

TEST(Graph, EqualityIsDeepAndIgnoresIds) {
  const auto build = [](float c, const std::string& output) {
    Graph g;
    const Value x = g.input("x", {{2}, DType::F32});
    g.output(x * g.constant(Tensor::f32({}, {c})), output);
    return g;
  };
  EXPECT_EQ(build(2, "y"), build(2, "y"));
  EXPECT_NE(build(2, "y"), build(3, "y"));
  EXPECT_NE(build(2, "y"), build(2, "z"));
  EXPECT_NE(build(2, "y").hash(), build(3, "y").hash());
}

TEST(Graph, HashIsTheSameOnEveryPlatform) {
  Graph g("stable");
  const Value x = g.input("x", {{2, 3}, DType::F32});
  g.output(ops::softmax(x), "y");
  EXPECT_EQ(print(g),
            "graph @stable {\n  %x = input() : [2, 3] f32\n  %1 = softmax(%x) : [2, 3] f32\n  return y=%1\n}\n");
  EXPECT_EQ(g.hash(), 0x64c4ac35f9fddad8u  // FNV-1a of that text, computed in Python
  );
}

TEST(Bind, ReachesTypesAttributesAndRegions) {
  Graph g;
  const Dim batch = Dim::symbol(symbols::kBatch);
  const Value x = g.input("x", {{batch, 4}, DType::F32});
  const Value flat = ops::reshape(x, {.new_shape = {g.symbols().mul(batch, 4)}});
  auto body = std::make_shared<Graph>("body");
  body->output(ops::neg(body->input("v", flat.type())), "y");
  const Value flag = g.constant(Tensor::i32({}, {1}));
  g.output(ops::if_(flag, flat, {.then_branch = body, .else_branch = body}), "y");
  const Graph bound = bind(g, {{symbols::kBatch, 3}});
  EXPECT_TRUE(bound.dynamic_symbols().empty());
  EXPECT_EQ(str(bound.type(bound.outputs()[0].value)), "[12] f32");
  for (size_t i = 0; i < g.nodes().size(); ++i) EXPECT_EQ(bound.nodes()[i].results[0].id, g.nodes()[i].results[0].id);
  EXPECT_FALSE(bind(g, {}).dynamic_symbols().empty());
}

TEST(Bind, ClampsNothing) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(1)}, DType::F32});
  g.output(ops::narrow(x, {.axis = 0, .start = 3, .len = 4}), "y");
  EXPECT_NO_THROW(bind(g, {{1, 7}}));
  EXPECT_ERROR(bind(g, {{1, 6}}), kInvalid, "binding the sizes of %1 (narrow)");
}

TEST(Bind, ChecksBroadcastConstraints) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(1)}, DType::F32}), y = g.input("y", {{7}, DType::F32});
  g.output(x + y, "y");
  EXPECT_EQ(str(g.type(g.outputs()[0].value)), "[7] f32");
  EXPECT_NO_THROW(bind(g, {{1, 1}}));
  EXPECT_NO_THROW(bind(g, {{1, 7}}));
  EXPECT_ERROR(bind(g, {{1, 3}}), kInvalid, "Size ?1 (3) is broadcast with 7, so it must be 1 or 7");
  EXPECT_ERROR(x + g.input("z", {{Dim::symbol(3)}, DType::F32}), kInvalid, "do not broadcast until they are bound");
}

TEST(Decompose, CustomFnIsItsBodyAndOutputsStay) {
  auto body = std::make_shared<Graph>("body");
  body->output(ops::neg(body->input("v", {{2}, DType::F32})), "y");
  Graph g;
  const Value x = g.input("x", {{2}, DType::F32});
  g.output(ops::relu(ops::custom_fn(x, {.fwd_body = body})), "y");
  const Graph plain = decompose(g, [](const auto&...) { return true; });
  EXPECT_EQ(print(plain),
            "graph @main {\n  %x = input() : [2] f32\n  %1 = neg(%x) : [2] f32\n  %2 = relu(%1) : [2] f32\n  return "
            "y=%2\n}\n");
  const Tensor in = Tensor::f32({2}, {1, -2});
  EXPECT_EQ(reference::evaluate(plain, std::span(&in, 1))[0], Tensor::f32({2}, {0, 2}));
  EXPECT_EQ(decompose(plain, [](const auto&...) { return true; }), plain);
}

}  // namespace rlx::test
