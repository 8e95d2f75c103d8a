// Definitions of ops in terms of other ops: they end, and they say what the kernels compute.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/reference/evaluate.h"
#include "backends/reference/table.h"
#include "support/op_cases.h"
#include "support/tolerance.h"

namespace rlx::test {

namespace {

// The op of a case alone in a graph.
Graph graph_of(const OpCase& c) {
  Graph g("case");
  Values operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) operands.push_back(g.input(str("x", i), c.inputs[i].type()));
  const Value first = g.add(*c.op, operands, c.attrs);
  for (size_t r = 0; r < g.node_of(first.id()).results.size(); ++r)
    g.output(first.result(static_cast<int64_t>(r)), str("y", r));
  return g;
}

// The definition of that op, one level deep.
Graph definition_of(const OpCase& c) {
  Graph g("definition");
  Values operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) operands.push_back(g.input(str("x", i), c.inputs[i].type()));
  const Values results = c.op->decompose(DecomposeCall(operands, c.attrs));
  for (size_t r = 0; r < results.size(); ++r) g.output(results[r], str("y", r));
  return g;
}

template <class F>
void for_defined_cases(const F& f) {
  for (const RegisteredCases& registered : registered_cases()) {
    if (registered.op->decompose == nullptr) continue;
    for (const auto& c : registered.make())
      if (c->error.empty()) f(*c);
  }
}

}  // namespace

// A definition consists of ops of a lower rank (spec 20, 1.4.16): then replacing ops by definitions comes to an end.
TEST(Decompositions, HaveARank) {
  std::map<const OpDef*, std::set<const OpDef*>> parts;
  for_defined_cases([&](const OpCase& c) {
    const Graph definition = definition_of(c);
    for (const Node& node : definition.nodes())
      if (!node.op->traits.leaf) parts[c.op].insert(node.op);
  });
  EXPECT_GE(parts.size(), 10u);
  // The rank of an op is one more than its parts'; an op that is part of itself has none.
  std::map<const OpDef*, int> rank;
  for (size_t round = 0; round <= parts.size(); ++round)
    for (const auto& [op, own] : parts) {
      int highest = 0;
      for (const OpDef* part : own)
        highest = std::max(highest, !parts.contains(part) ? 0 : rank.contains(part) ? rank[part] : 1000);
      if (highest < 1000) rank[op] = highest + 1;
    }
  for (const auto& [op, own] : parts) EXPECT_TRUE(rank.contains(op)) << op->name << " is defined by itself";
  for (const auto& [op, r] : rank) EXPECT_LE(r, 5) << op->name;  // layer, block, fused, composite, primitive
}

TEST(Decompositions, HaveTheTypesOfTheOp) {
  for_defined_cases([](const OpCase& c) {
    const Graph op = graph_of(c), definition = definition_of(c);
    verify(definition);
    ASSERT_EQ(definition.outputs().size(), op.outputs().size()) << c.op->name;
    for (size_t i = 0; i < op.outputs().size(); ++i)
      EXPECT_EQ(definition.type(definition.outputs()[i].value), op.type(op.outputs()[i].value)) << c.op->name;
  });
}

// Where the oracle has a kernel as well, both compute the same.
TEST(Decompositions, ComputeWhatTheKernelsDo) {
  int compared = 0;
  for_defined_cases([&](const OpCase& c) {
    if (reference::find_kernel(*c.op) == nullptr) return;
    const Tensors expected = reference::evaluate(graph_of(c), c.inputs),
                  actual = reference::evaluate(definition_of(c), c.inputs);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(near(actual[i], expected[i], tolerance_of(*c.op, c.attrs, c.inputs, expected[i])))
          << c.op->name << ", result " << i;
    ++compared;
  });
  EXPECT_GE(compared, 50);
}

}  // namespace rlx::test
