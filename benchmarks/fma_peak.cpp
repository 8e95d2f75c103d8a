#include "fma_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma_peak.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains: more than latency times throughput on any machine so far. Returns the number of
// operations.
int64_t multiply_add(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const V a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  V sum[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sum[i] = hn::MulAdd(sum[i], a, b);
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) *sink += hn::GetLane(sum[i]);
  return rounds * 12 * 2 * static_cast<int64_t>(hn::Lanes(d));
}

}  // namespace rlx::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::bench {

HWY_EXPORT(multiply_add);

double fma_peak_gflops(int threads) {
  // Each thread takes the best of many short measurements: the machine may be busy with something else.
  constexpr int kParts = 400;
  constexpr int64_t kRounds = 40'000;
  std::vector<double> best(static_cast<size_t>(threads), 0.0);
  std::vector<std::thread> running;
  for (double& rate : best)
    running.emplace_back([&rate] {
      for (int part = 0; part < kParts; ++part) {
        float sink = 0;
        const auto start = std::chrono::steady_clock::now();
        const auto operations = static_cast<double>(HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sink));
        asm volatile("" : : "r"(&sink) : "memory");  // the sums are used
        const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
        rate = std::max(rate, operations / ns.count());
      }
    });
  for (std::thread& t : running) t.join();
  return std::accumulate(best.begin(), best.end(), 0.0);
}

}  // namespace rlx::bench
#endif
