#include "attention_cases.h"

namespace rlx::test {

namespace {

using L = ops::AttentionLayout;

Tolerance tolerance_of(DType dtype) {
  // Every value between the ops is rounded to the dtype, not the result alone.
  return dtype == DType::F16    ? Tolerance{.of_max = 1e-2}
         : dtype == DType::BF16 ? Tolerance{.of_max = 8e-2}
                                : kAccumulation;
}

// Rows of doubles, [rows, columns].
struct Rows {
  int64_t n, width;
  std::vector<double> v;
};

// x * w[:, from : from + count] + b[from : from + count]; the weight is cut, where the op cuts the product.
Rows linear(const Rows& x, const Tensor& w, const Tensor* b, int64_t from, int64_t count) {
  Rows y{x.n, count, {}};
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t c = 0; c < count; ++c) {
      double sum = b ? b->at(from + c) : 0;
      for (int64_t k = 0; k < x.width; ++k)
        sum += x.v[static_cast<size_t>(r * x.width + k)] * w.at(k * w.sizes()[1] + from + c);
      y.v.push_back(sum);
    }
  return y;
}

Rows add_and_normalise(const Rows& a, const Rows& b, const Tensor& gamma, const Tensor& beta, double eps) {
  Rows y = a;
  for (int64_t r = 0; r < a.n; ++r) {
    double sum = 0, squares = 0;
    const auto first = static_cast<size_t>(r * a.width), count = static_cast<size_t>(a.width);
    for (size_t i = first; i < first + count; ++i) {
      y.v[i] = a.v[i] + b.v[i];
      sum += y.v[i];
      squares += y.v[i] * y.v[i];
    }
    const double mean = sum / static_cast<double>(count), variance = squares / static_cast<double>(count) - mean * mean;
    for (size_t i = 0; i < count; ++i)
      y.v[first + i] = (y.v[first + i] - mean) / std::sqrt(variance + eps) * gamma.at(static_cast<int64_t>(i)) +
                       beta.at(static_cast<int64_t>(i));
  }
  return y;
}

// The block head by head on cut weights, in f64.
Rows attention_block(const Tensor& hidden, const Tensor& qkv_w, const Tensor* qkv_b, const Tensor& out_w,
                     const Tensor* out_b, const Tensor& mask, const Tensor* cos, const Tensor* sin, int64_t heads,
                     int64_t d) {
  const int64_t b = hidden.sizes()[0], s = hidden.sizes()[1], width = heads * d;
  const Rows x{b * s, hidden.sizes()[2], hidden.to_doubles()};
  Tensor parts[3];
  for (int64_t i = 0; i < 3; ++i) {
    parts[i] = Tensor::from_doubles(DType::F64, {b, s, heads, d}, linear(x, qkv_w, qkv_b, i * width, width).v);
    if (cos && i < 2) parts[i] = run(ops::rope, {parts[i], *cos, *sin}, {.head_dim = d, .layout = L::kBshd})[0];
  }
  const ops::AttentionAttrs a = {
      .num_heads = heads, .head_dim = d, .layout = L::kBshd, .mask_kind = ops::MaskKind::kCustom};
  const Heads y = plain_attention(heads_of(parts[0], L::kBshd, d), heads_of(parts[1], L::kBshd, d),
                                  heads_of(parts[2], L::kBshd, d), &mask, nullptr, a)
                      .y;
  Rows rows{b * s, width, {}};
  for (int64_t r = 0; r < b * s; ++r)
    for (int64_t c = 0; c < width; ++c) rows.v.push_back(y.at(r / s, c / d, r % s, c % d));
  return linear(rows, out_w, out_b, 0, hidden.sizes()[2]);
}

}  // namespace

OP_CASES(fused_attention_block) {
  const int64_t b = 2, s = 3, c = 5, heads = 2, d = 4;
  const auto operands = [&](DType dtype, bool bias, bool rope) {
    Tensors in = {random({b, s, c}, dtype), random({c, 3 * heads * d}, dtype), random({heads * d, c}, dtype),
                  Tensor::from_doubles(dtype, {b, s}, std::vector<double>{1, 1, 1, 1, 0, 1})};
    if (bias) in.insert(in.end(), {random({3 * heads * d}, dtype), random({c}, dtype)});
    if (rope) in.insert(in.end(), {random({s + 1, d / 2}, dtype), random({s + 1, d / 2}, dtype)});
    return in;
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const bool bias : {false, true})
      for (const bool rope : {false, true})
        add(operands(dtype, bias, rope), {.num_heads = heads, .head_dim = d, .has_bias = bias, .has_rope = rope})
            .check([=](const Tensors& in, const Tensors& out) {
              const size_t tables = bias ? 6 : 4;
              const Rows y =
                  attention_block(in[0], in[1], bias ? &in[4] : nullptr, in[2], bias ? &in[5] : nullptr, in[3],
                                  rope ? &in[tables] : nullptr, rope ? &in[tables + 1] : nullptr, heads, d);
              EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, {b, s, c}, y.v), tolerance_of(dtype)));
            });
  add({Tensor(DType::F32, {0, s, c}), random({c, 24}), random({8, c}), Tensor(DType::F32, {0, s})},
      {.num_heads = heads, .head_dim = d})
      .expect({Tensor(DType::F32, {0, s, c})});
  const Tensors in = operands(DType::F32, true, true);
  const ops::FusedAttentionBlockAttrs a = {.num_heads = heads, .head_dim = d, .has_bias = true, .has_rope = true};
  const auto with = [&](size_t i, Tensor t) {
    Tensors changed = in;
    changed[i] = std::move(t);
    return changed;
  };
  add_error(in, {.num_heads = heads, .head_dim = d}, "Number of operands (8) is not 4");
  add_error(in, {.num_heads = 3, .head_dim = d, .has_bias = true, .has_rope = true},
            "qkv_w shape ([5, 24]) is not [5, 36]");
  add_error(in, {.num_heads = 0, .head_dim = d, .has_bias = true, .has_rope = true}, "num_heads (0)");
  add_error(in, {.num_heads = heads, .head_dim = 0, .has_bias = true, .has_rope = true}, "head_dim (0)");
  add_error(with(0, random({s, c})), a, "Hidden rank (2) is not 3");
  add_error(with(2, random({7, c})), a, "out_w shape");
  add_error(with(3, random({b, s + 1})), a, "Mask shape ([2, 4]) is not [2, 3]");
  add_error(with(3, random({b, s}, DType::C64)), a, "is complex");
  add_error(with(4, random({23})), a, "qkv_b shape");
  add_error(with(5, random({4})), a, "out_b shape");
  add_error(with(6, random({2, 2})), a, "Sine table shape");
  add_error(with(1, random({c, 24}, DType::F16)), a, "differ; cast one");
  add_error(with(0, random({b, s, c}, DType::I32)), a, "Hidden dtype (i32)");
}

