// A KV cache in pages, judged by attention on the same rows one after the other.
#include <algorithm>
#include <cstring>

#include "attention_cases.h"
#include "core/kv_rows.h"

namespace rlx::test {

namespace {

using F = ops::KvFormat;
using M = ops::MaskKind;

struct PagedProblem {
  int64_t hkv, sq, pages, tokens;  // of the pool
  std::vector<std::vector<int32_t>> table;
  std::vector<int32_t> lengths;
  ops::PagedAttentionAttrs attrs;
};

// The rows of a pool, decoded.
Tensor decoded(const Tensor& pool, F format, int64_t width) {
  if (format == F::kFloat) return pool.cast(DType::F32);
  std::vector<int64_t> sizes = pool.sizes();
  const int64_t words = sizes[3], rows = pool.num_elements() / words;
  sizes[3] = width;
  Tensor out(DType::F32, sizes);
  for (int64_t r = 0; r < rows; ++r)
    decode_q8_row(pool.values<uint32_t>().data() + r * words, width, out.mutable_values<float>().data() + r * width);
  return out;
}

Tensor encoded(const Tensor& rows) {
  std::vector<int64_t> sizes = rows.sizes();
  const int64_t width = sizes[3], count = rows.num_elements() / width, words = q8_row_words(width);
  sizes[3] = words;
  Tensor out(DType::U32, sizes);
  for (int64_t r = 0; r < count; ++r)
    encode_q8_row(rows.values<float>().data() + r * width, width, out.mutable_values<uint32_t>().data() + r * words);
  return out;
}

// [B, capacity, heads, width]: each sequence's rows in their order; zeros where it has none.
Tensor gathered(const Tensor& pool, const Tensor& table, const Tensor& lengths) {
  const auto& p = pool.sizes();
  const int64_t tokens = p[1], row = p[2] * p[3], columns = table.sizes()[1];
  Tensor out(DType::F32, {table.sizes()[0], columns * tokens, p[2], p[3]});
  for (int64_t b = 0; b < table.sizes()[0]; ++b)
    for (int64_t t = 0; t < static_cast<int64_t>(lengths.at(b)); ++t) {
      const auto page = static_cast<int64_t>(table.at(b * columns + t / tokens));
      std::memcpy(out.mutable_values<float>().data() + (b * columns * tokens + t) * row,
                  pool.values<float>().data() + (page * tokens + t % tokens) * row,
                  static_cast<size_t>(row) * sizeof(float));
    }
  return out;
}

Tensor table_of(const std::vector<std::vector<int32_t>>& rows) {
  std::vector<int32_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::i32({static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())}, flat);
}

// Grouped-query heads, ragged lengths, prefixes that sequences share, entries beyond the length that are no pages;
// kernels for few rows and for many, parts of the keys.
std::vector<PagedProblem> paged_problems() {
  std::vector<std::vector<int32_t>> long_table(2);
  for (int32_t i = 0; i < 40; ++i) {
    long_table[0].push_back(39 - i);
    long_table[1].push_back(i % 5);
  }
  return {
      {2, 1, 6, 4, {{3, 1, 9}, {3, 0, -1}, {5, 7, 7}}, {8, 6, 1}, {.num_heads = 4, .head_dim = 16}},
      {2,
       3,
       6,
       4,
       {{3, 1, 9}, {3, 0, -1}, {5, 7, 7}},
       {8, 6, 3},
       {.num_heads = 4, .head_dim = 6, .mask_kind = M::kCausal}},
      {1,
       2,
       5,
       3,
       {{4, 0, 2}, {4, 0, 99}},
       {8, 5},
       {.num_heads = 3, .head_dim = 5, .mask_kind = M::kSlidingWindow, .window = 2}},
      // Rows without keys.
      {1, 3, 3, 5, {{2, 0}, {1, 1}}, {2, 0}, {.num_heads = 1, .head_dim = 4, .mask_kind = M::kCausal}},
      {2, 1, 40, 16, long_table, {640, 300}, {.num_heads = 4, .head_dim = 32, .attn_logit_softcap = 2.0f}},
      {1,
       2,
       40,
       16,
       long_table,
       {600, 17},
       {.num_heads = 8, .head_dim = 32, .mask_kind = M::kCausal, .score_scale = 0.2f}},
      {1, 40, 40, 16, long_table, {600, 44}, {.num_heads = 2, .head_dim = 32, .mask_kind = M::kCausal}},  // many rows
      {1, 4, 40, 16, long_table, {100, 44}, {.num_heads = 6, .head_dim = 16}},                            // 24 rows
  };
}

}  // namespace

