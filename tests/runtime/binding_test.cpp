// Sizes of symbols from the inputs of a run (spec 10, 2.3).
#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/expect_error.h"

namespace rlx::test {

static Graph graph_with(std::vector<std::pair<std::string, Shape>> inputs) {
  Graph g;
  for (auto& [name, shape] : inputs) g.output(g.input(name, {shape, DType::F32}), name);
  return g;
}
static Dim sym(uint32_t id, int64_t scale = 1, int64_t offset = 0) { return Dim::symbol(id, scale, offset); }

TEST(InferBinding, AffineSizesAreSolvedExactly) {
  const Graph g = graph_with({{"x", {sym(0), sym(1, 12, -3)}}, {"y", {sym(1)}}});
  EXPECT_EQ(infer_binding(g, {{"x", {2, 21}}}), (DimBinding{{0, 2}, {1, 2}}));
  EXPECT_EQ(infer_binding(g, {{"x", {2, 21}}, {"y", {2}}}), DimBinding::batch_seq(2, 2));
  EXPECT_ERROR(infer_binding(g, {{"x", {2, 22}}}), kInvalid,
               "Size (22) of axis 1 of input 'x' is not ?1*12-3 for any size of ?1");
  EXPECT_ERROR(infer_binding(g, {{"x", {2, 21}}, {"y", {3}}}), kInvalid,
               "Symbol ?1 is 2 and 3 at once; the second size comes from input 'y'");
  EXPECT_ERROR(infer_binding(g, {{"x", {2}}}), kInvalid, "Input 'x' has sizes [2], its declaration [?0, ?1*12-3]");
}

TEST(InferBinding, StaticAndDerivedSizesMustAgree) {
  Graph g = graph_with({{"x", {sym(0), sym(1), 4}}});
  const Value rows = g.input("rows", {{g.symbols().mul(sym(0), sym(1))}, DType::F32});
  EXPECT_EQ(rows.shape()[0], Dim::symbol(symbols::kRows));
  EXPECT_EQ(infer_binding(g, {{"x", {2, 3, 4}}, {"rows", {6}}}), DimBinding::batch_seq(2, 3));
  EXPECT_ERROR(infer_binding(g, {{"x", {2, 3, 4}}, {"rows", {7}}}), kInvalid,
               "Size (7) of axis 0 of input 'rows' is not ?2 (6)");
  EXPECT_ERROR(infer_binding(g, {{"x", {2, 3, 5}}}), kInvalid, "Input 'x' has sizes [2, 3, 5]");
}

TEST(InferBindingFromCounts, FollowsTheTableOfTheSpecification) {
  const Graph g = graph_with({{"fixed", {2, 3}},
                              {"one", {sym(0), 4}},
                              {"two", {sym(0), sym(1)}},
                              {"square", {sym(16), sym(16), 2}},
                              {"empty", {sym(1), 0}}});
  EXPECT_EQ(infer_binding_from_counts(g, {{"one", 12}}), (DimBinding{{0, 3}}));
  EXPECT_EQ(infer_binding_from_counts(g, {{"fixed", 6}, {"square", 18}}), (DimBinding{{16, 3}}));
  EXPECT_ERROR(infer_binding_from_counts(g, {{"fixed", 7}}), kInvalid, "has 7 elements, its declaration [2, 3] has 6");
  EXPECT_ERROR(infer_binding_from_counts(g, {{"one", 13}}), kInvalid, "not a multiple of 4");
  EXPECT_ERROR(infer_binding_from_counts(g, {{"two", 12}}), kInvalid,
               "has 2 unknown sizes; pass shapes or an explicit binding");
  EXPECT_ERROR(infer_binding_from_counts(g, {{"square", 16}}), kInvalid, "is not a square times 2");
  EXPECT_ERROR(infer_binding_from_counts(g, {{"empty", 0}}), kInvalid,
               "has no elements, so its sizes cannot be inferred");
}

}  // namespace rlx::test
