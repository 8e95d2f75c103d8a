#include <algorithm>
#include <cmath>

#include "backends/host/roi_bins.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using host::RoiBins;
using host::RoiPoint;

template <class T>
double bin_of(const RoiBins<T>& bins, ops::RoiAlignMode mode, const Reader& x, int64_t plane, int64_t row,
              int64_t col) {
  double sum = 0, largest = 0;
  bool any = false;
  for (int64_t i = 0; i < bins.rows(); ++i)
    for (int64_t j = 0; j < bins.cols(); ++j) {
      const RoiPoint<T> p = bins.point(row, i, col, j);
      for (int k = 0; k < 4; ++k) {
        const double part = static_cast<double>(p.weight[k]) * x[plane + p.at[k]];
        sum += part;
        if (!any || !(std::isnan(largest) || largest > part)) largest = part;  // NaN wins
        any = true;
      }
    }
  if (mode == ops::RoiAlignMode::kMax) return largest;
  return sum / static_cast<double>(std::max<int64_t>(1, bins.rows() * bins.cols()));
}

template <class T>
void align(const Call& call) {
  const auto& attrs = call.attrs<ops::RoiAlignAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const Reader in = call.reader(0), rois = call.reader(1);
  const IntReader batch = call.int_reader(2);
  const Writer out = call.writer(0);
  int64_t to = 0;
  for (int64_t r = 0; r < y.dim(0); ++r) {
    const int64_t image = batch[r];
    if (image < 0 || image >= x.dim(0))
      fail(ErrorKind::kRuntime, str("Batch index (", image, ") is out of range for size (", x.dim(0), ")."));
    T roi[4];
    for (int64_t i = 0; i < 4; ++i) roi[i] = static_cast<T>(rois[4 * r + i]);
    const RoiBins<T> bins(attrs, roi, height, width);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t row = 0; row < y.dim(2); ++row)
        for (int64_t col = 0; col < y.dim(3); ++col)
          out.set(to++, bin_of(bins, attrs.mode, in, (image * channels + c) * height * width, row, col));
  }
}

}  // namespace

void roi_align(const Call& call) {
  if (call.input(0).dtype == DType::F64)
    align<double>(call);
  else
    align<float>(call);
}

}  // namespace rlx::reference
