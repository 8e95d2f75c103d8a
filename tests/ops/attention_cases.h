// Attention by another route than the kernel's: everything as full [B, H, Sq, Sk] and [B, H, S, D] tables.
#pragma once

#include <cmath>
#include <limits>

#include "support/op_cases.h"

namespace rlx::test {

// [B, H, S, D] in doubles whatever the layout.
struct Heads {
  int64_t b, h, s, d;
  std::vector<double> v;
  double at(int64_t bi, int64_t hi, int64_t si, int64_t di) const {
    return v[static_cast<size_t>(((bi * h + hi) * s + si) * d + di)];
  }
};

inline Heads heads_of(const Tensor& t, ops::AttentionLayout layout, int64_t d) {
  const auto& n = t.sizes();
  Heads out;
  if (layout == ops::AttentionLayout::kBhsd)
    out = {n[0], n[1], n[2], d, t.to_doubles()};
  else {
    out = {n[0], layout == ops::AttentionLayout::kBsf ? n[2] / d : n[2], n[1], d, {}};
    for (int64_t b = 0; b < out.b; ++b)
      for (int64_t h = 0; h < out.h; ++h)
        for (int64_t s = 0; s < out.s; ++s)
          for (int64_t i = 0; i < d; ++i) out.v.push_back(t.at(((b * out.s + s) * out.h + h) * d + i));
  }
  return out;
}

inline std::vector<int64_t> head_sizes(ops::AttentionLayout layout, int64_t b, int64_t h, int64_t s, int64_t d) {
  if (layout == ops::AttentionLayout::kBhsd) return {b, h, s, d};
  if (layout == ops::AttentionLayout::kBshd) return {b, s, h, d};
  return {b, s, h * d};
}

struct AttentionResult {
  Heads y;
  std::vector<double> lse;
};

// No max subtraction (scores are small), the bias table of all keys first (-inf where masked), the weights of all
// queries next.
inline AttentionResult plain_attention(const Heads& q, const Heads& k, const Heads& v, const Tensor* mask,
                                       const Tensor* kv_len, const ops::AttentionAttrs& a) {
  AttentionResult r{{q.b, q.h, q.s, q.d, std::vector<double>(q.v.size(), 0.0)}, {}};
  const double scale = a.score_scale ? *a.score_scale : std::pow(q.d, -0.5);
  for (int64_t b = 0; b < q.b; ++b)
    for (int64_t h = 0; h < q.h; ++h)
      for (int64_t i = 0; i < q.s; ++i) {
        const int64_t used = kv_len ? static_cast<int64_t>(kv_len->at(b)) : k.s;
        const int64_t p = kv_len ? used - q.s + i : (k.s > q.s ? k.s - q.s + i : i);
        const int64_t kh = h * k.h / q.h;
        double total = 0;
        for (int64_t j = 0; j < used; ++j) {
          double m = 0;
          if (mask) {
            const auto& n = mask->sizes();
            const size_t rank = n.size();
            const int64_t mi = rank < 3 || n[rank - 2] == 1 ? 0 : i, mh = rank < 4 || n[1] == 1 ? 0 : h;
            const int64_t mb = n[0] == 1 ? 0 : b, mj = n[rank - 1] == 1 ? 0 : j;
            int64_t at = mb;
            if (rank == 4) at = at * n[1] + mh;
            if (rank >= 3) at = at * n[rank - 2] + mi;
            m = mask->at(at * n[rank - 1] + mj);
          }
          if (a.mask_kind == ops::MaskKind::kCausal && j > p) continue;
          if (a.mask_kind == ops::MaskKind::kSlidingWindow && (j > p || j < p - a.window)) continue;
          if (a.mask_kind == ops::MaskKind::kCustom && !(m >= 0.5)) continue;
          double s = 0;
          for (int64_t d = q.d - 1; d >= 0; --d) s += k.at(b, kh, j, d) * q.at(b, h, i, d);
          s *= scale;
          if (a.attn_logit_softcap && *a.attn_logit_softcap > 0)
            s = *a.attn_logit_softcap * std::tanh(s / *a.attn_logit_softcap);
          if (a.mask_kind == ops::MaskKind::kBias) s += m;
          const double e = std::exp(s);
          if (e == 0) continue;
          total += e;
          for (int64_t d = 0; d < q.d; ++d)
            r.y.v[static_cast<size_t>(((b * q.h + h) * q.s + i) * q.d + d)] += e * v.at(b, kh, j, d);
        }
        for (int64_t d = 0; d < q.d && total > 0; ++d)
          r.y.v[static_cast<size_t>(((b * q.h + h) * q.s + i) * q.d + d)] /= total;
        r.lse.push_back(std::log(total));
      }
  return r;
}

// One attention problem: sizes, attributes, and which optional operands it has.
struct AttentionProblem {
  int64_t b, hkv, sq, sk;
  ops::AttentionAttrs attrs;
  std::vector<int64_t> mask = {};    // sizes; empty: none
  std::vector<int32_t> kv_len = {};  // empty: none

