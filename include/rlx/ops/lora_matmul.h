#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct LoraMatmulAttrs {
  float scale = 1;
  static constexpr auto fields = std::tuple{field("scale", &LoraMatmulAttrs::scale)};
};
extern const Op<LoraMatmulAttrs> lora_matmul;  // x [..., M, K], w [K, N], a [K, R], b [R, N]

}  // namespace rlx::ops
