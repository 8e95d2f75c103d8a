// Quantisation inside training: round to the grid, stay a float (spec 10, 4.12 and 4.16).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// What the gradient pretends that rounding does.
enum class Ste : int32_t { kIdentity, kClippedIdentity, kTanh, kHardTanh };
constexpr auto names_of(Ste) {
  return std::array<std::string_view, 4>{"identity", "clipped_identity", "tanh", "hard_tanh"};
}

// Where the scale comes from: the largest magnitude of this batch, a running mean of it, or the state as it is.
enum class ScaleMode : int32_t { kPerBatch, kEma, kFixed };
constexpr auto names_of(ScaleMode) { return std::array<std::string_view, 3>{"per_batch", "ema", "fixed"}; }

struct FakeQuantizeAttrs {
  int64_t bits = 8;             // 8, 4 or 2
  std::optional<int64_t> axis;  // absent: one scale for the tensor
  Ste ste = Ste::kIdentity;     // of the gradient; the forward ignores it
  ScaleMode scale_mode = ScaleMode::kPerBatch;
  float decay = 0.99f;  // of the running mean
  static constexpr auto fields =
      std::tuple{field("bits", &FakeQuantizeAttrs::bits), field("axis", &FakeQuantizeAttrs::axis),
                 field("ste", &FakeQuantizeAttrs::ste), field("scale_mode", &FakeQuantizeAttrs::scale_mode),
                 field("decay", &FakeQuantizeAttrs::decay)};
};
// (x, [state [channels] for ema and fixed]): y, and for ema the new state.
extern const Op<FakeQuantizeAttrs> fake_quantize;

struct FakeQuantizeLsqAttrs {
  int64_t bits = 8;
  std::optional<int64_t> axis;
  static constexpr auto fields =
      std::tuple{field("bits", &FakeQuantizeLsqAttrs::bits), field("axis", &FakeQuantizeLsqAttrs::axis)};
};
extern const Op<FakeQuantizeLsqAttrs> fake_quantize_lsq;           // (x, scale [channels])
extern const Op<FakeQuantizeLsqAttrs> fake_quantize_lsq_backward;  // (x, scale, dy): dx, dscale

struct FakeQuantizeBackwardAttrs {
  int64_t bits = 8;
  std::optional<int64_t> axis;
  Ste ste = Ste::kIdentity;
  static constexpr auto fields =
      std::tuple{field("bits", &FakeQuantizeBackwardAttrs::bits), field("axis", &FakeQuantizeBackwardAttrs::axis),
                 field("ste", &FakeQuantizeBackwardAttrs::ste)};
};
extern const Op<FakeQuantizeBackwardAttrs> fake_quantize_backward;  // (x, dy)

}  // namespace rlx::ops
