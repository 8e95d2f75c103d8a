#include "rlx/shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "rlx/error.h"
#include "support/expect_error.h"
#include "support/random.h"

namespace rlx {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
Dim sym(uint32_t id, int64_t scale = 1, int64_t offset = 0) { return Dim::symbol(id, scale, offset); }

TEST(Dim, Text) {
  EXPECT_EQ(str(Dim(384)), "384");
  EXPECT_EQ(str(sym(1)), "?1");
  EXPECT_EQ(str(sym(1, 12)), "?1*12");
  EXPECT_EQ(str(sym(3, 1, 1)), "?3+1");
  EXPECT_EQ(str(sym(3, 1, -1)), "?3-1");
  EXPECT_EQ(str(sym(3, 2, -4)), "?3*2-4");
}

TEST(Dim, OnlyAStaticOneHasAValue) {
  EXPECT_EQ(Dim(3).value(), 3);
  EXPECT_TRUE(Dim(3).is(3));
  EXPECT_FALSE(sym(3).is(0));
  EXPECT_ERROR(sym(1, 2, 1).value(), kInvalid, "Size ?1*2+1 is not bound.");
  EXPECT_ERROR(sym(1, 0), kInvalid, "Scale (0) of symbol ?1 is not positive.");
  EXPECT_ERROR(sym(1, -1), kInvalid, "not positive");
}

TEST(Dim, BindingEvaluatesTheSymbol) {
  EXPECT_EQ(sym(1, 12, 1).bind({{1, 3}}), Dim(37));
  EXPECT_EQ(sym(1).bind({{2, 3}}), sym(1)) << "an unknown symbol stays";
  EXPECT_EQ(Dim(5).bind({{1, 3}}), Dim(5));
  EXPECT_ERROR(sym(1, 1, -4).bind({{1, 3}}), kInvalid, "Size ?1-4 is negative (-1) where ?1 is 3.");
  EXPECT_ERROR(sym(1, kMax).bind({{1, 2}}), kInvalid, "does not fit 64 bits");
}

TEST(DimBinding, HoldsPairs) {
  EXPECT_EQ(DimBinding::batch_seq(2, 7), (DimBinding{{symbols::kBatch, 2}, {symbols::kSeq, 7}}));
  EXPECT_EQ(DimBinding::batch_past_seq(2, 7), (DimBinding{{symbols::kBatch, 2}, {symbols::kPastSeq, 7}}));
  DimBinding b = DimBinding::batch_seq(2, 7);
  b.set(symbols::kSeq, 8);
  EXPECT_EQ(b.find(symbols::kSeq), 8);
  EXPECT_EQ(b.find(9), std::nullopt);
  EXPECT_NE(b, DimBinding::batch_seq(2, 7));
}

TEST(Shape, Text) {
  EXPECT_EQ(str(Shape{}), "[]");
  EXPECT_EQ(str(TensorType{{4, sym(1), 384}, DType::F32}), "[4, ?1, 384] f32");
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ((Shape{2, 3}.num_elements()), 6);
  EXPECT_EQ((Shape{0, kMax, kMax}.num_elements()), 0);
  EXPECT_EQ((Shape{kMax, kMax, 0}.num_elements()), 0);
  EXPECT_EQ((Shape{kMax, 2}.try_elements()), std::nullopt);
  EXPECT_EQ((Shape{sym(1), 2}.try_elements()), std::nullopt);
  EXPECT_ERROR((Shape{kMax, 2}.num_elements()), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR((Shape{sym(1), 2}.num_elements()), kInvalid, "Shape [?1, 2] has a size that is not bound.");
  EXPECT_ERROR((Shape{2, -3}.num_elements()), kInvalid, "Size (-3) of shape [2, -3] is negative.");
  EXPECT_EQ((TensorType{{2, 3}, DType::F64}.size_bytes()), 48);
  EXPECT_ERROR((TensorType{{kMax / 4}, DType::F64}.size_bytes()), kInvalid, "does not fit 64 bits");
}

TEST(Shape, ListsItsSymbolsSortedAndOnce) {
  EXPECT_EQ((Shape{sym(5), 3, sym(1, 2), sym(5, 1, 1)}.dynamic_symbols()), (std::vector<uint32_t>{1, 5}));
  EXPECT_EQ((Shape{sym(5), 3, sym(1)}.bind({{5, 2}})), (Shape{2, 3, sym(1)}));
  EXPECT_ERROR((Shape{sym(5)}.sizes()), kInvalid, "Size ?5 is not bound.");
}

TEST(Shape, AxesMayCountFromTheEnd) {
  EXPECT_EQ(normalize_axis(-3, 3), 0);
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(2, 3), 2);
  EXPECT_ERROR(normalize_axis(3, 3), kInvalid, "Axis (3) is out of range for rank (3).");
  EXPECT_ERROR(normalize_axis(-4, 3), kInvalid, "Axis (-4)");
  EXPECT_ERROR(normalize_axis(0, 0), kInvalid, "rank (0)");
}

TEST(Checked, ArithmeticThrowsInsteadOfWrapping) {
  EXPECT_EQ(checked_add(kMax, -1), kMax - 1);
  EXPECT_ERROR(checked_add(kMax, 1), kInvalid, "does not fit 64 bits");
  EXPECT_EQ(checked_sub(-1, kMin), kMax);
  EXPECT_ERROR(checked_sub(0, kMin), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(checked_mul(kMin, -1), kInvalid, "does not fit 64 bits");
  EXPECT_EQ(product(std::vector<int64_t>{}), 1);
  EXPECT_ERROR(product(std::vector<int64_t>{kMax, 2}), kInvalid, "does not fit 64 bits");
}

TEST(SymbolTable, NamesGetIdsFrom16InOrderOfFirstUse) {
  SymbolTable t;
  EXPECT_EQ(t.named("batch"), sym(16));
  EXPECT_EQ(t.named("tokens"), sym(17));
  EXPECT_EQ(t.named("batch"), sym(16));
  EXPECT_EQ(*t.find_name(17), "tokens");
  EXPECT_EQ(t.find_name(18), nullptr);
  t.note_used(Shape{sym(30), sym(3)});
  EXPECT_EQ(t.fresh(), sym(31));
  t.set_name(40, "past");
  EXPECT_EQ(t.fresh(), sym(41));
  EXPECT_EQ(t.named("past"), sym(40));
}

TEST(SymbolTable, RunsOutOfIdsWithAnError) {
  SymbolTable t;
  t.note_used(Shape{sym(std::numeric_limits<uint32_t>::max() - 1)});
  EXPECT_EQ(t.fresh(), sym(std::numeric_limits<uint32_t>::max()));
  EXPECT_ERROR(t.fresh(), kInvalid, "The last symbol id (4294967295) is in use already.");
}

TEST(SymbolTable, AffineArithmeticStaysInOneSymbol) {
  SymbolTable t;
  EXPECT_EQ(t.add(2, 3), Dim(5));
  EXPECT_EQ(t.add(sym(1), 3), sym(1, 1, 3));
  EXPECT_EQ(t.add(3, sym(1)), sym(1, 1, 3));
  EXPECT_EQ(t.add(sym(1, 2, 1), sym(1, 3, -4)), sym(1, 5, -3));
  EXPECT_EQ(t.sub(sym(1, 2, 1), 1), sym(1, 2));
  EXPECT_EQ(t.sub(sym(1, 3, 1), sym(1, 3)), Dim(1)) << "the symbol cancels";
  EXPECT_EQ(t.sub(sym(1, 3), sym(1)), sym(1, 2));
  EXPECT_EQ(t.mul(sym(1, 2, 1), 3), sym(1, 6, 3));
  EXPECT_EQ(t.mul(0, sym(1)), Dim(0));
  EXPECT_EQ(t.mul(sym(1), 1), sym(1));
  EXPECT_EQ(t.div(7, 2), Dim(3));
  EXPECT_EQ(t.div(-7, 2), Dim(-4)) << "floor";
  EXPECT_EQ(t.div(sym(1, 6, 3), 3), sym(1, 2, 1));
  EXPECT_EQ(t.div(sym(1, 2, -1), 2), sym(1, 1, -1)) << "floor((2s - 1) / 2) = s - 1";
  EXPECT_EQ(t.div(sym(1, 6), sym(1)), Dim(6));
  EXPECT_EQ(t.div(sym(1, 2, 1), sym(1, 2, 1)), Dim(1));
  EXPECT_TRUE(t.derived().empty());
}

TEST(SymbolTable, ArithmeticThatHasNoAnswerIsAnError) {
  SymbolTable t;
  EXPECT_ERROR(t.sub(sym(1), sym(2)), kInvalid, "Size ?1 - ?2");
  EXPECT_ERROR(t.sub(sym(1), sym(1, 2)), kInvalid, "positive factors");
  EXPECT_ERROR(t.sub(3, sym(1)), kInvalid, "Size 3 - ?1");
  EXPECT_ERROR(t.sub(3, kMin), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(t.sub(sym(1, 1, 0), sym(1, 1, kMin)), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(t.add(sym(1, kMax), sym(1)), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(t.mul(sym(1, kMax), 2), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(t.div(sym(1), 0), kInvalid, "Size ?1 is divided by 0.");
  EXPECT_ERROR(t.div(kMin, -1), kInvalid, "is divided by -1.");
}

TEST(SymbolTable, WhatIsNotAffineGetsASymbolOfItsOwnOnce) {
  SymbolTable t;
  EXPECT_EQ(t.mul(sym(symbols::kBatch), sym(symbols::kSeq)), sym(symbols::kRows));
  EXPECT_EQ(t.mul(sym(symbols::kSeq), sym(symbols::kBatch)), sym(symbols::kRows)) << "whatever the order";
  const Dim sum = t.add(sym(3), sym(1));
  EXPECT_EQ(sum, sym(16));
  EXPECT_EQ(t.add(sym(1), sym(3)), sum);
  EXPECT_NE(t.mul(sym(1), sym(3)), sum);
  const Dim q = t.div(sym(1), sym(3));
  EXPECT_NE(t.div(sym(3), sym(1)), q) << "a quotient has an order";
  EXPECT_EQ(t.div(sym(1), sym(3)), q);
  EXPECT_EQ(t.div(sym(1), 2), t.div(sym(1), 2));
  EXPECT_EQ(t.product(std::vector<Dim>{2, sym(0), 3, sym(1)}), t.mul(sym(0, 6), sym(1)));
}

TEST(SymbolTable, AProductDividedByAFactorIsTheOther) {
  SymbolTable t;
  const Dim rows = t.mul(sym(0), sym(1));
  EXPECT_EQ(t.div(rows, sym(1)), sym(0));
  EXPECT_EQ(t.div(rows, sym(0)), sym(1));
  EXPECT_EQ(t.div(t.mul(rows, 4), sym(1)), sym(0, 4));
}

TEST(SymbolTable, ADefinitionNamesEarlierSymbolsOnly) {
  SymbolTable t;
  const Dim sum = t.add(sym(100), sym(200));  // ids the caller chose, never noted
  EXPECT_GT(sum.symbol_id(), 200u);
  t.define(50, {DerivedDim::Kind::kSum, sym(1), sym(3)});
  EXPECT_ERROR(t.define(51, {DerivedDim::Kind::kSum, sym(1), sym(60)}), kInvalid,
               "Symbol ?51 is defined by a later symbol (?60).");
  EXPECT_ERROR(t.define(51, {DerivedDim::Kind::kSum, sym(51), sym(1)}), kInvalid, "later symbol");
}

TEST(SymbolTable, CompleteEvaluatesDefinitions) {
  SymbolTable t;
  const Dim rows = t.mul(sym(0), sym(1)), past = t.add(sym(3), sym(1));
  const Dim half = t.div(past, 2), nested = t.mul(half, rows);
  const DimBinding b = t.complete({{0, 2}, {1, 5}, {3, 6}});
  EXPECT_EQ(rows.bind(b), Dim(10));
  EXPECT_EQ(past.bind(b), Dim(11));
  EXPECT_EQ(half.bind(b), Dim(5)) << "floor";
  EXPECT_EQ(nested.bind(b), Dim(50));
  EXPECT_EQ(nested.bind(t.complete({{0, 2}})), nested) << "half known is unknown";
  EXPECT_NO_THROW(t.complete({{0, 2}, {1, 5}, {symbols::kRows, 10}}));
}

TEST(SymbolTable, CompleteRefusesSizesThatCannotBe) {
  SymbolTable t;
  EXPECT_EQ(t.mul(sym(0), sym(1)), sym(symbols::kRows));
  EXPECT_ERROR(t.complete({{0, 2}, {1, 5}, {symbols::kRows, 11}}), kInvalid,
               "Symbol ?2 is bound to 11, but its definition gives 10.");
  EXPECT_ERROR(t.complete({{0, kMax}, {1, 5}}), kInvalid, "does not fit 64 bits");
  EXPECT_ERROR(t.complete({{9, -1}}), kInvalid, "Symbol ?9 is bound to a negative size (-1).");
  EXPECT_ERROR(t.complete({{0, -2}, {1, -5}}), kInvalid, "negative");
  const Dim q = t.div(sym(3), sym(1));
  EXPECT_ERROR(t.complete({{0, 2}, {1, 0}, {3, 4}}), kInvalid, str("Symbol ", q, " divides ?3 (4) by ?1 (0)."));
  t.define(60, {DerivedDim::Kind::kSum, sym(3), Dim(-9)});
  EXPECT_ERROR(t.complete({{3, 4}}), kInvalid, "Derived symbol ?60 is negative (-5).");
}

// Affine and derived arithmetic gives, once bound, what the same arithmetic on numbers gives.
TEST(SymbolTable, ArithmeticAgreesWithNumbers) {
  test::for_random(300, [](test::Rng& rng) {
    SymbolTable t;
    const DimBinding binding = {{0, rng.integer(1, 9)}, {1, rng.integer(1, 9)}, {3, rng.integer(1, 9)}};
    const uint32_t ids[] = {0, 1, 3};
    std::vector<std::pair<Dim, int64_t>> known;  // the dim, and its number
    for (int i = 0; i < 4; ++i) {
      const uint32_t id = ids[rng.integer(0, 2)];
      const int64_t scale = rng.integer(1, 4), offset = rng.integer(0, 3);
      known.emplace_back(sym(id, scale, offset), *binding.find(id) * scale + offset);
      known.emplace_back(Dim(offset + 1), offset + 1);
    }
    for (int i = 0; i < 12; ++i) {
      const auto [a, x] = known[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(known.size()) - 1))];
      const auto [b, y] = known[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(known.size()) - 1))];
      switch (rng.integer(0, 2)) {
        case 0: known.emplace_back(t.add(a, b), x + y); break;
        case 1:
          if (x < 1'000'000 && y < 1'000'000) known.emplace_back(t.mul(a, b), x * y);
          break;
        default:
          if (y > 0) known.emplace_back(t.div(a, b), x / y);
      }
    }
    const DimBinding complete = t.complete(binding);
    for (const auto& [dim, number] : known) EXPECT_EQ(dim.bind(complete), Dim(number)) << str(dim);
  });
}

// Spec 10, 2.2 with Q5.
TEST(Broadcast, FollowsTheTable) {
  SymbolTable t;
  EXPECT_EQ(broadcast_dim(1, 7, t), Dim(7));
  EXPECT_EQ(broadcast_dim(7, 1, t), Dim(7));
  EXPECT_EQ(broadcast_dim(1, 0, t), Dim(0));
  EXPECT_EQ(broadcast_dim(7, 7, t), Dim(7));
  EXPECT_EQ(broadcast_dim(sym(0), sym(0), t), sym(0));
  EXPECT_EQ(broadcast_dim(1, sym(0), t), sym(0));
  EXPECT_EQ(broadcast_dim(sym(0), 1, t), sym(0));
  EXPECT_TRUE(t.constraints().empty());
  EXPECT_ERROR(broadcast_dim(7, 3, t), kInvalid, "Sizes 7 and 3 do not broadcast.");
  EXPECT_ERROR(broadcast_dim(0, 3, t), kInvalid, "Sizes 0 and 3 do not broadcast.");
  EXPECT_ERROR(broadcast_dim(sym(0), sym(1), t), kInvalid, "Sizes ?0 and ?1 do not broadcast until they are bound.");
  EXPECT_ERROR(broadcast_dim(sym(0), sym(0, 2), t), kInvalid, "until they are bound");
}

TEST(Broadcast, ASymbolWithANumberIsThatNumberAndAConstraint) {
  SymbolTable t;
  EXPECT_EQ(broadcast_dim(sym(0), 7, t), Dim(7));
  EXPECT_EQ(broadcast_dim(7, sym(0), t), Dim(7));
  EXPECT_EQ(t.constraints(), (std::vector<DimConstraint>{{sym(0), 7}})) << "recorded once";
  EXPECT_NO_THROW(t.complete({{0, 7}}));
  EXPECT_NO_THROW(t.complete({{0, 1}}));
  EXPECT_NO_THROW(t.complete({})) << "not known yet";
  EXPECT_ERROR(t.complete({{0, 3}}), kInvalid, "Size ?0 (3) is broadcast with 7, so it must be 1 or 7.");
  EXPECT_ERROR(t.complete({{0, 0}}), kInvalid, "so it must be 1 or 7.");
}

TEST(Broadcast, ShapesAreAlignedAtTheirEnds) {
  SymbolTable t;
  EXPECT_EQ(broadcast_shapes({4, 1, 3}, {5, 1}, t), (Shape{4, 5, 3}));
  EXPECT_EQ(broadcast_shapes({}, {2, sym(1)}, t), (Shape{2, sym(1)}));
  EXPECT_EQ(broadcast_shapes({2, 0}, {1}, t), (Shape{2, 0}));
  EXPECT_ERROR(broadcast_shapes({4, 3}, {4}, t), kInvalid, "while broadcasting [4, 3] with [4]");
}

}  // namespace
}  // namespace rlx
