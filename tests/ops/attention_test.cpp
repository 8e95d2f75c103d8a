#include "attention_cases.h"

namespace rlx::test {

using L = ops::AttentionLayout;
using M = ops::MaskKind;

// Masks of other dtypes, and values that are not finite: where they are masked they do not matter, where they are seen
// they do. Backends are compared with the oracle.
template <class Builder>
static void add_unusual(Builder& b, int64_t queries) {
  const int64_t keys = 300, width = queries == 1 ? 16 : 5;  // few rows have another kernel where the width is even
  const float inf = std::numeric_limits<float>::infinity();
  const ops::AttentionAttrs attrs = {.num_heads = 1, .head_dim = width};
  const auto with = [&](M kind, int64_t window = 0) {
    ops::AttentionAttrs a = attrs;
    a.mask_kind = kind;
    a.window = window;
    return a;
  };
  const auto spoiled = [&](int64_t seq, std::initializer_list<int64_t> rows, float value) {
    Tensor t = b.random({1, 1, seq, width});
    for (const int64_t row : rows)
      t.template mutable_values<float>()[static_cast<size_t>(row * width + row % width)] = value;
    return t;
  };
  const Tensor q = b.random({1, 1, queries, width}), k = b.random({1, 1, keys, width});
  for (const float value : {NAN, inf, -inf}) {
    for (const M kind : {M::kNone, M::kCausal, M::kSlidingWindow})
      for (const std::initializer_list<int64_t>& rows : {std::initializer_list<int64_t>{3}, {250, 297}, {299}}) {
        b.add({q, k, spoiled(keys, rows, value)}, with(kind, 20));
        b.add({q, spoiled(keys, rows, value), k}, with(kind, 20));
      }
    b.add({spoiled(queries, {0, queries - 1}, value), k, k}, attrs);
    // Masked by an operand; a whole block of keys and some rows see nothing.
    std::vector<double> mask;
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j)
        mask.push_back(j == 3 || j == 250 || (j >= 90 && j < 200) || i == 5 || (i + j) % 3 == 0 ? 0 : 1);
    for (const DType dtype : {DType::F32, DType::Bool, DType::I32, DType::F64})
      b.add({q, k, spoiled(keys, {3, 250}, value), Tensor::from_doubles(dtype, {1, queries, keys}, mask)},
            with(M::kCustom));
    b.add({q, spoiled(keys, {3, 250}, value), k, Tensor::from_doubles(DType::F32, {1, queries, keys}, mask)},
          with(M::kCustom));
    for (double& m : mask) m = m == 0 ? -INFINITY : m;
    for (const DType dtype : {DType::F32, DType::F64})
      b.add({q, k, spoiled(keys, {3, 250}, value), Tensor::from_doubles(dtype, {1, queries, keys}, mask)},
            with(M::kBias));
    mask.resize(static_cast<size_t>(keys));
    mask[7] = static_cast<double>(value);
    b.add({q, k, k, Tensor::from_doubles(DType::F32, {1, keys}, mask)}, with(M::kBias));
    b.add({q, k, k, Tensor::from_doubles(DType::F32, {1, keys}, mask)}, with(M::kCustom));
  }
  // Scores of very different size: weights of 0, of keys that are seen all the same.
  const Tensor large = b.random({1, 1, queries, width}, -90, 90);
  b.add({large, k, k}, attrs);
  b.add({large, k, spoiled(keys, {3, 250}, NAN)}, attrs);
}

