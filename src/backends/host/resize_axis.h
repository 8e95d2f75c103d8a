// How resize makes the elements along one axis: of which elements of x, and with which weights. ONNX's definition
// (onnx/reference/ops/op_resize.py).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rlx/ops/resize.h"

namespace rlx::host {

class ResizeAxis {
 public:
  ResizeAxis(const ops::ResizeAttrs& attrs, int64_t rank, int64_t axis, int64_t in, int64_t out)
      : attrs_(attrs),
        in_(in),
        out_(out),
        scale_(attrs.scales.empty() ? static_cast<double>(out) / static_cast<double>(in)
                                    : static_cast<double>(attrs.scales[static_cast<size_t>(axis)])) {
    if (crops()) {
      begin_ = attrs.roi[static_cast<size_t>(axis)];
      end_ = attrs.roi[static_cast<size_t>(axis + rank)];
    }
    const double shrink = attrs.antialias ? std::min(scale_, 1.0) : 1.0;
    const double reach = attrs.mode == ops::ResizeMode::kCubic ? 2 : 1;
    taps_ = attrs.mode == ops::ResizeMode::kNearest ? 1 : -2 * static_cast<int64_t>(std::floor(-reach / shrink));
  }

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t taps() const { return taps_; }  // elements of x that make one of the result
  // Does the axis stay as it is?
  bool is_identity() const {
    return in_ == out_ && std::fabs(scale_ - 1) <= 1e-9 * std::max(scale_, 1.0) &&
           (!crops() || (begin_ == 0 && end_ == 1));
  }

  // Element i: taps() elements of x and their weights. False: it is the extrapolation value.
  bool at(int64_t i, int64_t* index, double* weight) const {
    const double x = coordinate(static_cast<double>(i));
    if (crops() && !(x >= 0 && x <= static_cast<double>(in_ - 1))) return false;
    // The left neighbour is below x, also where x is an element itself: 0 < ratio <= 1.
    const double below = std::floor(x) == x ? x - 1 : std::floor(x), ratio = x - below;
    const auto left = static_cast<int64_t>(below);
    if (attrs_.mode == ops::ResizeMode::kNearest) {
      index[0] = clamped(left + (takes_right(ratio) ? 1 : 0));
      weight[0] = 1;
      return true;
    }
    const int64_t first = 1 - taps_ / 2;
    const double shrink = attrs_.antialias ? std::min(scale_, 1.0) : 1.0;
    double sum = 0;
    for (int64_t k = 0; k < taps_; ++k) {
      const int64_t place = left + first + k;
      weight[k] = kernel((static_cast<double>(first + k) - ratio) * shrink);
      index[k] = clamped(place);
      sum += weight[k];
    }
    if (attrs_.antialias)
      for (int64_t k = 0; k < taps_; ++k) weight[k] /= sum;
    if (attrs_.exclude_outside) {
      double inside = 0;
      for (int64_t k = 0; k < taps_; ++k) {
        const int64_t place = left + first + k;
        if (place < 0 || place >= in_) weight[k] = 0;
        inside += weight[k];
      }
      if (inside != 0)
        for (int64_t k = 0; k < taps_; ++k) weight[k] /= inside;
    }
    return true;
  }

 private:
  bool crops() const { return attrs_.coordinate == ops::ResizeCoordinate::kTfCropAndResize; }
  int64_t clamped(int64_t place) const { return std::clamp<int64_t>(place, 0, in_ - 1); }

  double coordinate(double i) const {
    const auto n = static_cast<double>(in_);
    const double m = scale_ * n;
    switch (attrs_.coordinate) {
      case ops::ResizeCoordinate::kHalfPixel: break;
      case ops::ResizeCoordinate::kHalfPixelSymmetric:
        return n / 2 * (1 - static_cast<double>(out_) / m) + (i + 0.5) / scale_ - 0.5;
      case ops::ResizeCoordinate::kPytorchHalfPixel:
        if (m == 1) return -0.5;
        break;
      case ops::ResizeCoordinate::kAlignCorners: return m == 1 ? 0 : i * (n - 1) / (m - 1);
      case ops::ResizeCoordinate::kAsymmetric: return i / scale_;
      case ops::ResizeCoordinate::kTfCropAndResize: {
        const float part = end_ - begin_, last = static_cast<float>(in_ - 1);
        const double inside = m == 1 ? static_cast<double>(part * last / 2) : i * part * (n - 1) / (m - 1);
        return inside + begin_ * last;
      }
    }
    return (i + 0.5) / scale_ - 0.5;
  }

  bool takes_right(double ratio) const {
    if (ratio == 1) return true;
    switch (attrs_.nearest) {
      case ops::ResizeNearest::kRoundPreferFloor: return ratio > 0.5;
      case ops::ResizeNearest::kRoundPreferCeil: return ratio >= 0.5;
      case ops::ResizeNearest::kFloor: return false;
      case ops::ResizeNearest::kCeil: return true;
    }
    return false;
  }

  // The weight of an element at a distance.
  double kernel(double distance) const {
    const double d = std::fabs(distance);
    if (attrs_.mode == ops::ResizeMode::kLinear) return std::max(0.0, 1 - d);
    const auto a = static_cast<double>(attrs_.cubic_coeff_a);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  }

  const ops::ResizeAttrs& attrs_;
  int64_t in_, out_;
  double scale_;
  float begin_ = 0, end_ = 1;
  int64_t taps_ = 1;
};

}  // namespace rlx::host