  int64_t h() const { return attrs.num_heads; }
  int64_t d() const { return attrs.head_dim; }

  // q, k, v, [dy], [mask], [kv_len]
  Tensors operands(Rng& rng, DType dtype, bool backward = false) const {
    Tensors in = {rng.tensor(head_sizes(attrs.layout, b, h(), sq, d()), dtype),
                  rng.tensor(head_sizes(attrs.layout, b, hkv, sk, d()), dtype),
                  rng.tensor(head_sizes(attrs.layout, b, hkv, sk, d()), dtype)};
    if (backward) in.push_back(rng.tensor(in[0].sizes(), dtype));
    if (!mask.empty())
      in.push_back(attrs.mask_kind == ops::MaskKind::kBias ? rng.tensor(mask, dtype)
                                                           : rng.uniform_tensor(mask, 0, 1, dtype));
    if (!kv_len.empty()) in.push_back(Tensor::i32({b}, kv_len));
    return in;
  }
};

// Every mask kind, grouped-query heads, Sq below, at and above Sk, scale, softcap, cache lengths, all layouts.
inline std::vector<AttentionProblem> attention_problems() {
  using L = ops::AttentionLayout;
  using M = ops::MaskKind;
  return {
      {2, 4, 3, 5, {.num_heads = 4, .head_dim = 4}},
      {2, 2, 3, 5, {.num_heads = 4, .head_dim = 3, .layout = L::kBshd}},                           // GQA
      {1, 1, 4, 4, {.num_heads = 3, .head_dim = 2, .layout = L::kBsf}},                            // multi-query
      {2, 2, 4, 4, {.num_heads = 4, .head_dim = 2, .layout = L::kBhsd, .mask_kind = M::kCausal}},  // S = num_heads
      {2, 2, 4, 4, {.num_heads = 4, .head_dim = 2, .layout = L::kBshd, .mask_kind = M::kCausal}},
      {1, 2, 2, 5, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kCausal}},  // queries at the end
      {1, 2, 5, 3, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kCausal}},  // Sk < Sq: offset 0
      {1, 2, 6, 6, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kSlidingWindow, .window = 2}},
      {1, 1, 2, 6, {.num_heads = 2, .head_dim = 3, .layout = L::kBsf, .mask_kind = M::kSlidingWindow, .window = 0}},
      {1, 2, 6, 3, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kSlidingWindow, .window = 1}},  // rows without keys
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kCustom}, {2, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .layout = L::kBshd, .mask_kind = M::kCustom}, {2, 3, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .layout = L::kBsf, .mask_kind = M::kCustom}, {2, 4, 3, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kCustom}, {1, 1, 3, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kBias}, {2, 4, 3, 4}},
      {2, 1, 3, 4, {.num_heads = 4, .head_dim = 2, .layout = L::kBshd, .mask_kind = M::kBias}, {1, 4, 3, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kBias}, {2, 4, 1, 1}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kBias}, {1, 4}},
      {2, 2, 3, 4, {.num_heads = 4, .head_dim = 2, .mask_kind = M::kBias}, {2, 1, 4}},
      {1, 2, 3, 4, {.num_heads = 2, .head_dim = 4, .score_scale = 0.1f}},
      {1, 2, 3, 4, {.num_heads = 2, .head_dim = 4, .score_scale = 2.0f, .attn_logit_softcap = 1.5f}},
      {1, 2, 3, 4, {.num_heads = 2, .head_dim = 4, .score_scale = 0.0f}},
      {1, 2, 3, 4, {.num_heads = 2, .head_dim = 4, .attn_logit_softcap = 0.0f}},  // not positive: no cap
      {1,
       2,
       3,
       4,
       {.num_heads = 4, .head_dim = 2, .mask_kind = M::kBias, .score_scale = 0.7f, .attn_logit_softcap = 0.8f},
       {1, 4, 3, 4}},
      {1,
       1,
       3,
       5,
       {.num_heads = 2, .head_dim = 2, .mask_kind = M::kCausal, .score_scale = 1.0f, .attn_logit_softcap = 2.0f}},
      {3, 1, 1, 6, {.num_heads = 2, .head_dim = 3, .layout = L::kBshd}, {}, {1, 4, 6}},  // decode
      {2, 1, 2, 6, {.num_heads = 2, .head_dim = 3, .layout = L::kBshd, .mask_kind = M::kCausal}, {}, {3, 6}},
      {3, 1, 3, 6, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kCausal}, {}, {2, 0, 5}},  // fewer keys than queries
      {2, 1, 2, 6, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kSlidingWindow, .window = 1}, {}, {5, 4}},
      {2, 1, 2, 6, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kBias}, {1, 2, 6}, {5, 4}},
      {2, 1, 2, 6, {.num_heads = 2, .head_dim = 3, .mask_kind = M::kCustom}, {2, 6}, {5, 4}},
      {1, 1, 1, 1, {.num_heads = 1, .head_dim = 1}},
      // Rows of all heads together are as long as one head's in whole vectors.
      {1, 2, 3, 5, {.num_heads = 2, .head_dim = 8, .layout = L::kBshd}},
      {2, 4, 1, 3, {.num_heads = 4, .head_dim = 4, .layout = L::kBsf, .mask_kind = M::kCausal}},
  };
}