OP_CASES(attention) {
  for (const AttentionProblem& p : attention_problems())
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
      add(p.operands(rng, dtype), p.attrs).check([p, dtype](const Tensors& in, const Tensors& out) {
        const Tensor* mask = p.mask.empty() ? nullptr : &in[3];
        const Tensor* len = p.kv_len.empty() ? nullptr : &in.back();
        const L l = p.attrs.layout;
        const AttentionResult r = plain_attention(heads_of(in[0], l, p.d()), heads_of(in[1], l, p.d()),
                                                  heads_of(in[2], l, p.d()), mask, len, p.attrs);
        const Heads y = heads_of(out[0], l, p.d());
        const double bound = dtype == DType::F16    ? 2e-3
                             : dtype == DType::BF16 ? 1.6e-2
                             : dtype == DType::F32  ? 1e-6
                                                    : 1e-12;
        ASSERT_EQ(out[0].type(), in[0].type());
        for (size_t i = 0; i < y.v.size(); ++i) ASSERT_NEAR(y.v[i], r.y.v[i], bound) << "element " << i;
        ASSERT_EQ(out[1].type(), (TensorType{{p.b, p.h(), p.sq}, DType::F32}));
        for (size_t i = 0; i < r.lse.size(); ++i) {
          const double lse = out[1].at(static_cast<int64_t>(i));
          ASSERT_TRUE(lse == r.lse[i] || std::fabs(lse - r.lse[i]) < 1e-5) << lse << " is not " << r.lse[i];
        }
      });

  // A window of 0 sees its own key only; a row without keys is 0 with lse -inf.
  const ops::AttentionAttrs one = {.num_heads = 1, .head_dim = 1};
  const auto with = [&](M kind, int64_t window = 0) {
    ops::AttentionAttrs a = one;
    a.mask_kind = kind;
    a.window = window;
    return a;
  };
  const Tensor ones = Tensor::f32({1, 1, 3, 1}, {1, 1, 1}), v = Tensor::f32({1, 1, 3, 1}, {2, 4, 6});
  const float inf = std::numeric_limits<float>::infinity();
  add({ones, ones, v}, one).expect({Tensor::f32({1, 1, 3, 1}, {4, 4, 4})});
  add({ones, ones, v}, with(M::kCausal)).expect({Tensor::f32({1, 1, 3, 1}, {2, 3, 4})});
  add({ones, ones, v}, with(M::kSlidingWindow)).expect({v, Tensor::f32({1, 1, 3}, {1, 1, 1})});
  add({ones, ones, v, Tensor::f32({1, 3, 3}, {0, 0, 0, 0, 1, 0, 0.5f, NAN, 0.49f})}, with(M::kCustom))
      .expect({Tensor::f32({1, 1, 3, 1}, {0, 4, 2}), Tensor::f32({1, 1, 3}, {-inf, 1, 1})}, kExact);
  add({ones, ones, v, Tensor::f32({1, 3, 3}, {-inf, -inf, -inf, -inf, 0, -inf, 0, -inf, -inf})}, with(M::kBias))
      .expect({Tensor::f32({1, 1, 3, 1}, {0, 4, 2}), Tensor::f32({1, 1, 3}, {-inf, 1, 1})}, kExact);
  add({ones, ones, v, Tensor::i32({1, 3}, {0, 1, 0})}, with(M::kCustom))
      .expect({Tensor::f32({1, 1, 3, 1}, {4, 4, 4})}, kExact);
  add({ones, ones, v, Tensor::from_doubles(DType::Bool, {1, 3}, std::vector<double>{1, 0, 0})}, with(M::kCustom))
      .expect({Tensor::f32({1, 1, 3, 1}, {2, 2, 2})}, kExact);
  // No keys at all.
  add({ones, Tensor(DType::F32, {1, 1, 0, 1}), Tensor(DType::F32, {1, 1, 0, 1})}, one)
      .expect({Tensor(DType::F32, {1, 1, 3, 1}), Tensor::f32({1, 1, 3}, {-inf, -inf, -inf})}, kExact);
  add({Tensor(DType::F32, {1, 1, 0, 1}), ones, v}, one)
      .expect({Tensor(DType::F32, {1, 1, 0, 1}), Tensor(DType::F32, {1, 1, 0})});
  // Large scores do not overflow; what lies in masked keys does not matter, even NaN.
  add({Tensor::f32({1, 1, 1, 1}, {300}), Tensor::f32({1, 1, 2, 1}, {300, 300}), Tensor::f32({1, 1, 2, 1}, {1, 3})}, one)
      .expect({Tensor::f32({1, 1, 1, 1}, {2})});
  add({Tensor::f32({1, 1, 1, 1}, {1}), Tensor::f32({1, 1, 3, 1}, {1, 1, NAN}), Tensor::f32({1, 1, 3, 1}, {1, 3, NAN}),
       Tensor::i32({1}, {2})},
      one)
      .expect({Tensor::f32({1, 1, 1, 1}, {2})});
  add({Tensor::f32({1, 1, 1, 1}, {1}), Tensor::f32({1, 1, 2, 1}, {1, NAN}), Tensor::f32({1, 1, 2, 1}, {1, 3})}, one)
      .expect({Tensor::f32({1, 1, 1, 1}, {NAN})});  // one that is seen does

  constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16};
  for (size_t n = 0; const AttentionProblem& p : large_attention_problems()) {
    add(p.operands(rng, DType::F32), p.attrs);
    if (const DType dtype = kFloats[n++ % 3]; dtype != DType::F32) add(p.operands(rng, dtype), p.attrs);
  }
  for (const int64_t queries : {1, 70}) add_unusual(*this, queries);

  const Tensor q = random({2, 4, 3, 2}), k = random({2, 2, 5, 2});
  const ops::AttentionAttrs a = {.num_heads = 4, .head_dim = 2};
  const auto but = [&](auto change) {
    ops::AttentionAttrs b = a;
    change(b);
    return b;
  };
  add_error({q, k, k}, but([](auto& b) { b.num_heads = 3; }), "Heads of the query and num_heads (4 and 3) differ");
  add_error({q, k, k}, but([](auto& b) { b.num_heads = 0; }), "num_heads (0) is less than 1");
  add_error({q, k, k}, but([](auto& b) { b.head_dim = 0; }), "head_dim (0) is less than 1");
  add_error({q, k, k}, but([](auto& b) { b.head_dim = 4; }), "(2 and 4) differ");
  add_error({q, random({2, 3, 5, 2}), random({2, 3, 5, 2})}, a, "Heads of the key (3) do not divide num_heads (4)");
  add_error({q, k, random({2, 2, 4, 2})}, a, "Value shape ([2, 2, 4, 2]) is not [2, 2, 5, 2]");
  add_error({q, random({1, 2, 5, 2}), random({1, 2, 5, 2})}, a, "Batch sizes of query and key (2 and 1) differ");
  add_error({q, random({2, 5, 4}), k}, a, "Key rank (3) is not 4");
  add_error({random({2, 3, 7}), random({2, 3, 8}), random({2, 3, 8})}, but([](auto& b) { b.layout = L::kBsf; }),
            "Query width (7) is not a whole number of heads of 2");
  add_error({q, random({2, 2, 5, 2}, DType::F16), k}, a, "differ; cast one");
  add_error({random({2, 4, 3, 2}, DType::I32), k, k}, a, "not a float type");
  add_error({q, k, k}, but([](auto& b) {
              b.mask_kind = M::kSlidingWindow;
              b.window = -1;
            }),
            "window (-1) is negative");
  add_error({q, k, k}, but([](auto& b) { b.mask_kind = M::kCustom; }), "Mask kind custom needs a mask operand");
  add_error({q, k, k, random({3, 5})}, but([](auto& b) { b.mask_kind = M::kCustom; }),
            "has 3 for the batch, not 1 or 2");
  add_error({q, k, k, random({2, 4})}, but([](auto& b) { b.mask_kind = M::kCustom; }),
            "has 4 for the keys, not 1 or 5");
  add_error({q, k, k, random({2, 2, 5})}, but([](auto& b) { b.mask_kind = M::kCustom; }),
            "has 2 for the queries, not 1 or 3");
  add_error({q, k, k, random({2, 2, 3, 5})}, but([](auto& b) { b.mask_kind = M::kBias; }),
            "has 2 for the heads, not 1 or 4");
  add_error({q, k, k, random({5})}, but([](auto& b) { b.mask_kind = M::kBias; }), "Mask rank (1) is not 2, 3 or 4");
  add_error({q, k, k, random({2, 5}, DType::I32)}, but([](auto& b) { b.mask_kind = M::kBias; }), "Bias dtype (i32)");
  add_error({q, k, k, random({2, 5}, DType::C64)}, but([](auto& b) { b.mask_kind = M::kCustom; }), "is complex");
  add_error({q, k, k, random({2, 5})}, a, "kv_len dtype (f32) is not i32");
  add_error({q, k, k, Tensor::i32({3}, {1, 1, 1})}, a, "kv_len shape ([3]) is not [2]");
  add_error({q, k, k, Tensor::i32({2}, {1, 1}), Tensor::i32({2}, {1, 1})}, a, "takes 3 operands and kv_len, not 5");
  add_error({q, k, k, Tensor::i32({2}, {1, 6})}, a, "kv_len (6) of batch 1 is outside 0 … 5");
  add_error({q, k, k, Tensor::i32({2}, {-1, 5})}, a, "kv_len (-1) of batch 0 is outside 0 … 5");
}

