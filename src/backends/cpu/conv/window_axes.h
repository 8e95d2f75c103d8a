// Sliding windows as kernels see them: three axes, no memory of their own. Spatial axes that are missing come first and
// have size 1.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rlx::cpu {

// Tap t of window o lies at o * stride + first + t * step of the input; outside of [0, in) it is padding, outside of
// [first, in + behind) not even that.
struct WindowAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, first = 0, step = 1, behind = 0;

  bool inside(int64_t at) const { return at >= 0 && at < in; }
};
using WindowAxes = std::array<WindowAxis, 3>;

inline int64_t windows_of(const WindowAxes& a) { return a[0].out * a[1].out * a[2].out; }
inline int64_t taps_of(const WindowAxes& a) { return a[0].taps * a[1].taps * a[2].taps; }
inline int64_t plane_of(const WindowAxes& a) { return a[0].in * a[1].in * a[2].in; }

// Of a forward conv or pool; sizes are [N, C, spatial...] of both sides. Allocates nothing: see ops/window.h for the
// meaning of the lists.
template <class A>
WindowAxes window_axes(const A& attrs, std::span<const int64_t> in, std::span<const int64_t> out) {
  const auto entry = [](const std::vector<int64_t>& list, size_t i, int64_t missing) {
    return i < list.size() ? list[i] : missing;
  };
  WindowAxes axes;
  const size_t rank = attrs.kernel_size.size(), ends = attrs.padding.size() == 2 * rank ? rank : 0;
  for (size_t i = 0; i < rank; ++i)
    axes[3 - rank + i] = {.in = in[i + 2],
                          .out = out[i + 2],
                          .taps = attrs.kernel_size[i],
                          .stride = entry(attrs.stride, i, 1),
                          .first = -entry(attrs.padding, i, 0),
                          .step = entry(attrs.dilation, i, 1),
                          .behind = entry(attrs.padding, ends + i, 0)};
  return axes;
}

// A window of one element that visits every element: the spatial axes are one long axis.
inline WindowAxes joined_where_pointwise(const WindowAxes& axes) {
  for (const WindowAxis& a : axes)
    if (a.taps != 1 || a.stride != 1 || a.first != 0 || a.in != a.out) return axes;
  const int64_t plane = plane_of(axes);
  return {WindowAxis{}, WindowAxis{}, WindowAxis{.in = plane, .out = plane}};
}

}  // namespace rlx::cpu
