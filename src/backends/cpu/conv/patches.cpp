#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/patches.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/conv/patches.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/tail-inl.h"

#ifndef RLX_CONV_RUNS_
#define RLX_CONV_RUNS_
namespace rlx::cpu {
// Windows of a panel that lie in one row of the output.
struct Run {
  int64_t to, n;    // first column of the panel, number of windows
  int64_t z, y, x;  // of the first window's tap 0
};
// A panel has as many columns as two vectors have lanes.
inline constexpr int64_t kMostRuns = 64;
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Which lanes of a vector that begins at `at` of a row of `size` lie inside it.
HWY_INLINE hn::Mask<D> lanes_inside(D d, int64_t at, int64_t size) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto before = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(-at, 0, lanes)));
  const auto until = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(size - at, 0, lanes)));
  return hn::AndNot(before, until);
}

// One tap of up to a vector of neighbouring windows, for many channels: what is inside the row is decided once.
// x is the row of the first channel and at the tap's place in it; n windows are written.
HWY_INLINE void copy_channels(const float* x, int64_t plane, int64_t at, int64_t size, int64_t stride, int64_t n,
                              int64_t channels, float* to, int64_t to_channel) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto written = hn::FirstN(d, static_cast<size_t>(n));
  if (size == 0 || at >= size || at + (n - 1) * stride < 0) {
    for (int64_t c = 0; c < channels; ++c, to += to_channel) masked_store(d, written, hn::Zero(d), to);
    return;
  }
  x += at;
  if (stride == 1) {
    if (n == lanes && at >= 0 && at + lanes <= size) {
      for (int64_t c = 0; c < channels; ++c, x += plane, to += to_channel) hn::StoreU(hn::LoadU(d, x), d, to);
      return;
    }
    const auto inside = hn::And(lanes_inside(d, at, size), written);
    for (int64_t c = 0; c < channels; ++c, x += plane, to += to_channel)
      masked_store(d, written, masked_load(d, inside, x), to);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    const auto low = lanes_inside(d, at, std::min(size, at + 2 * n));
    const auto high = lanes_inside(d, at + lanes, std::min(size, at + 2 * n));
    const bool both = 2 * n > lanes;
    for (int64_t c = 0; c < channels; ++c, x += plane, to += to_channel) {
      const auto a = masked_load(d, low, x), b = both ? masked_load(d, high, x + lanes) : hn::Zero(d);
      masked_store(d, written, hn::ConcatEven(d, b, a), to);
    }
    return;
  }
#endif
  for (int64_t c = 0; c < channels; ++c, x += plane, to += to_channel)
    for (int64_t i = 0; i < n; ++i) to[i] = at + i * stride >= 0 && at + i * stride < size ? x[i * stride] : 0.0f;
}

void PackPatches(const Patches& p, const Run* runs, int64_t num_runs, int64_t k0, int64_t k1, int64_t panel,
                 float* dst) {
  const WindowAxis &az = p.axes[0], &ay = p.axes[1], &ax = p.axes[2];
  const int64_t taps = taps_of(p.axes), plane = plane_of(p.axes);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t tap = 0;
  for (int64_t tz = 0; tz < az.taps; ++tz)
    for (int64_t ty = 0; ty < ay.taps; ++ty)
      for (int64_t tx = 0; tx < ax.taps; ++tx, ++tap) {
        // The channels whose row of this tap is among those wanted.
        const int64_t first = div_up(std::max<int64_t>(k0 - tap, 0), taps);
        const int64_t channels = div_up(std::max<int64_t>(k1 - tap, 0), taps) - first;
        if (channels <= 0) continue;
        float* to = dst + (first * taps + tap - k0) * panel;
        for (int64_t r = 0; r < num_runs; ++r) {
          const Run& run = runs[r];
          const int64_t z = run.z + tz * az.step, y = run.y + ty * ay.step, x = run.x + tx * ax.step;
          const bool padding = !az.inside(z) || !ay.inside(y);
          const float* row = p.x + first * plane + (padding ? 0 : (z * ay.in + y) * ax.in);
          for (int64_t i = 0; i < run.n; i += lanes)
            copy_channels(row, plane, padding ? ax.in : x + i * ax.stride, ax.in, ax.stride, std::min(lanes, run.n - i),
                          channels, to + run.to + i, taps * panel);
        }
      }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(PackPatches);

void pack_patches(const Patches& p, int64_t k0, int64_t k1, int64_t window, int64_t n, int64_t panel, float* dst) {
  const WindowAxis &az = p.axes[0], &ay = p.axes[1], &ax = p.axes[2];
  Run runs[kMostRuns];
  int64_t count = 0;
  for (int64_t to = 0; to < n;) {
    const int64_t w = window + to, ox = w % ax.out, oy = w / ax.out % ay.out, oz = w / ax.out / ay.out;
    const int64_t length = std::min(n - to, ax.out - ox);
    runs[count++] = {to, length, oz * az.stride + az.first, oy * ay.stride + ay.first, ox * ax.stride + ax.first};
    to += length;
  }
  HWY_DYNAMIC_DISPATCH(PackPatches)(p, runs, count, k0, k1, panel, dst);
}

}  // namespace rlx::cpu
#endif
