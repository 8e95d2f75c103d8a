#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/peaks.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "backends/cpu/peaks.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains hide the latency of the multiply-add. Returns the operations done.
int64_t MultiplyAdds(int64_t rounds, float* out) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 0.999f), add = hn::Set(d, 0.001f);
  // Different from the start: the compiler computes equal chains once.
  auto a = hn::Set(d, 1.0f), b = hn::Add(a, a), c = hn::Add(a, b), e = hn::Add(a, c), f = hn::Add(a, e);
  auto g = hn::Add(a, f), h = hn::Add(a, g), i = hn::Add(a, h), j = hn::Add(a, i), k = hn::Add(a, j);
  auto l = hn::Add(a, k), m = hn::Add(a, l);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, scale, add), b = hn::MulAdd(b, scale, add), c = hn::MulAdd(c, scale, add);
    e = hn::MulAdd(e, scale, add), f = hn::MulAdd(f, scale, add), g = hn::MulAdd(g, scale, add);
    h = hn::MulAdd(h, scale, add), i = hn::MulAdd(i, scale, add), j = hn::MulAdd(j, scale, add);
    k = hn::MulAdd(k, scale, add), l = hn::MulAdd(l, scale, add), m = hn::MulAdd(m, scale, add);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(hn::Add(j, k), hn::Add(l, m))));
  *out = hn::GetLane(sum);
  return rounds * 12 * 2 * static_cast<int64_t>(hn::Lanes(d));
}

int64_t ReadAll(const uint64_t* data, int64_t n) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, data + i));
    b = hn::Add(b, hn::LoadU(d, data + i + lanes));
    c = hn::Add(c, hn::LoadU(d, data + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, data + i + 3 * lanes));
  }
  return static_cast<int64_t>(hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(ReadAll);

// The shortest of several tries: everything that disturbs makes it longer.
template <class F>
static double best_seconds(int tries, F&& f) {
  double best = 1e30;
  for (int t = 0; t < tries; ++t) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Peaks measure_peaks(ThreadPool& pool) {
  Peaks peaks;
  const int64_t threads = pool.threads(), kRounds = 4'000'000, kBytes = int64_t{256} << 20, kPiece = int64_t{1} << 20;
  std::atomic<int64_t> flops = 0, sum = 0;
  const double multiply_seconds = best_seconds(5, [&] {
    flops = 0;
    pool.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      float sink = 0;
      for (int64_t t = begin; t < end; ++t) flops += HWY_DYNAMIC_DISPATCH(MultiplyAdds)(kRounds, &sink);
      sum += static_cast<int64_t>(sink);
    });
  });
  peaks.gflops = static_cast<double>(flops.load()) / multiply_seconds * 1e-9;
  std::vector<char> from(static_cast<size_t>(kBytes), 1), to(static_cast<size_t>(kBytes), 2);
  const auto pieces = [&](auto&& f) {
    pool.parallel_for(0, kBytes / kPiece, 16,
                      [&](int64_t begin, int64_t end) { f(begin * kPiece, (end - begin) * kPiece); });
  };
  const double copy_seconds = best_seconds(7, [&] {
    pieces([&](int64_t at, int64_t n) { std::memcpy(to.data() + at, from.data() + at, static_cast<size_t>(n)); });
  });
  peaks.copy_gbs = 2 * static_cast<double>(kBytes) / copy_seconds * 1e-9;
  const double read_seconds = best_seconds(7, [&] {
    pieces([&](int64_t at, int64_t n) {
      sum += HWY_DYNAMIC_DISPATCH(ReadAll)(reinterpret_cast<const uint64_t*>(from.data() + at), n / 8);
    });
  });
  peaks.read_gbs = static_cast<double>(kBytes) / read_seconds * 1e-9;
  peaks.target = hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets());
  return peaks;
}

}  // namespace rlx::cpu
#endif
