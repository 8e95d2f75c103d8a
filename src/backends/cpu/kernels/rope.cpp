#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/rope.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/rope.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Pairs (i, n + i); y may be x.
void RotateHalves(const float* x, float* y, const float* cos, const float* sin, float sign, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, sign);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto a = load_n(d, x + i, left, 0.0f), b = load_n(d, x + n + i, left, 0.0f);
    const auto c = load_n(d, cos + i, left, 0.0f), t = hn::Mul(load_n(d, sin + i, left, 0.0f), s);
    store_n(d, hn::Sub(hn::Mul(a, c), hn::Mul(b, t)), y + i, left);
    store_n(d, hn::MulAdd(b, c, hn::Mul(a, t)), y + n + i, left);
  }
}

// Pairs (2i, 2i + 1); y may be x.
void RotatePairs(const float* x, float* y, const float* cos, const float* sin, float sign, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, sign);
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cos + i), t = hn::Mul(hn::LoadU(d, sin + i), s);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, c), hn::Mul(b, t)), hn::MulAdd(b, c, hn::Mul(a, t)), d, y + 2 * i);
  }
#endif
  for (; i < n; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1], t = sign * sin[i];
    y[2 * i] = a * cos[i] - b * t;
    y[2 * i + 1] = b * cos[i] + a * t;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(RotateHalves);
HWY_EXPORT(RotatePairs);

using host::View;

namespace {

// A token's row: heads side by side, all turned by the same angles.
struct TokenRow {
  int64_t width, head_dim, pairs;
  bool halves;
  float sign;
};

void rotate_heads(const TokenRow& t, const float* x, float* y, const float* cos, const float* sin) {
  for (int64_t head = 0; head < t.width; head += t.head_dim) {
    if (t.halves)
      HWY_DYNAMIC_DISPATCH(RotateHalves)(x + head, y + head, cos, sin, t.sign, t.pairs);
    else
      HWY_DYNAMIC_DISPATCH(RotatePairs)(x + head, y + head, cos, sin, t.sign, t.pairs);
    if (y != x) std::copy(x + head + 2 * t.pairs, x + head + t.head_dim, y + head + 2 * t.pairs);
  }
}

// Reads a row of x, turns it and writes it to y: through `buffer` where it must be converted, or streamed.
void rotate_row(const TokenRow& t, const View& x, const View& y, int64_t first, const float* cos, const float* sin,
                float* buffer, bool streaming) {
  const float* from = row_as_f32(x.dtype, x.data, first, buffer, t.width);
  if (y.dtype != DType::F32) {
    rotate_heads(t, from, buffer, cos, sin);
    from_f32(y.dtype, buffer, y.data, first, t.width);
  } else if (streaming) {
    rotate_heads(t, from, buffer, cos, sin);
    copy_bytes(y.data + first * 4, reinterpret_cast<const std::byte*>(buffer), t.width * 4, true);
  } else {
    rotate_heads(t, from, reinterpret_cast<float*>(y.data) + first, cos, sin);
  }
}

bool streams(const View& y, int64_t row_elems) {
  return y.dtype == DType::F32 && y.elements() * 4 >= kStreamBytes &&
         rows_stream_well(y.data, row_elems * 4, row_elems * 4);
}

void rotate(const Call& call, float sign) {
  const auto& attrs = call.attrs<ops::RopeAttrs>();
  const View &x = call.input(0), &y = call.output(0), &cos = call.input(1), &sin = call.input(2);
  const int64_t axis = attrs.layout == ops::AttentionLayout::kBshd ? 1 : x.rank() - 2;
  const auto [outer, rows, inner] = host::split_at(x.sizes, axis);
  const int64_t seq = rows, width = inner;  // clang 14 cannot capture a structured binding
  const int64_t per_batch = outer / (axis == 0 ? 1 : x.dim(0)), half = attrs.head_dim / 2;
  const TokenRow token{width, attrs.head_dim, attrs.n_rot.value_or(attrs.head_dim) / 2,
                       attrs.style == ops::RopeStyle::kNeox, sign};
  const View* positions = call.num_inputs() == 4 ? &call.input(3) : nullptr;
  const auto position_of = [&](int64_t b, int64_t s) {
    if (cos.rank() == 3) return (cos.dim(0) == 1 ? 0 : b) * seq + s;
    if (positions == nullptr) return s;
    const bool shared = positions->rank() == 1 || positions->dim(0) == 1;
    const int64_t i = (shared ? 0 : b) * seq + s;
    return positions->dtype == DType::I64 ? reinterpret_cast<const int64_t*>(positions->data)[i]
                                          : int64_t{reinterpret_cast<const int32_t*>(positions->data)[i]};
  };
  if (cos.rank() == 2)  // in order, so that the error is the oracle's
    for (int64_t b = 0; b < (positions ? outer / per_batch : 1); ++b)
      for (int64_t s = 0; s < seq; ++s)
        if (const int64_t p = position_of(b, s); p < 0 || p >= cos.dim(0))
          fail(ErrorKind::kRuntime, str("Position (", p, ") is outside the table's rows (", cos.dim(0), ")."));
  const bool streaming = streams(y, width);
  call.pool().parallel_for(0, outer * seq, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    float* buffer = call.scratch_as<float>() + ThreadPool::this_thread() * (width + 2 * half);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = position_of(i / seq / per_batch, i % seq) * half;
      const float* c = row_as_f32(cos.dtype, cos.data, at, buffer + width, token.pairs);
      const float* s = row_as_f32(sin.dtype, sin.data, at, buffer + width + half, token.pairs);
      rotate_row(token, x, y, i * width, c, s, buffer, streaming);
    }
    if (streaming) stream_flush();
  });
}

}  // namespace

