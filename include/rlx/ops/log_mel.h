// Log-mel spectrogram of a spectrum in block layout, and its gradient (spec 10, 4.15).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// Over what the maximum is taken that floors the result: one frame, or all frames of the last axis but one.
enum class MaxOver : int32_t { kFrame, kClip };
constexpr auto names_of(MaxOver) { return std::array<std::string_view, 2>{"frame", "clip"}; }

struct LogMelAttrs {
  MaxOver max_over = MaxOver::kFrame;
  static constexpr auto fields = std::tuple{field("max_over", &LogMelAttrs::max_over)};
};
extern const Op<LogMelAttrs> log_mel;           // (spectrum [..., 2N], filters [n_mels, N/2 + 1])
extern const Op<LogMelAttrs> log_mel_backward;  // (spectrum, filters, dy [..., n_mels])

}  // namespace rlx::ops
