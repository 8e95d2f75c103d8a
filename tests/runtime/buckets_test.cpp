#include "rlx/buckets.h"

#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"

namespace rlx::test {

static const Dim kSeq = Dim::symbol(symbols::kSeq);
static const CompileOptions kReference = {.device = "reference", .verify_plan = true, .poison = true};

TEST(Buckets, PowersOfTwoCoverTheRange) {
  const std::vector<Bucket> ladder = power_of_two_ladder(8, 256);
  EXPECT_EQ(ladder.front(), (Bucket{1, 8}));
  EXPECT_EQ(ladder[1], (Bucket{9, 16}));
  EXPECT_EQ(ladder.back(), (Bucket{129, 256}));
  EXPECT_EQ(power_of_two_ladder(1, 1), (std::vector<Bucket>{{1, 1}}));
  EXPECT_EQ(power_of_two_ladder(3, 5), (std::vector<Bucket>{{1, 4}, {5, 8}}));
  EXPECT_ERROR(power_of_two_ladder(0, 4), kInvalid, "Bucket sizes (0 to 4)");
}

// A decoder layer's shape: matmul, rope, causal attention over the rows themselves, norm; batch 1.
static Graph attention_graph() {
  Graph g;
  const Value x = g.input("x", {{1, kSeq, 8}, DType::F32});
  const Value cos = g.param("cos", {{64, 2}, DType::F32}), sin = g.param("sin", {{64, 2}, DType::F32});
  const auto heads = [&](const std::string& name) {
    return ops::reshape(ops::matmul(x, g.param(name, {{8, 8}, DType::F32})), {.new_shape = {1, kSeq, 2, 4}});
  };
  const ops::RopeAttrs rotary{.head_dim = 4, .layout = ops::AttentionLayout::kBshd};
  const Value q = ops::rope(heads("q"), cos, sin, rotary), k = ops::rope(heads("k"), cos, sin, rotary);
  const Value a = ops::attention(
      q, k, heads("v"),
      {.num_heads = 2, .head_dim = 4, .layout = ops::AttentionLayout::kBshd, .mask_kind = ops::MaskKind::kCausal});
  const Value y = x + ops::reshape(a, {.new_shape = {1, kSeq, 8}});
  g.output(ops::layer_norm(y, g.param("gamma", {{8}, DType::F32}), g.param("beta", {{8}, DType::F32})), "y");
  g.output(g.dim_value(kSeq), "rows");
  return g;
}

TEST(Buckets, AnySizeGivesWhatTheGraphCompiledForItGives) {
  const Graph graph = attention_graph();
  BucketedExecutable bucketed(graph, symbols::kSeq, power_of_two_ladder(4, 32), kReference);
  Executable exact = compile(graph, kReference);
  Rng rng(11);
  for (const Port& p : exact.params()) {
    const Tensor value = rng.tensor(p.type.shape.sizes());
    exact.set_param(p.name, value);
    bucketed.set_param(p.name, value);
  }
  for (const int64_t seq : {5, 1, 4, 8, 32, 17, 7, 3}) {
    const Tensor x = rng.tensor({1, seq, 8});
    NamedTensors a = bucketed.run({{"x", x}}), b = exact.run({{"x", x}});
    EXPECT_EQ(a["y"], b["y"]) << seq;
    EXPECT_EQ(a["rows"], b["rows"]) << seq;
  }
  EXPECT_EQ(bucketed.compiled(), 3);  // 1..4, 5..8 and 17..32; 9..16 is not used
  EXPECT_EQ(bucketed.stats().full_extent_runs, 0);
}

TEST(Buckets, SaysWhatItCannotDo) {
  BucketedExecutable bucketed(attention_graph(), symbols::kSeq, {{1, 4}, {7, 8}}, kReference);
  EXPECT_ERROR(bucketed.run({{"x", Tensor(DType::F32, {1, 9, 8})}}), kInvalid,
               "Size (9) of symbol ?1 is in no bucket; they end at 8");
  EXPECT_ERROR(bucketed.run({{"x", Tensor(DType::F32, {1, 5, 8})}}), kInvalid, "Size (5) of symbol ?1 is in no bucket");
  EXPECT_ERROR(bucketed.run({{"y", Tensor(DType::F32, {1, 9, 8})}}), kInvalid, "There is no input 'y'");
  EXPECT_ERROR(bucketed.run({}), kInvalid, "No input has a size of symbol ?1");
  EXPECT_ERROR(BucketedExecutable(attention_graph(), symbols::kSeq, {{1, 4}, {4, 8}}, kReference), kInvalid,
               "Bucket 1 (4 to 8)");
  Graph g;
  g.state("s", {{1}, DType::F32});
  EXPECT_ERROR(BucketedExecutable(g, 1, {{1, 4}}, kReference), kInvalid, "State 's' cannot be shared by buckets");
}

// A KV cache as states: appending padded rows must not reach the cache, with batch 2 in front of the rows (D43).
TEST(Buckets, PaddedRowsNeverEnterAState) {
  Graph g;
  const Value rows = g.input("rows", {{2, kSeq, 3}, DType::F32});
  const Value cache = g.state("cache", {{2, 10, 3}, DType::F32}), len = g.state("len", {{2}, DType::I32});
  const Value next = ops::kv_append(cache, rows, len);
  g.update(cache, next);
  g.update(len, len + g.dim_value(kSeq));
  g.output(ops::neg(rows), "y");
  Executable exe =
      compile(g, {.device = "reference", .dims = {{symbols::kSeq, 4}}, .verify_plan = true, .poison = true});
  Rng rng(2);
  const Tensor first = rng.tensor({2, 4, 3}), second = rng.tensor({2, 4, 3});
  exe.set_active_extent(3, 4);
  exe.run({{"rows", first}});
  exe.set_active_extent(1, 4);
  exe.run({{"rows", second}});
  EXPECT_EQ(exe.read_state("len"), Tensor::i32({2}, {4, 4}));
  const Tensor state = exe.read_state("cache");
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 10; ++t)
      for (int64_t d = 0; d < 3; ++d) {
        const double expected = t < 3 ? first.at((b * 4 + t) * 3 + d) : t == 3 ? second.at(b * 4 * 3 + d) : 0.0;
        EXPECT_EQ(state.at((b * 10 + t) * 3 + d), expected) << b << " " << t << " " << d;
      }
  EXPECT_EQ(exe.stats().full_extent_runs, 2);  // neg with a batch in front of the rows runs on all of them
}

}  // namespace rlx::test
