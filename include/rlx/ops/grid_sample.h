// Elements at places that another tensor holds: ONNX's GridSample and RoiAlign.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

enum class GridSampleMode : int32_t { kLinear, kNearest, kCubic };
constexpr auto names_of(GridSampleMode) { return std::array<std::string_view, 3>{"linear", "nearest", "cubic"}; }

// What is beyond the edges of x: zeros, the edge, or x mirrored.
enum class GridPadding : int32_t { kZeros, kBorder, kReflection };
constexpr auto names_of(GridPadding) { return std::array<std::string_view, 3>{"zeros", "border", "reflection"}; }

struct GridSampleAttrs {
  GridSampleMode mode = GridSampleMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;  // -1 and 1 are the middles of the outermost elements, not their outer edges
  static constexpr auto fields =
      std::tuple{field("mode", &GridSampleAttrs::mode), field("padding", &GridSampleAttrs::padding),
                 field("align_corners", &GridSampleAttrs::align_corners)};
};
extern const Op<GridSampleAttrs> grid_sample;  // x, grid

enum class RoiAlignMode : int32_t { kAvg, kMax };
constexpr auto names_of(RoiAlignMode) { return std::array<std::string_view, 2>{"avg", "max"}; }

// half_pixel: the middle of element i lies at i + 0.5. output_half_pixel: at i, and regions are at least 1 by 1.
enum class RoiCoordinate : int32_t { kHalfPixel, kOutputHalfPixel };
constexpr auto names_of(RoiCoordinate) { return std::array<std::string_view, 2>{"half_pixel", "output_half_pixel"}; }

struct RoiAlignAttrs {
  RoiAlignMode mode = RoiAlignMode::kAvg;
  int64_t output_height = 1, output_width = 1;
  int64_t sampling_ratio = 0;  // points per bin in each direction; 0: as many as it has elements
  float spatial_scale = 1;     // of the regions' coordinates
  RoiCoordinate coordinate_mode = RoiCoordinate::kHalfPixel;
  static constexpr auto fields = std::tuple{field("mode", &RoiAlignAttrs::mode),
                                            field("output_height", &RoiAlignAttrs::output_height),
                                            field("output_width", &RoiAlignAttrs::output_width),
                                            field("sampling_ratio", &RoiAlignAttrs::sampling_ratio),
                                            field("spatial_scale", &RoiAlignAttrs::spatial_scale),
                                            field("coordinate_mode", &RoiAlignAttrs::coordinate_mode)};
};
extern const Op<RoiAlignAttrs> roi_align;  // x, rois, batch_indices

}  // namespace rlx::ops
