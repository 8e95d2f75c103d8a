// quantize and dequantize: one scale for a run of elements, or one per element of the last axis.
#include "rlx/ops/quantize.h"

#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/int8.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kNoZero = 0;

// Calls fn(first element, count, steps) for runs of at most kRun elements that one set of steps describes.
template <class F>
void for_each_run(const Call& call, const F& fn) {
  constexpr int64_t kRun = 4096;
  const auto& attrs = call.attrs<ops::QuantizeAttrs>();
  const std::span<const int64_t> sizes = call.input(0).sizes;
  host::SplitAt split{1, 1, call.input(0).elements()};
  if (attrs.axis) split = host::split_at(sizes, *attrs.axis);
  const std::vector<float>& scales = attrs.scales;
  const std::vector<int64_t>& zeros = attrs.zero_points;
  if (scales.size() <= 1 && zeros.size() <= 1) split = {1, 1, call.input(0).elements()};
  const bool along = split.inner == 1;  // the channel changes with every element
  const int64_t row = along ? split.cols : split.inner, rows = call.input(0).elements() / row;
  const int64_t pieces = div_up(row, kRun);
  call.pool().parallel_for(
      0, rows * pieces, std::max<int64_t>(1, kGrain / std::min(row, kRun)), [&, split](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t in_row = t % pieces * kRun, channel = along ? in_row : t / pieces % split.cols;
          const auto at = static_cast<size_t>(channel);
          const quant::Steps steps{scales.size() == 1 ? scales.data() : scales.data() + at,
                                   along && scales.size() > 1 ? 1 : 0,
                                   zeros.empty()       ? &kNoZero
                                   : zeros.size() == 1 ? zeros.data()
                                                       : zeros.data() + at,
                                   along && zeros.size() > 1 ? 1 : 0};
          fn(t / pieces * row + in_row, std::min(kRun, row - in_row), steps);
        }
      });
}

}  // namespace

void quantize(const Call& call) {
  const host::View& x = call.input(0);
  int8_t* q = call.output_as<int8_t>(0);
  for_each_run(call, [&](int64_t first, int64_t count, quant::Steps steps) {
    constexpr int64_t kBuffer = 512;
    float buffer[kBuffer];
    for (int64_t i = 0; i < count; i += kBuffer) {
      const int64_t n = std::min(kBuffer, count - i);
      quant::quantize_run(row_as_f32(x.dtype, x.data, first + i, buffer, n), n, steps, q + first + i);
      steps.scale += n * steps.scale_step;
      steps.zero += n * steps.zero_step;
    }
  });
}

void dequantize(const Call& call) {
  for_each_run(call, [&](int64_t first, int64_t count, const quant::Steps& steps) {
    quant::dequantize_run(call.input_as<int8_t>(0) + first, count, steps, call.output_as<float>(0) + first);
  });
}

}  // namespace rlx::cpu