OP_CASES(fused_transformer_layer) {
  const int64_t b = 2, s = 3, c = 5, heads = 2, d = 3, inner = 7;
  const auto operands = [&](DType dtype, bool bias) {
    Tensors in;
    const auto weight = [&](std::vector<int64_t> sizes) { in.push_back(random(std::move(sizes), dtype)); };
    weight({b, s, c});
    weight({c, 3 * heads * d});
    if (bias) weight({3 * heads * d});
    weight({heads * d, c});
    if (bias) weight({c});
    weight({c});
    weight({c});
    weight({c, inner});
    if (bias) weight({inner});
    weight({inner, c});
    if (bias) weight({c});
    weight({c});
    weight({c});
    in.push_back(Tensor::from_doubles(dtype, {b, s}, std::vector<double>{1, 0, 1, 1, 1, 1}));
    return in;
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const bool bias : {false, true})
      for (const ops::ActivationKind act :
           {ops::ActivationKind::kGelu, ops::ActivationKind::kRelu, ops::ActivationKind::kNone})
        add(operands(dtype, bias), {.num_heads = heads,
                                    .head_dim = d,
                                    .intermediate_size = inner,
                                    .eps1 = 0.1f,
                                    .eps2 = 0.3f,
                                    .activation = act,
                                    .has_bias = bias})
            .check([=](const Tensors& in, const Tensors& out) {
              // Operand by its place in the list without biases; the biases stand behind their weights.
              const size_t places[] = {0, 1, 3, 5, 6, 7, 9, 11, 12, 13};
              const auto at = [&](size_t i) -> const Tensor& { return in[bias ? places[i] : i]; };
              const auto bias_of = [&](size_t i) { return bias ? &in[places[i] + 1] : nullptr; };
              const Rows x{b * s, c, in[0].to_doubles()};
              const Rows attended =
                  attention_block(in[0], at(1), bias_of(1), at(2), bias_of(2), at(9), nullptr, nullptr, heads, d);
              const Rows h = add_and_normalise(attended, x, at(3), at(4), 0.1f);
              Rows f = linear(h, at(5), bias_of(5), 0, inner);
              for (double& v : f.v) {
                if (act == ops::ActivationKind::kGelu) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
                if (act == ops::ActivationKind::kRelu) v = v > 0 ? v : 0;
              }
              const Rows y = add_and_normalise(linear(f, at(6), bias_of(6), 0, c), h, at(7), at(8), 0.3f);
              EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, {b, s, c}, y.v), tolerance_of(dtype)));
            });
  const Tensors in = operands(DType::F32, false);
  const ops::FusedTransformerLayerAttrs a = {.num_heads = heads, .head_dim = d, .intermediate_size = inner};
  const auto with = [&](size_t i, Tensor t) {
    Tensors changed = in;
    changed[i] = std::move(t);
    return changed;
  };
  add_error(operands(DType::F32, true), a, "Number of operands (14) is not 10");
  add_error(in, {.num_heads = heads, .head_dim = d}, "intermediate_size (0)");
  add_error(in, {.num_heads = heads, .head_dim = d, .intermediate_size = 6}, "fc1_w shape ([5, 7]) is not [5, 6]");
  add_error(with(1, random({c, 17})), a, "qkv_w shape");
  add_error(with(3, random({4})), a, "ln1_g shape");
  add_error(with(4, random({4})), a, "ln1_b shape");
  add_error(with(6, random({inner, 4})), a, "fc2_w shape");
  add_error(with(7, random({4})), a, "ln2_g shape");
  add_error(with(8, random({4})), a, "ln2_b shape");
  add_error(with(9, random({b, 2})), a, "Mask shape");
}

}  // namespace rlx::test
