// Interpolation on the grid of another size: ONNX's Resize with all its ways to find coordinates.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

enum class ResizeMode : int32_t { kNearest, kLinear, kCubic };
constexpr auto names_of(ResizeMode) { return std::array<std::string_view, 3>{"nearest", "linear", "cubic"}; }

// Where element i of the result lies in x, with the scale s, sizes n of x and m = s * n:
enum class ResizeCoordinate : int32_t {
  kHalfPixel,           // (i + 0.5) / s - 0.5
  kHalfPixelSymmetric,  // the same, moved so that the middle of the result is the middle of x
  kPytorchHalfPixel,    // the same as kHalfPixel, but -0.5 where m is 1
  kAlignCorners,        // i * (n - 1) / (m - 1), 0 where m is 1
  kAsymmetric,          // i / s
  kTfCropAndResize,     // within the part of x between roi[axis] and roi[axis + rank], both in 0 … 1
};
constexpr auto names_of(ResizeCoordinate) {
  return std::array<std::string_view, 6>{"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                         "align_corners", "asymmetric",           "tf_crop_and_resize"};
}

// Which neighbour is the nearest one; "prefer" is for the middle between two.
enum class ResizeNearest : int32_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
constexpr auto names_of(ResizeNearest) {
  return std::array<std::string_view, 4>{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
}

struct ResizeAttrs {
  std::vector<Dim> sizes;     // of the result, one per axis
  std::vector<float> scales;  // what coordinates are computed with, one per axis; empty: result's size / x's
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinate coordinate = ResizeCoordinate::kHalfPixel;
  ResizeNearest nearest = ResizeNearest::kRoundPreferFloor;
  float cubic_coeff_a = -0.75f;
  bool exclude_outside = false;   // neighbours beyond the edge have no weight, else they equal the edge
  float extrapolation_value = 0;  // of coordinates beyond x (tf_crop_and_resize)
  bool antialias = false;         // where it shrinks, neighbours are as far apart as the result's elements
  std::vector<float> roi;         // tf_crop_and_resize: all begins, then all ends
  static constexpr auto fields = std::tuple{field("sizes", &ResizeAttrs::sizes),
                                            field("scales", &ResizeAttrs::scales),
                                            field("mode", &ResizeAttrs::mode),
                                            field("coordinate", &ResizeAttrs::coordinate),
                                            field("nearest", &ResizeAttrs::nearest),
                                            field("cubic_coeff_a", &ResizeAttrs::cubic_coeff_a),
                                            field("exclude_outside", &ResizeAttrs::exclude_outside),
                                            field("extrapolation_value", &ResizeAttrs::extrapolation_value),
                                            field("antialias", &ResizeAttrs::antialias),
                                            field("roi", &ResizeAttrs::roi)};
};
extern const Op<ResizeAttrs> resize;  // x

}  // namespace rlx::ops