OP_CASES(attention_backward) {
  for (const AttentionProblem& p : attention_problems())
    add(p.operands(rng, DType::F64, true), p.attrs).check([p](const Tensors& in, const Tensors& out) {
      // Operand o of the forward op, as it stands in the list of the backward op (dy comes between).
      const bool bias = p.attrs.mask_kind == M::kBias;
      ASSERT_EQ(out.size(), bias ? 4u : 3u);
      for (size_t o = 0; o < out.size(); ++o) {
        const size_t at = o < 3 ? o : 4;
        ASSERT_EQ(out[o].type(), in[at].type());
        const auto forward = [&](const Tensor& x) {
          Tensors operands = in;
          operands[at] = x;
          operands.erase(operands.begin() + 3);
          return run(ops::attention, operands, p.attrs)[0];
        };
        EXPECT_TRUE(matches_finite_differences(forward, in[at], in[3], out[o], 1e-7)) << "gradient " << o;
      }
      // What the forward op saved changes nothing.
      Tensors saved = in, forward = in;
      forward.erase(forward.begin() + 3);
      for (const Tensor& t : run(ops::attention, forward, p.attrs)) saved.push_back(t);
      const Tensors again = run(ops::attention_backward, saved, p.attrs);
      for (size_t o = 0; o < out.size(); ++o) EXPECT_TRUE(near(again[o], out[o], {.of_max = 1e-5}));
    });
  // Rows without keys have no gradient; masked keys are not read.
  const ops::AttentionAttrs custom = {.num_heads = 1, .head_dim = 1, .mask_kind = M::kCustom};
  const Tensor ones = Tensor::f32({1, 1, 2, 1}, {1, 1}), odd = Tensor::f32({1, 1, 2, 1}, {1, NAN});
  add({ones, odd, odd, ones, Tensor::f32({1, 2, 2}, {0, 0, 1, 0})}, custom)
      .expect({Tensor::f32({1, 1, 2, 1}, {0, 0}), Tensor::f32({1, 1, 2, 1}, {0, 0}), Tensor::f32({1, 1, 2, 1}, {1, 0})},
              kExact);
  const float inf = std::numeric_limits<float>::infinity();
  add({ones, ones, ones, ones, Tensor::f32({1, 2, 2}, {-inf, -inf, 0, -inf})},
      {.num_heads = 1, .head_dim = 1, .mask_kind = M::kBias})
      .expect({Tensor::f32({1, 1, 2, 1}, {0, 0}), Tensor::f32({1, 1, 2, 1}, {0, 0}), Tensor::f32({1, 1, 2, 1}, {1, 0}),
               Tensor(DType::F32, {1, 2, 2})},
              kExact);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    add(attention_problems()[1].operands(rng, dtype, true), attention_problems()[1].attrs)
        .check([dtype](const Tensors& in, const Tensors& out) {
          Tensors wide;
          for (const Tensor& t : in) wide.push_back(t.cast(DType::F64));
          const Tensors expected = run(ops::attention_backward, wide, attention_problems()[1].attrs);
          for (size_t o = 0; o < 3; ++o)
            EXPECT_TRUE(near(out[o].cast(DType::F64), expected[o],
                             dtype == DType::F16    ? kHalf
                             : dtype == DType::BF16 ? kBFloat
                                                    : kAccumulation));
        });
  // Beyond a block of rows and of keys, all mask kinds, with and without what the forward op saved; backends are
  // compared with the oracle.
  for (const AttentionProblem& p : attention_problems()) add(p.operands(rng, DType::F32, true), p.attrs);
  const auto with = [](M kind, L layout, int64_t width, int64_t window = 0) {
    return ops::AttentionAttrs{
        .num_heads = 4, .head_dim = width, .layout = layout, .mask_kind = kind, .window = window};
  };
  const AttentionProblem larger[] = {
      {1, 2, 37, 70, with(M::kCausal, L::kBhsd, 12)},
      {1, 4, 70, 37, with(M::kSlidingWindow, L::kBshd, 7, 9)},
      {2, 1, 9, 80, with(M::kCustom, L::kBsf, 8), {2, 9, 80}},
      {1, 2, 20, 70, with(M::kBias, L::kBhsd, 8), {1, 4, 20, 70}},
      {2, 2, 20, 40, with(M::kBias, L::kBhsd, 4), {1, 1, 1, 40}},
      {2, 2, 33, 40, with(M::kCausal, L::kBsf, 4), {}, {40, 21}},
      {1, 4, 3, 40, with(M::kNone, L::kBshd, 132)},
  };
  for (const AttentionProblem& p : larger) {
    const Tensors in = p.operands(rng, DType::F32, true);
    add(in, p.attrs);
    Tensors saved = in, forward = in;
    forward.erase(forward.begin() + 3);
    for (const Tensor& t : run_op(ops::attention, forward, p.attrs)) saved.push_back(t);
    add(saved, p.attrs);
    // Halves by fours, and of a bias: its own and broadcast.
    if (p.attrs.head_dim % 4 == 0 && (p.attrs.mask_kind == M::kBias || p.attrs.layout == L::kBhsd))
      add(p.operands(rng, DType::F16, true), p.attrs);
  }
  // The gradient of an empty sequence of keys or queries.
  add({ones, Tensor(DType::F32, {1, 1, 0, 1}), Tensor(DType::F32, {1, 1, 0, 1}), ones}, {.num_heads = 1, .head_dim = 1})
      .expect({Tensor(DType::F32, {1, 1, 2, 1}), Tensor(DType::F32, {1, 1, 0, 1})}, kExact);
  add({Tensor(DType::F32, {1, 1, 0, 1}), ones, ones, Tensor(DType::F32, {1, 1, 0, 1})}, {.num_heads = 1, .head_dim = 1})
      .expect({Tensor(DType::F32, {1, 1, 0, 1}), Tensor(DType::F32, {1, 1, 2, 1}), Tensor(DType::F32, {1, 1, 2, 1})},
              kExact);
  add_error({ones, ones, ones, ones}, custom, "Mask kind custom needs a mask operand");
  add_error({ones, ones, ones, Tensor::f32({1, 1, 1, 1}, {1})}, {.num_heads = 1, .head_dim = 1}, "Gradient shape");
  add_error({ones, ones, ones, ones, ones, Tensor::f32({1, 1, 1}, {1})}, {.num_heads = 1, .head_dim = 1},
            "lse shape ([1, 1, 1]) is not [1, 1, 2]");
  add_error({ones, ones, ones, ones, ones, ones, ones, ones}, {.num_heads = 1, .head_dim = 1},
            "takes 4 operands, kv_len, y and lse, not 8");
  add_error({ones, ones, ones, ones, Tensor::i32({1}, {3})}, {.num_heads = 1, .head_dim = 1},
            "kv_len (3) of batch 0 is outside 0 … 2");
}

}  // namespace rlx::test
