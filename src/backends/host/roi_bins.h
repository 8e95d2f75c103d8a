// Where the points of a region's bins lie (roi_align). ONNX's definition (onnx/reference/ops/op_roi_align.py). T is
// what coordinates are computed in: float, or double for F64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/ops/grid_sample.h"

namespace rlx::host {

// An interpolated point: four elements of a plane and their weights.
template <class T>
struct RoiPoint {
  int64_t at[4];
  T weight[4];
};

template <class T>
class RoiBins {
 public:
  // roi: x1, y1, x2, y2.
  RoiBins(const ops::RoiAlignAttrs& attrs, const T* roi, int64_t height, int64_t width)
      : y_(attrs, roi[1], roi[3], attrs.output_height, height), x_(attrs, roi[0], roi[2], attrs.output_width, width) {
    require_few();
  }

  int64_t rows() const { return y_.points; }  // points of a bin
  int64_t cols() const { return x_.points; }

  RoiPoint<T> point(int64_t bin_row, int64_t row, int64_t bin_col, int64_t col) const {
    const T y = y_.at(bin_row, row), x = x_.at(bin_col, col);
    RoiPoint<T> p{};
    if (!y_.inside(y) || !x_.inside(x)) return p;
    const auto [top, bottom, dy] = y_.between(y);
    const auto [left, right, dx] = x_.between(x);
    const int64_t at[4] = {top * x_.size + left, top * x_.size + right, bottom * x_.size + left,
                           bottom * x_.size + right};
    const T weight[4] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
    std::copy(at, at + 4, p.at);
    std::copy(weight, weight + 4, p.weight);
    return p;
  }

 private:
  struct Between {
    int64_t low, high;
    T part;
  };
  struct Axis {
    T start, bin;
    int64_t points, size;

    Axis(const ops::RoiAlignAttrs& attrs, T from, T to, int64_t bins, int64_t size_) : size(size_) {
      const bool half = attrs.coordinate_mode == ops::RoiCoordinate::kHalfPixel;
      const T scale = static_cast<T>(attrs.spatial_scale), offset = half ? T{0.5} : T{0};
      start = from * scale - offset;
      T extent = to * scale - offset - start;
      if (!half) extent = std::max(extent, T{1});
      bin = extent / static_cast<T>(bins);
      const T wanted = std::ceil(bin);
      if (!(std::fabs(wanted) < T{1 << 20}))
        fail(ErrorKind::kRuntime, str("A region from (", from, ") to (", to, ") has no bins that can be sampled."));
      points = attrs.sampling_ratio > 0 ? attrs.sampling_ratio : std::max<int64_t>(0, static_cast<int64_t>(wanted));
    }
    T at(int64_t b, int64_t i) const {
      return start + static_cast<T>(b) * bin + (static_cast<T>(i) + T{0.5}) * bin / static_cast<T>(points);
    }
    bool inside(T v) const { return v >= -1 && v <= static_cast<T>(size); }
    Between between(T v) const {
      v = std::max(v, T{0});
      const auto low = static_cast<int64_t>(v);
      if (low >= size - 1) return {size - 1, size - 1, T{0}};
      return {low, low + 1, v - static_cast<T>(low)};
    }
  };

  void require_few() const {
    if (y_.points * x_.points > 1 << 20)
      fail(ErrorKind::kRuntime,
           str("A region has bins of (", y_.points, ") x (", x_.points, ") points; at most 2^20 are sampled."));
  }

  Axis y_, x_;
};

}  // namespace rlx::host
