// The matrix that a convolution multiplies its weights with, made a panel at a time and never as a whole.
#pragma once

#include <cstdint>

#include "backends/cpu/conv/window_axes.h"

namespace rlx::cpu {

struct Patches {
  const float* x = nullptr;  // [channels, in...] of one image and group
  WindowAxes axes;
};

// Rows [k0, k1) of the matrix, k = (channel, tap), and columns [window, window + n) of it: dst[k - k0][panel], zeros in
// the padding. Columns n and up are left as they are: nobody stores what they give.
void pack_patches(const Patches& p, int64_t k0, int64_t k1, int64_t window, int64_t n, int64_t panel, float* dst);

}  // namespace rlx::cpu
