// Which elements along an axis grid_sample reads for a coordinate, and their weights. ONNX's definition
// (onnx/reference/ops/op_grid_sample.py). T is what coordinates are computed in: float, or double for an F64 grid.
// Backends share it, so that they agree where a coordinate is in the middle between two elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rlx/ops/grid_sample.h"

namespace rlx::host {

inline constexpr int kMostGridTaps = 4;

inline int grid_taps(ops::GridSampleMode mode) {
  switch (mode) {
    case ops::GridSampleMode::kNearest: return 1;
    case ops::GridSampleMode::kLinear: return 2;
    case ops::GridSampleMode::kCubic: return 4;
  }
  return 1;
}

template <class T>
class GridAxis {
 public:
  GridAxis() = default;
  GridAxis(const ops::GridSampleAttrs& attrs, int64_t size)
      : mode_(attrs.mode),
        padding_(attrs.padding),
        align_(attrs.align_corners),
        size_(size),
        low_(attrs.align_corners ? 0 : -0.5),
        high_(static_cast<double>(size) - (attrs.align_corners ? 1.0 : 0.5)) {}

  // grid_taps(mode) elements, -1 where there is none, and weights.
  void at(T normalized, int64_t* index, T* weight) const {
    T x = coordinate(normalized);
    if (mode_ == ops::GridSampleMode::kNearest) x = std::nearbyint(x);
    const auto wide = static_cast<double>(x);
    if (wide < low_ || wide > high_) {
      if (padding_ == ops::GridPadding::kBorder) x = std::clamp(x, T{0}, static_cast<T>(size_ - 1));
      if (padding_ == ops::GridPadding::kReflection) x = static_cast<T>(reflected(wide));
    }
    // NaN, and what no integer holds, is as far outside as can be.
    if (!(std::abs(static_cast<double>(x)) < 0x1p52)) x = padding_ == ops::GridPadding::kZeros ? T{-8} : T{0};
    if (mode_ == ops::GridSampleMode::kNearest) {
      index[0] = element(static_cast<int64_t>(x));
      weight[0] = 1;
      return;
    }
    const auto left = static_cast<int64_t>(std::floor(x));
    const T t = x - static_cast<T>(left);
    if (mode_ == ops::GridSampleMode::kLinear) {
      weight[0] = 1 - t;
      weight[1] = t;
    } else {
      weight[0] = far(t + 1);
      weight[1] = near(t);
      weight[2] = near(1 - t);
      weight[3] = far(2 - t);
    }
    const int taps = grid_taps(mode_);
    for (int k = 0; k < taps; ++k) index[k] = element(left + k + 1 - taps / 2);
  }

 private:
  static constexpr T kA = T{-0.75};  // of the cubic
  static T near(T d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; }
  static T far(T d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; }

  T coordinate(T n) const {
    if (std::isnan(n)) n = -1;
    const auto size = static_cast<T>(size_);
    const T x = align_ ? (n + 1) / 2 * (size - 1) : ((n + 1) * size - 1) / 2;
    constexpr T kFar = T{1 << 30};  // all the same out there
    return std::clamp(x, -kFar, kFar);
  }

  double reflected(double x) const {
    const double range = high_ - low_;
    if (!(range > 0)) return low_;
    const bool below = x < low_;
    if (!below && x <= high_) return x;
    const double beyond = below ? low_ - x : x - high_;
    const auto turns = static_cast<int64_t>(beyond / range);
    const double rest = beyond - static_cast<double>(turns) * range;
    return below == (turns % 2 == 0) ? low_ + rest : high_ - rest;
  }

  int64_t element(int64_t i) const {
    switch (padding_) {
      case ops::GridPadding::kZeros: return i >= 0 && i < size_ ? i : -1;
      case ops::GridPadding::kBorder: break;
      case ops::GridPadding::kReflection: i = static_cast<int64_t>(reflected(static_cast<double>(i))); break;
    }
    return std::clamp<int64_t>(i, 0, size_ - 1);
  }

  ops::GridSampleMode mode_ = ops::GridSampleMode::kLinear;
  ops::GridPadding padding_ = ops::GridPadding::kZeros;
  bool align_ = false;
  int64_t size_ = 1;
  double low_ = 0, high_ = 0;
};

}  // namespace rlx::host
