#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct WelchPeaksAttrs {
  int64_t k = 1;           // peaks, at most N/2 + 1
  int64_t n_segments = 1;  // consecutive rows that are averaged
  static constexpr auto fields =
      std::tuple{field("k", &WelchPeaksAttrs::k), field("n_segments", &WelchPeaksAttrs::n_segments)};
};
// Spectrum [B * n_segments, 2N] in block layout to [B, 2k]: pairs of bin and power, the largest first.
extern const Op<WelchPeaksAttrs> welch_peaks;

}  // namespace rlx::ops