OP_CASES(paged_attention) {
  // Every problem in f32 and in one other way: a software adapter takes a second to make each kernel.
  constexpr std::tuple<DType, DType, F> kTypes[] = {
      {DType::F32, DType::F16, F::kFloat}, {DType::F16, DType::F16, F::kFloat}, {DType::BF16, DType::F32, F::kFloat}};
  for (size_t n = 0; const PagedProblem& p : paged_problems()) {
    std::tuple<DType, DType, F> other = kTypes[n++ % 3];
    if (p.attrs.head_dim % kQ8Block == 0) other = {DType::F32, DType::U32, F::kQ8};
    for (const auto& [type, pool_type, format] : {std::tuple{DType::F32, DType::F32, F::kFloat}, other}) {
      ops::PagedAttentionAttrs attrs = p.attrs;
      attrs.format = format;
      const auto batch = static_cast<int64_t>(p.table.size());
      const std::vector<int64_t> sizes = {p.pages, p.tokens, p.hkv, attrs.head_dim};
      const auto pool = [&] { return format == F::kQ8 ? encoded(random(sizes)) : random(sizes, pool_type); };
      const Tensor k = pool(), v = pool();
      add({random({batch, p.sq, attrs.num_heads, attrs.head_dim}, type), k, v, table_of(p.table),
           Tensor::i32({batch}, p.lengths)},
          attrs)
          .check([attrs](const Tensors& in, const Tensors& out) {
            const Tensors dense = {in[0].cast(DType::F32),
                                   gathered(decoded(in[1], attrs.format, attrs.head_dim), in[3], in[4]),
                                   gathered(decoded(in[2], attrs.format, attrs.head_dim), in[3], in[4]), in[4]};
            ASSERT_EQ(out[0].type(), in[0].type());
            EXPECT_TRUE(near(out[0].cast(DType::F32), run(ops::attention, dense, attrs.dense())[0],
                             in[0].dtype() == DType::F16    ? kHalf
                             : in[0].dtype() == DType::BF16 ? kBFloat
                                                            : kAccumulation));
          });
    }
  }

  const ops::PagedAttentionAttrs a = {.num_heads = 2, .head_dim = 4};
  const auto but = [&](auto change) {
    ops::PagedAttentionAttrs b = a;
    change(b);
    return b;
  };
  const Tensor q = random({1, 1, 2, 4}), pool = random({3, 2, 1, 4}), table = Tensor::i32({1, 2}, {2, 0});
  const auto length = [](int32_t n) { return Tensor::i32({1}, {n}); };
  // Scores of -inf are masked keys, also where there are no others (Q22).
  add({Tensor::f32({1, 1, 1, 2}, {-INFINITY, 1}), Tensor::f32({1, 2, 1, 2}, {1, 2, 3, 4}),
       Tensor::f32({1, 2, 1, 2}, {5, 6, 7, 8}), Tensor::i32({1, 1}, {0}), length(2)},
      {.num_heads = 1, .head_dim = 2})
      .expect({Tensor::f32({1, 1, 1, 2}, {0, 0})}, kExact);
  add_error({q, pool, pool, table, length(5)}, a, "Tokens 0 … 5 of batch 0 do not fit its pages (4)");
  add_error({q, pool, pool, table, length(-1)}, a, "do not fit its pages (4)");
  add_error({q, pool, pool, Tensor::i32({1, 2}, {0, 3}), length(3)}, a, "Page 3 of batch 0 is outside the pool (3)");
  add_error({q, pool, pool, Tensor::i32({1, 2}, {-1, 0}), length(3)}, a, "Page -1 of batch 0 is outside the pool (3)");
  add_error({q, pool, pool, table, length(1)}, but([](auto& b) { b.mask_kind = M::kBias; }),
            "Mask kind bias needs keys");
  add_error({q, pool, pool, table, length(1)}, but([](auto& b) { b.num_heads = 3; }),
            "Heads of the query and num_heads");
  add_error({q, pool, pool, table, length(1)}, but([](auto& b) { b.format = F::kQ8; }), "is not a multiple of 32");
  add_error({random({1, 1, 2, 32}), random({3, 2, 1, 32}), random({3, 2, 1, 32}), table, length(1)},
            {.num_heads = 2, .head_dim = 32, .format = F::kQ8}, "Pool dtype (f32) is not u32");
  add_error({q, random({3, 2, 3, 4}), random({3, 2, 3, 4}), table, length(1)}, a, "do not divide num_heads (2)");
  add_error({q, pool, random({3, 2, 1, 4}, DType::F16), table, length(1)}, a, "differ");
  add_error({q, pool, pool, random({1, 2}), length(1)}, a, "Page table dtype (f32) is not i32");
  add_error({q, pool, pool, Tensor::i32({2, 1}, {0, 0}), length(1)}, a, "Batch sizes of the page table and the rows");
  add_error({q, Tensor(DType::F32, {0, 2, 1, 4}), Tensor(DType::F32, {0, 2, 1, 4}), table, length(1)}, a,
            "has no pages");
}

