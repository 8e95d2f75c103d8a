// Shapes with symbols through the shape ops, what binding makes of them, and which shape ops are views.
#include <gtest/gtest.h>

#include "rlx/ops.h"

namespace rlx::test {

namespace {

const Dim kB = Dim::symbol(symbols::kBatch), kS = Dim::symbol(symbols::kSeq), kRows = Dim::symbol(symbols::kRows),
          kPast = Dim::symbol(symbols::kPastSeq);

Value input(Graph& g, Shape shape) { return g.input(str("x", g.nodes().size()), {std::move(shape), DType::F32}); }

template <class A>
std::optional<int64_t> view_offset(const Op<A>& op, Shape shape, A attrs) {
  const TensorType x{std::move(shape), DType::F32};
  const Attrs boxed(std::move(attrs));
  SymbolTable table;
  const auto view = op.view(InferCall(op, std::span(&x, 1), boxed, table));
  return view ? std::optional(view->offset_elems) : std::nullopt;
}

}  // namespace

TEST(ReshapeInfer, MinusOneIsTheProductOfSymbols) {
  Graph g;
  const Value x = input(g, {kB, kS, 8});
  EXPECT_EQ(ops::reshape(x, {.new_shape = {-1, 8}}).shape(), (Shape{kRows, 8}));
  EXPECT_EQ(ops::reshape(x, {.new_shape = {-1}}).shape(), (Shape{Dim::symbol(symbols::kRows, 8)}));
  EXPECT_EQ(ops::reshape(x, {.new_shape = {kB, kS, 2, -1}}).shape(), (Shape{kB, kS, 2, 4}));
  EXPECT_EQ(ops::reshape(x, {.new_shape = {kB, -1}}).shape(), (Shape{kB, Dim::symbol(symbols::kSeq, 8)}));
  EXPECT_EQ(ops::reshape(x, {.new_shape = {kRows, 8}}).shape(), (Shape{kRows, 8}));
}

TEST(ReshapeInfer, TheOrderOfFactorsDoesNotMatter) {
  Graph g;
  const Value heads = input(g, {kB, 12, kS, 64});
  EXPECT_EQ(ops::reshape(heads, {.new_shape = {-1, 64}}).shape(), (Shape{Dim::symbol(symbols::kRows, 12), 64}));
  EXPECT_EQ(ops::reshape(heads, {.new_shape = {kB, kS, -1}}).shape(), (Shape{kB, kS, 768}));
  const Dim p = g.symbols().named("p");
  const Value x = input(g, {p, kS, kB}), y = input(g, {kB, p, kS});
  EXPECT_EQ(ops::reshape(x, {.new_shape = {-1}}).shape(), ops::reshape(y, {.new_shape = {-1}}).shape());
  const Value flat = ops::reshape(x, {.new_shape = {-1}});
  EXPECT_EQ(ops::reshape(flat, {.new_shape = {kS, -1}}).shape(), ops::reshape(y, {.new_shape = {kS, -1}}).shape());
  EXPECT_EQ(ops::reshape(flat, {.new_shape = {kS, p, -1}}).shape(), (Shape{kS, p, kB}));
}

TEST(ReshapeInfer, AffineDimsStayWhole) {
  Graph g;
  const Value x = input(g, {Dim::symbol(3, 1, 1), 6});
  EXPECT_EQ(ops::reshape(x, {.new_shape = {-1, 3}}).shape(), (Shape{Dim::symbol(3, 2, 2), 3}));
  EXPECT_EQ(ops::reshape(x, {.new_shape = {Dim::symbol(3, 2, 2), -1}}).shape(), (Shape{Dim::symbol(3, 2, 2), 3}));
  EXPECT_THROW(ops::reshape(x, {.new_shape = {Dim::symbol(3, 1, 1), 4}}), Error);
}

TEST(ReshapeInfer, WhatSymbolsHideIsCheckedWhenTheyAreBound) {
  Graph g;
  const Value x = input(g, {kS, 3});
  const Value y = ops::reshape(x, {.new_shape = {-1, 4}});
  g.output(y, "y");
  EXPECT_EQ(bind(g, {{symbols::kSeq, 8}}).type(y.id()).shape, (Shape{6, 4}));
  EXPECT_THROW(bind(g, {{symbols::kSeq, 2}}), Error);
  Graph h;
  h.output(ops::reshape(input(h, {kS, 3}), {.new_shape = {5, 3}}), "y");
  EXPECT_NO_THROW(bind(h, {{symbols::kSeq, 5}}));
  EXPECT_THROW(bind(h, {{symbols::kSeq, 6}}), Error);
}

TEST(ConcatInfer, SymbolicSizesAddUp) {
  Graph g;
  const Value past = input(g, {kB, kPast, 64}), one = input(g, {kB, 1, 64}), now = input(g, {kB, kS, 64});
  EXPECT_EQ(ops::concat(Values{past, one}, {.axis = 1}).shape(), (Shape{kB, Dim::symbol(symbols::kPastSeq, 1, 1), 64}));
  EXPECT_EQ(ops::concat(Values{past, past}, {.axis = 1}).shape(), (Shape{kB, Dim::symbol(symbols::kPastSeq, 2), 64}));
  const Value both = ops::concat(Values{past, now}, {.axis = 1});
  g.output(both, "both");
  EXPECT_FALSE(both.shape()[1].is_static());
  EXPECT_EQ(ops::concat(Values{now, past}, {.axis = 1}).shape(), both.shape());  // one sum, one symbol
  EXPECT_EQ(bind(g, {{symbols::kBatch, 2}, {symbols::kPastSeq, 7}, {symbols::kSeq, 3}}).type(both.id()).shape,
            (Shape{2, 10, 64}));
  const Value with_one = ops::concat(Values{one, past, now}, {.axis = 1});
  EXPECT_EQ(with_one.shape()[1], g.symbols().add(both.shape()[1], 1));
}

TEST(ConcatInfer, AKnownSizeOffTheAxisWins) {
  Graph g;
  const Value a = input(g, {kB, 2}), b = input(g, {4, 3});
  EXPECT_EQ(ops::concat(Values{a, b}, {.axis = 1}).shape(), (Shape{4, 5}));
  EXPECT_THROW(ops::concat(Values{a, input(g, {kS, 3})}, {.axis = 1}), Error);
}

TEST(NarrowInfer, SymbolicBoundsAreCheckedAsEarlyAsPossible) {
  Graph g;
  const Value x = input(g, {kS, 8});
  EXPECT_EQ(ops::narrow(x, {.axis = 0, .start = Dim::symbol(1, 1, -1), .len = 1}).shape(), (Shape{1, 8}));
  EXPECT_EQ(ops::narrow(x, {.axis = 0, .start = 1, .len = Dim::symbol(1, 1, -1)}).shape(),
            (Shape{Dim::symbol(1, 1, -1), 8}));
  EXPECT_THROW(ops::narrow(x, {.axis = 0, .start = 2, .len = Dim::symbol(1, 1, -1)}), Error);
  const Value y = ops::narrow(x, {.axis = 0, .start = 0, .len = 4});
  g.output(y, "y");
  EXPECT_EQ(bind(g, {{symbols::kSeq, 4}}).type(y.id()).shape, (Shape{4, 8}));
  EXPECT_THROW(bind(g, {{symbols::kSeq, 3}}), Error);  // never clamped (spec 10, Q7)
}

TEST(ExpandInfer, SymbolicTargets) {
  Graph g;
  const Value x = input(g, {kB, 1, 8});
  EXPECT_EQ(ops::expand(x, {.target_shape = {kB, kS, 8}}).shape(), (Shape{kB, kS, 8}));
  EXPECT_EQ(ops::expand(x, {.target_shape = {-1, kS, -1}}).shape(), (Shape{kB, kS, 8}));
  EXPECT_THROW(ops::expand(x, {.target_shape = {kS, 1, 8}}), Error);
  const Value y = ops::expand(x, {.target_shape = {4, 2, 8}});
  g.output(y, "y");
  EXPECT_NO_THROW(bind(g, {{symbols::kBatch, 1}, {symbols::kSeq, 2}}));
  EXPECT_NO_THROW(bind(g, {{symbols::kBatch, 4}, {symbols::kSeq, 2}}));
  EXPECT_THROW(bind(g, {{symbols::kBatch, 3}, {symbols::kSeq, 2}}), Error);
}

TEST(ShapeInfer, TransposeAndResizeCarrySymbols) {
  Graph g;
  const Value x = input(g, {kB, 3, kS, 4});
  EXPECT_EQ(ops::transpose(x, {.perm = {0, 2, 3, 1}}).shape(), (Shape{kB, kS, 4, 3}));
  EXPECT_EQ(ops::resize_nearest_2x(x).shape(), (Shape{kB, 3, Dim::symbol(symbols::kSeq, 2), 8}));
}

TEST(ShapeViews, LieInsideTheOperand) {
  EXPECT_EQ(view_offset(ops::reshape, {2, 3}, {.new_shape = {6}}), 0);
  EXPECT_EQ(view_offset(ops::narrow, {4, 3}, {.axis = 0, .start = 2, .len = 2}), 6);
  EXPECT_EQ(view_offset(ops::narrow, {1, 4, 3}, {.axis = 1, .start = 2, .len = 2}), 6);
  EXPECT_EQ(view_offset(ops::narrow, {2, 4, 3}, {.axis = 1, .start = 2, .len = 2}), std::nullopt);
  EXPECT_EQ(view_offset(ops::expand, {4, 3}, {.target_shape = {1, 1, 4, 3}}), 0);
  EXPECT_EQ(view_offset(ops::expand, {1, 3}, {.target_shape = {4, 3}}), std::nullopt);
  EXPECT_EQ(view_offset(ops::transpose, {4, 1, 3}, {.perm = {1, 0, 2}}), 0);
  EXPECT_EQ(view_offset(ops::transpose, {4, 1, 3}, {.perm = {0, 2, 1}}), 0);
  EXPECT_EQ(view_offset(ops::transpose, {4, 1, 3}, {.perm = {2, 0, 1}}), std::nullopt);
}

}  // namespace rlx::test
