// Which scale of quantize_linear and dequantize_linear belongs to an element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "rlx/shape.h"

namespace rlx::ops {

// One number for the whole tensor: also [1], which is the same whatever the axis.
inline bool is_one_scale(const Shape& scale) {
  return std::all_of(scale.begin(), scale.end(), [](const Dim& d) { return d.is(1); }) && scale.rank() <= 1;
}

// A tensor as [outer, cols, inner] around the axis of its scales.
struct LinearScales {
  int64_t outer = 1, cols = 1, inner = 1;  // before, along and after the axis
  int64_t block = 1, blocks = 1;           // indices of the axis per scale, scales along it
  bool in_blocks = false;                  // every (outer, inner) has scales of its own

  LinearScales(std::span<const int64_t> sizes, std::span<const int64_t> scale, int64_t axis, int64_t block_size) {
    bool one = scale.size() <= 1;
    for (const int64_t s : scale) one = one && s == 1;
    in_blocks = block_size > 0;
    if (one && !in_blocks) {
      for (const int64_t s : sizes) inner *= s;
      return;
    }
    const int64_t a = normalize_axis(axis, static_cast<int64_t>(sizes.size()));
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
      (d < a ? outer : d == a ? cols : inner) *= sizes[static_cast<size_t>(d)];
    block = in_blocks ? block_size : 1;
    blocks = (cols + block - 1) / block;
  }

  // The scale of element (o, c, i).
  int64_t of(int64_t o, int64_t c, int64_t i) const {
    return in_blocks ? (o * blocks + c / block) * inner + i : c / block;
  }
};

}  // namespace rlx::ops