OP_CASES(paged_kv_append) {
  // Two sequences of other lengths, the second across a page's end; the first shares its full page.
  const Tensor table = Tensor::i32({2, 3}, {2, 1, 77, 2, 0, 4}), lengths = Tensor::i32({2}, {2, 3});
  const auto at = [](const Tensor& t, int64_t page, int64_t token, int64_t h, int64_t d) {
    const auto& n = t.sizes();
    return t.at(((page * n[1] + token) * n[2] + h) * n[3] + d);
  };
  for (const auto& [type, pool_type] : {std::pair{DType::F32, DType::F32},
                                        {DType::F16, DType::F16},
                                        {DType::F32, DType::F16},
                                        {DType::BF16, DType::F32},
                                        {DType::F64, DType::F64}})
    for (const int64_t width : {3, 8})
      add({random({5, 2, 2, width}, pool_type), random({2, 2, 2, width}, type), table, lengths})
          .check([at](const Tensors& in, const Tensors& out) {
            const Tensor rows = in[1].cast(in[0].dtype());
            Tensor expected = in[0].clone();
            const size_t bytes = rows.bytes().size() / 4;
            // Tokens 2 and 3 of the first are page 1; 3 and 4 of the second: page 0, slot 1, and page 4, slot 0.
            const int64_t slots[] = {1 * 2, 1 * 2 + 1, 0 * 2 + 1, 4 * 2};
            for (size_t i = 0; i < 4; ++i)
              std::memcpy(expected.mutable_bytes().data() + static_cast<size_t>(slots[i]) * bytes,
                          rows.bytes().data() + i * bytes, bytes);
            EXPECT_EQ(out[0], expected);
            EXPECT_EQ(at(out[0], 4, 0, 1, 2), at(rows, 1, 1, 1, 2));
          });
  // Quantised: multiples of a power of two whose largest is 127 are kept exactly.
  for (const int64_t width : {32, 64, 96})
    for (const DType type : {DType::F32, DType::F16}) {
      Tensor rows = integers({2, 2, 3, width}, -126, 126).cast(DType::F32);
      auto values = rows.mutable_values<float>();
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % 32 == 5) values[i] = i % 64 == 5 ? 127 : -127;
        values[i] *= i / 32 % 4 == 3 ? 0 : i / 32 % 2 == 0 ? 0.25f : 8.0f;
      }
      add({Tensor(DType::U32, {5, 2, 3, q8_row_words(width)}), rows.cast(type), table, lengths}, {.format = F::kQ8})
          .check([width](const Tensors& in, const Tensors& out) {
            const Tensor back = decoded(out[0], F::kQ8, width), given = in[1].cast(DType::F32);
            const int64_t row = 3 * width, slots[] = {2, 3, 1, 8};
            for (size_t i = 0; i < 4; ++i)
              for (int64_t x = 0; x < row; ++x)
                ASSERT_EQ(back.at(slots[i] * row + x), given.at(static_cast<int64_t>(i) * row + x)) << i << " " << x;
          });
    }
  // Any values: half a step of their block away at most. No case, since a GPU divides by other roundings.
  const Tensor any = random({1, 1, 1, 64});
  const Tensor back = decoded(encoded(any), F::kQ8, 64);
  for (int64_t block = 0; block < 2; ++block) {
    double largest = 0;
    for (int64_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(any.at(block * 32 + i)));
    for (int64_t i = 0; i < 32; ++i)
      EXPECT_NEAR(back.at(block * 32 + i), any.at(block * 32 + i), largest * (0.5 / 127 + 1e-3));
  }

  const Tensor pool = random({3, 2, 1, 4}), row = random({1, 2, 1, 4}), own = Tensor::i32({1, 2}, {2, 0});
  add({pool, Tensor(DType::F32, {1, 0, 1, 4}), own, Tensor::i32({1}, {4})}).expect({pool}, kExact);  // nothing new
  add_error({pool, row, own, Tensor::i32({1}, {3})}, {}, "Tokens 3 … 5 of batch 0 do not fit its pages (4)");
  add_error({pool, row, Tensor::i32({1, 2}, {2, 3}), Tensor::i32({1}, {2})}, {}, "Page 3 of batch 0 is outside");
  add_error({pool, row, Tensor(DType::I32, {1, 0}), Tensor::i32({1}, {0})}, {}, "Tokens 0 … 2 of batch 0 do not fit");
  add_error({pool, random({1, 2, 2, 4}), own, Tensor::i32({1}, {0})}, {}, "Heads of the pool and of the rows");
  add_error({pool, random({1, 2, 1, 5}), own, Tensor::i32({1}, {0})}, {}, "Row sizes of the pool and of its format");
  add_error({pool, row, own, Tensor::i32({2}, {0, 0})}, {}, "Length shape ([2]) is not [1]");
}

}  // namespace rlx::test
