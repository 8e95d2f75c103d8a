// Normalisation: (x - mean) / sqrt(variance + eps) * gamma + beta over parts of a tensor. The variance is biased.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct LayerNormAttrs {
  int64_t axis = -1;  // the first of the normalised axes; the others follow it
  float eps = 1e-5f;
  static constexpr auto fields = std::tuple{field("axis", &LayerNormAttrs::axis), field("eps", &LayerNormAttrs::eps)};
};
extern const Op<LayerNormAttrs> layer_norm;           // x, gamma, beta
extern const Op<LayerNormAttrs> layer_norm_backward;  // x, gamma, dy -> dx, dgamma, dbeta

struct RmsNormAttrs {
  int64_t axis = -1;
  float eps = 1e-5f;
  static constexpr auto fields = std::tuple{field("axis", &RmsNormAttrs::axis), field("eps", &RmsNormAttrs::eps)};
};
extern const Op<RmsNormAttrs> rms_norm;           // x, gamma, [beta]
extern const Op<RmsNormAttrs> rms_norm_backward;  // x, gamma, [beta], dy -> dx, dgamma, [dbeta]

struct LayerNorm2dAttrs {
  float eps = 1e-5f;
  static constexpr auto fields = std::tuple{field("eps", &LayerNorm2dAttrs::eps)};
};
extern const Op<LayerNorm2dAttrs> layer_norm2d;  // x [N, C, H, W], gamma [C], beta [C]

struct GroupNormAttrs {
  int64_t num_groups = 1;
  float eps = 1e-5f;
  static constexpr auto fields =
      std::tuple{field("num_groups", &GroupNormAttrs::num_groups), field("eps", &GroupNormAttrs::eps)};
};
extern const Op<GroupNormAttrs> group_norm;           // x [N, C, ...], gamma [C], beta [C]
extern const Op<GroupNormAttrs> group_norm_backward;  // x, gamma, dy -> dx, dgamma, dbeta

}  // namespace rlx::ops
