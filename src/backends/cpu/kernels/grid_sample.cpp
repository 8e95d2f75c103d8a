#include "rlx/ops/grid_sample.h"

#include <algorithm>
#include <array>

#include "backends/cpu/kernels/kernels.h"
#include "backends/host/grid_axis.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::GridAxis;
using host::kMostGridTaps;
using host::View;

namespace {

constexpr int64_t kPlaces = 16;  // whose elements and weights are found together, for all channels
constexpr int kMostTaps = kMostGridTaps * kMostGridTaps * kMostGridTaps;

// The elements of a plane that make one of the result; those beyond the edges are left out.
struct Taps {
  int count = 0;
  int64_t from[kMostTaps];
  float weight[kMostTaps];
};

void find(std::span<const GridAxis<float>> axes, std::span<const int64_t> sizes, int per_axis, const float* coordinates,
          Taps& taps) {
  taps.count = 1;
  taps.from[0] = 0;
  taps.weight[0] = 1;
  Taps next;
  for (size_t a = 0; a < axes.size(); ++a) {
    int64_t index[kMostGridTaps];
    float weight[kMostGridTaps];
    axes[a].at(coordinates[axes.size() - 1 - a], index, weight);
    next.count = 0;
    for (int i = 0; i < taps.count; ++i)
      for (int k = 0; k < per_axis; ++k) {
        if (index[k] < 0) continue;
        next.from[next.count] = taps.from[i] * sizes[a] + index[k];
        next.weight[next.count++] = taps.weight[i] * weight[k];
      }
    taps.count = next.count;
    std::copy(next.from, next.from + next.count, taps.from);
    std::copy(next.weight, next.weight + next.count, taps.weight);
  }
}

}  // namespace

bool grid_sample_supports(const Signature& s) {
  return s.input(0).dtype == DType::F32 && s.input(1).dtype == DType::F32;
}

void grid_sample(const Call& call) {
  const auto& attrs = call.attrs<ops::GridSampleAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const auto space = static_cast<size_t>(x.rank() - 2);
  const std::span<const int64_t> sizes = x.sizes.subspan(2);
  std::array<GridAxis<float>, 3> axes;
  for (size_t a = 0; a < space; ++a) axes[a] = GridAxis<float>(attrs, sizes[a]);
  const int64_t channels = x.dim(1), plane = product(sizes), places = product(y.sizes.subspan(2));
  const int64_t blocks = (places + kPlaces - 1) / kPlaces;
  const int per_axis = host::grid_taps(attrs.mode);
  const auto* grid = call.input_as<float>(1);
  const auto* in = call.input_as<float>(0);
  auto* out = call.output_as<float>(0);
  const int64_t grain = std::max<int64_t>(1, kGrain / (4 * kPlaces * channels));
  call.pool().parallel_for(0, x.dim(0) * blocks, grain, [&](int64_t begin, int64_t end) {
    std::array<Taps, kPlaces> taps;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t n = b / blocks, first = b % blocks * kPlaces, count = std::min(kPlaces, places - first);
      for (int64_t p = 0; p < count; ++p)
        find({axes.data(), space}, sizes, per_axis, grid + (n * places + first + p) * static_cast<int64_t>(space),
             taps[static_cast<size_t>(p)]);
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = in + (n * channels + c) * plane;
        float* to = out + (n * channels + c) * places + first;
        for (int64_t p = 0; p < count; ++p) {
          const Taps& t = taps[static_cast<size_t>(p)];
          if (per_axis == 1) {  // a weight of 1 is no product: infinities stay what they are
            to[p] = t.count == 0 ? 0.0f : from[t.from[0]];
            continue;
          }
          float sum = 0;
          for (int k = 0; k < t.count; ++k) sum += t.weight[k] * from[t.from[k]];
          to[p] = sum;
        }
      }
    }
  });
}

}  // namespace rlx::cpu
