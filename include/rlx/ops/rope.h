// Rotary position embedding (spec 10, 4.6) and its gradient, and the two-dimensional form of SAM 2.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"
#include "rlx/ops/attention.h"

namespace rlx::ops {

enum class RopeStyle : int32_t {
  kNeox,  // pairs (i, half + i)
  kGptj   // pairs (2i, 2i + 1)
};
constexpr auto names_of(RopeStyle) { return std::array<std::string_view, 2>{"neox", "gptj"}; }

struct RopeAttrs {
  int64_t head_dim = 0;
  std::optional<int64_t> n_rot;  // absent: head_dim; the entries of a head beyond it are copied
  AttentionLayout layout = AttentionLayout::kBhsd;
  RopeStyle style = RopeStyle::kNeox;
  static constexpr auto fields = std::tuple{field("head_dim", &RopeAttrs::head_dim), field("n_rot", &RopeAttrs::n_rot),
                                            field("layout", &RopeAttrs::layout), field("style", &RopeAttrs::style)};
};

// (x, cos, sin, [positions]). Tables are [max_seq, head_dim / 2], or per batch [B, S, head_dim / 2]; positions I32 or
// I64 [S] or [B, S] choose rows of the former.
extern const Op<RopeAttrs> rope;
extern const Op<RopeAttrs> rope_backward;  // (dy, cos, sin, [positions])

// How S = end_x * end_y * repeat_factor tokens share positions: t mod (end_x * end_y), or t / repeat_factor.
enum class AxialRepeat : int32_t { kTile, kConsecutive };
constexpr auto names_of(AxialRepeat) { return std::array<std::string_view, 2>{"tile", "consecutive"}; }

struct AxialRope2dAttrs {
  int64_t end_x = 0, end_y = 0;
  int64_t head_dim = 0, num_heads = 1;
  float theta = 10000;
  int64_t repeat_factor = 1;  // less than 1 counts as 1
  AxialRepeat repeat = AxialRepeat::kTile;
  static constexpr auto fields = std::tuple{
      field("end_x", &AxialRope2dAttrs::end_x),       field("end_y", &AxialRope2dAttrs::end_y),
      field("head_dim", &AxialRope2dAttrs::head_dim), field("num_heads", &AxialRope2dAttrs::num_heads),
      field("theta", &AxialRope2dAttrs::theta),       field("repeat_factor", &AxialRope2dAttrs::repeat_factor),
      field("repeat", &AxialRope2dAttrs::repeat)};
};
extern const Op<AxialRope2dAttrs> axial_rope2d;  // (x [B, S, num_heads * head_dim])

}  // namespace rlx::ops
