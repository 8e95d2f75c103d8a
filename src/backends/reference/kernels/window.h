// Windows of 1 to 3 spatial axes, walked as three.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "ops/window.h"

namespace rlx::reference {

// Axes that are missing come first and have size 1. `in` is the side that windows slide over, `out` has one element per
// window; a transposed convolution swaps the two.
struct WindowWalk {
  std::array<int64_t, 3> in = {1, 1, 1}, out = {1, 1, 1}, kernel = {1, 1, 1}, stride = {1, 1, 1}, padding = {0, 0, 0},
                         padding_end = {0, 0, 0}, dilation = {1, 1, 1};

  // Sizes are [N, C, spatial…] of both sides.
  WindowWalk(const ops::Window& window, std::span<const int64_t> in_sizes, std::span<const int64_t> out_sizes) {
    const auto rank = static_cast<size_t>(window.rank());
    for (size_t i = 0; i < rank; ++i) {
      const size_t a = 3 - rank + i;
      in[a] = in_sizes[i + 2];
      out[a] = out_sizes[i + 2];
      kernel[a] = window.kernel[i];
      stride[a] = window.stride[i];
      padding[a] = window.padding[i];
      padding_end[a] = window.padding_end[i];
      dilation[a] = window.dilation[i];
    }
  }

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t windows() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }

  // The tap's position along an axis, padding included: negative or >= in[axis] lies in it.
  int64_t at(int axis, int64_t o, int64_t k) const { return o * stride[axis] + k * dilation[axis] - padding[axis]; }
  std::array<int64_t, 3> window(int64_t o) const { return {o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]}; }

  // f(tap, element of the input plane) for the taps of window o that lie inside the input, in row-major order.
  template <class F>
  void for_each_tap(int64_t o, const F& f) const {
    const auto [oz, oy, ox] = window(o);
    for (int64_t kz = 0; kz < kernel[0]; ++kz) {
      const int64_t z = at(0, oz, kz);
      if (z < 0 || z >= in[0]) continue;
      for (int64_t ky = 0; ky < kernel[1]; ++ky) {
        const int64_t y = at(1, oy, ky);
        if (y < 0 || y >= in[1]) continue;
        for (int64_t kx = 0; kx < kernel[2]; ++kx) {
          const int64_t x = at(2, ox, kx);
          if (x < 0 || x >= in[2]) continue;
          f((kz * kernel[1] + ky) * kernel[2] + kx, (z * in[1] + y) * in[2] + x);
        }
      }
    }
  }

  // Taps of window o inside the input and its padding: fewer than all only where ceil mode lets a window hang over.
  int64_t padded_taps(int64_t o) const {
    const std::array<int64_t, 3> first = window(o);
    int64_t count = 1;
    for (int a = 0; a < 3; ++a) {
      int64_t inside = 0;
      for (int64_t k = 0; k < kernel[a]; ++k) inside += at(a, first[a], k) < in[a] + padding_end[a];
      count *= inside;
    }
    return count;
  }
};

}  // namespace rlx::reference
