// The verifier lists all faults at once, each with its node (spec 10, 3.5).
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random_graph.h"

namespace rlx::test {

static const TensorType kVec = {{4}, DType::F32};

static bool says(const Graph& g, std::string_view text) {
  const auto faults = find_faults(g);
  return std::any_of(faults.begin(), faults.end(),
                     [&](const Fault& f) { return f.message.find(text) != std::string::npos; });
}

TEST(Verify, RandomGraphsAreValid) {
  for_random(200, [](Rng& rng) { EXPECT_NO_THROW(verify(random_graph(rng, {.symbols = rng.chance(0.3)}).graph)); });
}

TEST(Verify, V1AndV2OperandsExistAndStandBefore) {
  Graph g;
  const Value x = g.input("x", kVec);
  g.add_node(ops::neg, {999}, {}, {kVec});
  EXPECT_TRUE(says(g, "Operand 0 does not exist"));
  Graph late;
  late.input("x", kVec);
  Node node{.op = &ops::neg, .attrs = {}, .inputs = {77}, .results = {{50, kVec}}};
  late.append(node);
  late.append({.op = &ops::input, .attrs = ops::LeafAttrs{"y"}, .inputs = {}, .results = {{77, kVec}}, .name = "y"});
  EXPECT_TRUE(says(late, "stands after its reader"));
  (void)x;
}

TEST(Verify, V3V5V6ArityAndTypes) {
  Graph g;
  const Value x = g.input("x", kVec);
  g.add_node(ops::add, {x.id()}, {}, {kVec});
  g.add_node(ops::neg, {x.id()}, {}, {{{5}, DType::F32}});
  g.add_node(ops::neg, {x.id()}, {}, {kVec, kVec});
  g.add_node(ops::concat, {}, ops::ConcatAttrs{}, {kVec});
  EXPECT_TRUE(says(g, "Number of operands (1) is not 2"));
  EXPECT_TRUE(says(g, "Declared type [5] f32 of result 0 is not the inferred [4] f32"));
  EXPECT_TRUE(says(g, "Number of results (2) is not 1"));
  EXPECT_TRUE(says(g, "Number of operands (0) is not between 1 and any"));
  EXPECT_GE(find_faults(g).size(), 4u);
  EXPECT_ERROR(verify(g), kInvalid, "faults:");
}

TEST(Verify, V5OneElementWithOrWithoutAnAxisIsTheSame) {
  Graph g;
  const Value x = g.input("x", {{1}, DType::F32});
  g.add_node(ops::neg, {x.id()}, {}, {{{}, DType::F32}});
  EXPECT_TRUE(find_faults(g).empty());
  g.add_node(ops::neg, {x.id()}, {}, {{{}, DType::F64}});
  EXPECT_EQ(find_faults(g).size(), 1u);
}

TEST(Verify, V4AndV7OutputsAndNames) {
  Graph g;
  const Value x = g.input("x", kVec);
  g.param("x", kVec);
  g.state("x", kVec);
  g.output(x, "y");
  g.output(x, "y");
  g.set_outputs({{"y", x.id()}, {"y", x.id()}, {"z", 1234}});
  EXPECT_TRUE(says(g, "Name 'x' is used by another input, param or state"));
  EXPECT_TRUE(says(g, "Output name 'y' is used twice"));
  EXPECT_TRUE(says(g, "Output 'z' names a value that does not exist"));
}

TEST(Verify, V8ConstantsHaveTheirTypesBytes) {
  Graph g;
  g.add_node(ops::constant, {}, ops::ConstantAttrs{Tensor::f32({2}, {1, 2})}, {{{3}, DType::F32}});
  EXPECT_TRUE(says(g, "Declared type [3] f32 of result 0 is not the inferred [2] f32"));
}

TEST(Verify, V9AndV10AttributesFitTheirOperands) {
  Graph g;
  const Value x = g.input("x", {{2, 3}, DType::F32});
  g.add_node(ops::transpose, {x.id()}, ops::TransposeAttrs{{0, 0}}, {{{2, 2}, DType::F32}});
  g.add_node(ops::narrow, {x.id()}, ops::NarrowAttrs{.axis = 1, .start = 2, .len = 2}, {{{2, 2}, DType::F32}});
  g.add_node(ops::reshape, {x.id()}, ops::ReshapeAttrs{{4}}, {{{4}, DType::F32}});
  g.add_node(ops::expand, {x.id()}, ops::ExpandAttrs{{2, 4}}, {{{2, 4}, DType::F32}});
  EXPECT_EQ(find_faults(g).size(), 4u);
}

TEST(Verify, V13AndV15Regions) {
  auto region = std::make_shared<Graph>("then");
  const Value s = region->state("s", kVec);
  region->update(s, s);
  region->output(s, "y");
  Graph g;
  const Value p = g.input("p", {{}, DType::F32});
  g.add_node(ops::if_, {p.id()}, ops::IfAttrs{region, region}, {kVec});
  EXPECT_TRUE(says(g, "A region contains a state"));
  EXPECT_TRUE(says(g, "A region updates a state"));
}

TEST(Verify, V14SizesFit64Bits) {
  Graph g;
  g.input("x", {{int64_t{1} << 40, int64_t{1} << 40}, DType::F32});
  g.input("y", {{int64_t{1} << 61}, DType::F64});
  g.input("z", {{int64_t{1} << 40, int64_t{1} << 40, 0}, DType::F32});  // no element at all: fine
  EXPECT_EQ(find_faults(g).size(), 2u);
}

TEST(Verify, V15StatesAreUpdatedOnceByTheirType) {
  Graph g;
  const Value s = g.state("s", kVec), t = g.state("t", {{2}, DType::F32});
  g.update(s, s);
  g.update(s, t);
  EXPECT_TRUE(says(g, "is updated twice"));
  EXPECT_TRUE(says(g, "State %s of type [4] f32 is updated by %t of type [2] f32"));
}

}  // namespace rlx::test