// Beyond a block of queries (64), of keys (96) and a chunk of keys (256), with and without tails, for backends that
// work in blocks: every mask kind with many and with few queries.
inline std::vector<AttentionProblem> large_attention_problems() {
  using L = ops::AttentionLayout;
  using M = ops::MaskKind;
  std::vector<AttentionProblem> list = {
      {1, 1, 70, 96, {.num_heads = 1, .head_dim = 64}},
      {1, 1, 9, 33, {.num_heads = 1, .head_dim = 130}},
      {1,
       2,
       33,
       20,
       {.num_heads = 4, .head_dim = 16, .layout = L::kBshd, .score_scale = 0.3f, .attn_logit_softcap = 3.0f}},
      {1, 1, 1, 600, {.num_heads = 12, .head_dim = 24}},  // more rows of a kv head than a tile has
      {2, 2, 3, 300, {.num_heads = 4, .head_dim = 32, .layout = L::kBshd}},
      {1, 2, 1, 260, {.num_heads = 4, .head_dim = 7, .layout = L::kBsf, .attn_logit_softcap = 2.0f}},
      {2, 1, 70, 300, {.num_heads = 2, .head_dim = 8, .mask_kind = M::kCausal}, {}, {300, 40}},
      {3, 2, 1, 600, {.num_heads = 4, .head_dim = 16}, {}, {600, 0, 257}},
      {1, 2, 150, 40, {.num_heads = 2, .head_dim = 8, .mask_kind = M::kSlidingWindow, .window = 3}},
      {1, 1, 3, 300, {.num_heads = 2, .head_dim = 8, .mask_kind = M::kSlidingWindow, .window = 1000000}},
      // Few rows of widths that are multiples of 16: of one head and of many, in one part and in several.
      {2, 2, 1, 40, {.num_heads = 4, .head_dim = 16, .layout = L::kBshd}},
      {1, 1, 1, 300, {.num_heads = 16, .head_dim = 32, .layout = L::kBshd}},
      {2, 1, 2, 200, {.num_heads = 5, .head_dim = 80, .mask_kind = M::kCausal}, {}, {200, 33}},
      {1, 1, 1, 70, {.num_heads = 2, .head_dim = 256, .attn_logit_softcap = 2.0f}},
      {2, 2, 1, 700, {.num_heads = 2, .head_dim = 64, .mask_kind = M::kSlidingWindow, .window = 100}, {}, {650, 90}},
      {1, 2, 2, 150, {.num_heads = 4, .head_dim = 16, .mask_kind = M::kBias}, {1, 4, 2, 150}},
      {1, 2, 2, 150, {.num_heads = 4, .head_dim = 16, .mask_kind = M::kCustom}, {1, 150}},
      {64, 8, 1, 300, {.num_heads = 8, .head_dim = 16}},  // a part has more keys than a block
      {1, 2, 1, 90, {.num_heads = 4, .head_dim = 128}},
      {1, 1, 3, 90, {.num_heads = 4, .head_dim = 96, .mask_kind = M::kCausal}},
      // Blocks of 32 rows, of heads of every width; heads that a workgroup has a part of.
      {1, 2, 20, 50, {.num_heads = 2, .head_dim = 20}},
      {1, 1, 24, 50, {.num_heads = 1, .head_dim = 40, .mask_kind = M::kSlidingWindow, .window = 9}},
      {1, 1, 10, 40, {.num_heads = 2, .head_dim = 72, .layout = L::kBshd}},
      {1, 1, 20, 40, {.num_heads = 1, .head_dim = 130}},
      {1, 1, 18, 40, {.num_heads = 1, .head_dim = 256, .mask_kind = M::kCausal}},
      {1, 1, 3, 300, {.num_heads = 1, .head_dim = 300}},
      {1, 1, 70, 33, {.num_heads = 1, .head_dim = 301}},
  };
  for (const L layout : {L::kBhsd, L::kBshd, L::kBsf})
    for (const int64_t queries : {2, 70}) {
      const ops::AttentionAttrs a = {.num_heads = 4, .head_dim = 10, .layout = layout};
      const auto with = [&](M kind, int64_t window = 0) {
        ops::AttentionAttrs b = a;
        b.mask_kind = kind;
        b.window = window;
        return b;
      };
      list.push_back({1, 2, queries, 200, a});
      list.push_back({1, 2, queries, 200, with(M::kCausal)});
      list.push_back({1, 2, queries, 200, with(M::kSlidingWindow, 30)});
      list.push_back({1, 2, queries, 200, with(M::kCustom), {1, 200}});
      list.push_back({1, 2, queries, 200, with(M::kCustom), {1, queries, 200}});
      list.push_back({1, 2, queries, 200, with(M::kBias), {1, 4, queries, 200}});
      list.push_back({1, 2, queries, 200, with(M::kBias), {1, 4, 1, 1}});
    }
  return list;
}

}  // namespace rlx::test
