#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/host/roi_bins.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::RoiBins;
using host::RoiPoint;
using host::View;

bool roi_align_supports(const Signature& s) { return s.input(0).dtype == DType::F32; }

static float larger(float a, float b) { return std::isnan(a) || a > b ? a : b; }  // NaN wins

// A region's bin at a time: its points are the same in every channel, whose sums stand in the result meanwhile.
void roi_align(const Call& call) {
  const auto& attrs = call.attrs<ops::RoiAlignAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), bins = y.dim(2) * y.dim(3);
  const auto* in = call.input_as<float>(0);
  const auto* rois = call.input_as<float>(1);
  auto* out = call.output_as<float>(0);
  const Indices batch(call.input(2));
  for (int64_t r = 0; r < y.dim(0); ++r)
    if (const int64_t image = batch.raw(r); image < 0 || image >= x.dim(0))
      fail(ErrorKind::kRuntime, str("Batch index (", image, ") is out of range for size (", x.dim(0), ")."));
  const int64_t grain = std::max<int64_t>(1, kGrain / (16 * channels));
  call.pool().parallel_for(0, y.dim(0) * bins, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / bins, row = i % bins / y.dim(3), col = i % y.dim(3);
      const RoiBins<float> grid(attrs, rois + 4 * r, height, width);
      const float* image = in + batch.raw(r) * channels * height * width;
      float* to = out + r * channels * bins + i % bins;
      for (int64_t c = 0; c < channels; ++c) to[c * bins] = 0;
      bool any = false;
      for (int64_t k = 0; k < grid.rows() * grid.cols(); ++k) {
        const RoiPoint<float> p = grid.point(row, k / grid.cols(), col, k % grid.cols());
        for (int64_t c = 0; c < channels; ++c) {
          const float* plane = image + c * height * width;
          float part[4];
          for (int q = 0; q < 4; ++q) part[q] = p.weight[q] * plane[p.at[q]];
          float& result = to[c * bins];
          if (attrs.mode == ops::RoiAlignMode::kAvg) {
            result += part[0] + part[1] + part[2] + part[3];
          } else {
            const float most = larger(larger(part[0], part[1]), larger(part[2], part[3]));
            result = any ? larger(result, most) : most;
          }
        }
        any = true;
      }
      if (attrs.mode == ops::RoiAlignMode::kAvg)
        for (int64_t c = 0; c < channels; ++c)
          to[c * bins] /= static_cast<float>(std::max<int64_t>(1, grid.rows() * grid.cols()));
    }
  });
}

}  // namespace rlx::cpu