int64_t rope_scratch(const Signature& s, int threads) {
  const auto& attrs = s.attrs.as<ops::RopeAttrs>();
  const TensorType& x = s.input(0);
  const int64_t heads = attrs.layout == ops::AttentionLayout::kBshd ? x.dim(2).value() : 1;
  const int64_t width = heads * x.dim(x.rank() - 1).value();
  return threads * (width + attrs.head_dim / 2 * 2) * static_cast<int64_t>(sizeof(float));
}
void rope(const Call& call) { rotate(call, 1); }
void rope_backward(const Call& call) { rotate(call, -1); }

// The angles of a column and of a row position are computed once, for all tokens that share them.
int64_t axial_rope2d_scratch(const Signature& s, int threads) {
  const auto& a = s.attrs.as<ops::AxialRope2dAttrs>();
  const int64_t quarter = a.head_dim / 4, places = std::max(a.end_x, a.end_y);
  return (2 * places * quarter + threads * (s.input(0).dim(2).value() + 4 * quarter)) *
         static_cast<int64_t>(sizeof(float));
}

void axial_rope2d(const Call& call) {
  const auto& attrs = call.attrs<ops::AxialRope2dAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const int64_t seq = x.dim(1), width = x.dim(2), quarter = attrs.head_dim / 4;
  const int64_t places = std::max(attrs.end_x, attrs.end_y);
  float *cos = call.scratch_as<float>(), *sin = cos + places * quarter, *buffers = sin + places * quarter;
  call.pool().parallel_for(0, quarter, 8, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const double frequency = std::pow(static_cast<double>(attrs.theta),
                                        -4.0 * static_cast<double>(c) / static_cast<double>(attrs.head_dim));
      for (int64_t p = 0; p < places; ++p) {
        cos[p * quarter + c] = static_cast<float>(std::cos(static_cast<double>(p) * frequency));
        sin[p * quarter + c] = static_cast<float>(std::sin(static_cast<double>(p) * frequency));
      }
    }
  });
  const TokenRow token{width, attrs.head_dim, 2 * quarter, false, 1};
  const bool streaming = streams(y, width), tile = attrs.repeat == ops::AxialRepeat::kTile;
  call.pool().parallel_for(0, x.dim(0) * seq, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    float* buffer = buffers + ThreadPool::this_thread() * (width + 4 * quarter);
    float *c = buffer + width, *s = c + 2 * quarter;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i % seq;
      const int64_t p = tile ? t % (attrs.end_x * attrs.end_y) : t / std::max<int64_t>(attrs.repeat_factor, 1);
      const int64_t at[2] = {p % attrs.end_x * quarter, p / attrs.end_x * quarter};
      for (int64_t side = 0; side < 2; ++side) {
        std::copy_n(cos + at[side], quarter, c + side * quarter);
        std::copy_n(sin + at[side], quarter, s + side * quarter);
      }
      rotate_row(token, x, y, i * width, c, s, buffer, streaming);
    }
    if (streaming) stream_flush();
  });
}

}  // namespace rlx::cpu
#endif
