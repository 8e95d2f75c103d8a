#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/log_mel.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/math-inl.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/log_mel.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

void Power(const float* re, const float* im, int64_t n, float* power) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto a = load_n(d, re + i, n - i, 0.0f), b = load_n(d, im + i, n - i, 0.0f);
    store_n(d, hn::MulAdd(a, a, hn::Mul(b, b)), power + i, n - i);
  }
}

// y = log10(max(y, 1e-10)); returns the largest, NaN where there is one.
float LogPower(float* y, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto least = hn::Set(d, 1e-10f), log10_e = hn::Set(d, 0.4342944819f);
  const float lowest = -std::numeric_limits<float>::infinity();
  auto top = hn::Set(d, lowest);
  for (int64_t i = 0; i < n; i += lanes) {
    auto p = load_n(d, y + i, n - i, 0.0f);
    p = hn::IfThenElse(hn::Lt(p, least), least, p);
    const auto l = hn::Mul(log(d, p), log10_e);
    store_n(d, l, y + i, n - i);
    // The lanes behind the row hold log10(1e-10), which nothing in it is below.
    top = hn::IfThenElse(hn::Or(hn::Gt(top, l), hn::IsNaN(top)), top, l);
  }
  HWY_ALIGN float last[hn::MaxLanes(D())];
  hn::Store(top, d, last);
  float result = lowest;
  for (int64_t i = 0; i < lanes; ++i) result = result > last[i] || std::isnan(result) ? result : last[i];
  return result;
}

// y = (max(y, floor) + 4) / 4; where the floor is NaN so are all.
void Floor(float* y, int64_t n, float floor) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, floor), quarter = hn::Set(d, 0.25f), four = hn::Set(d, 4.0f);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto l = load_n(d, y + i, n - i, 0.0f);
    store_n(d, hn::Mul(hn::Add(hn::IfThenElse(hn::Ge(l, f), l, f), four), quarter), y + i, n - i);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(Power);
HWY_EXPORT(LogPower);
HWY_EXPORT(Floor);

namespace {

constexpr int64_t kFrames = 64;  // at a time: their powers stay in the L2 cache
constexpr int64_t kF32 = sizeof(float);

// y[frames, mels] = power[frames, bins] times the transposed filters.
gemm::Gemm mel_product(const float* power, const float* filters, float* y, int64_t frames, int64_t bins, int64_t mels) {
  gemm::Gemm g = {.m = frames, .n = mels, .k = bins};
  g.a = {power, DType::F32, bins, 1};
  g.b = {filters, DType::F32, 1, bins};
  g.c = {y, DType::F32, mels, 1};
  return g;
}

// Powers, and what the products of a full block and of a last, shorter one need.
int64_t bytes_per_thread(int64_t frames, int64_t bins, int64_t mels) {
  int64_t most = 0;
  for (const int64_t m : {std::min(kFrames, frames), frames % kFrames})
    if (m > 0) most = std::max(most, gemm::scratch_bytes(mel_product(nullptr, nullptr, nullptr, m, bins, mels), 1));
  return round_up(round_up(kFrames * bins * kF32, 64) + most, 64);
}

}  // namespace

bool log_mel_supports(const Signature& s) { return s.input(0).dtype == DType::F32 && s.input(1).dtype == DType::F32; }

int64_t log_mel_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), f = s.input(1).shape.sizes();
  const int64_t frames = product(x) / x.back();
  return threads * bytes_per_thread(frames, f[1], f[0]);
}

void log_mel(const Call& call) {
  const host::View &x = call.input(0), &filters = call.input(1);
  const int64_t n = x.dim(x.rank() - 1) / 2, bins = filters.dim(1), mels = filters.dim(0);
  const int64_t frames = product(x.sizes) / (2 * n);
  const bool clip = call.attrs<ops::LogMelAttrs>().max_over == ops::MaxOver::kClip;
  const int64_t own = bytes_per_thread(frames, bins, mels);
  const auto* spectrum = call.input_as<float>(0);
  float* y = call.output_as<float>(0);
  call.pool().parallel_for(0, div_up(frames, kFrames), 1, [&](int64_t begin, int64_t end) {
    std::byte* scratch = call.scratch() + ThreadPool::this_thread() * own;
    auto* power = reinterpret_cast<float*>(scratch);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kFrames, count = std::min(kFrames, frames - first);
      for (int64_t t = 0; t < count; ++t) {
        const float* re = spectrum + (first + t) * 2 * n;
        HWY_DYNAMIC_DISPATCH(Power)(re, re + n, bins, power + t * bins);
      }
      gemm::run_alone(mel_product(power, call.input_as<float>(1), y + first * mels, count, bins, mels),
                      scratch + round_up(kFrames * bins * kF32, 64));
      if (clip) continue;
      for (int64_t t = first; t < first + count; ++t) {
        const float top = HWY_DYNAMIC_DISPATCH(LogPower)(y + t * mels, mels);
        HWY_DYNAMIC_DISPATCH(Floor)(y + t * mels, mels, top - 8);
      }
    }
  });
  if (!clip || mels == 0) return;
  // The frames of a clip share a maximum.
  const int64_t clip_size = x.dim(x.rank() - 2) * mels;
  call.pool().parallel_for(0, frames * mels / clip_size, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float top = HWY_DYNAMIC_DISPATCH(LogPower)(y + c * clip_size, clip_size);
      HWY_DYNAMIC_DISPATCH(Floor)(y + c * clip_size, clip_size, top - 8);
    }
  });
}

}  // namespace rlx::cpu
#endif
