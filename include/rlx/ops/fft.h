#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// What every element is multiplied by (forward, inverse). The names are the graph's own: NumPy's "backward" is kForward
// and its "forward" is kForwardScaled (spec 10, Q33); rlx/signal.h takes NumPy's names.
enum class FftNorm : int32_t {
  kBackward,      // 1, 1
  kForward,       // 1, 1/N
  kOrtho,         // 1/sqrt(N), 1/sqrt(N)
  kForwardScaled  // 1/N, 1
};
constexpr auto names_of(FftNorm) {
  return std::array<std::string_view, 4>{"backward", "forward", "ortho", "forward_scaled"};
}

struct FftAttrs {
  bool inverse = false;
  FftNorm norm = FftNorm::kBackward;
  static constexpr auto fields = std::tuple{field("inverse", &FftAttrs::inverse), field("norm", &FftAttrs::norm)};
};
// Along the last axis: C64 [..., N], or F32 / F64 [..., 2N] with N real parts before N imaginary ones. Any N >= 1.
extern const Op<FftAttrs> fft;

}  // namespace rlx::ops
