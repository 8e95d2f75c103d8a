// Codes of floats with scales and zero points that are operands. Both are one number, one per index of `axis`, or, with
// a block size, one per block of that many indices of `axis` (a tensor of x's rank).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct QuantizeLinearAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;            // 0: not in blocks
  DType to = DType::I8;              // I8, U8, I16, U16 or I32
  std::optional<int64_t> low, high;  // of the codes; else what the dtype holds
  static constexpr auto fields =
      std::tuple{field("axis", &QuantizeLinearAttrs::axis), field("block_size", &QuantizeLinearAttrs::block_size),
                 field("to", &QuantizeLinearAttrs::to), field("low", &QuantizeLinearAttrs::low),
                 field("high", &QuantizeLinearAttrs::high)};
};
extern const Op<QuantizeLinearAttrs> quantize_linear;  // (x, scale, optional zero point of dtype `to`)

struct DequantizeLinearAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  std::optional<DType> to;  // else the scale's
  static constexpr auto fields =
      std::tuple{field("axis", &DequantizeLinearAttrs::axis), field("block_size", &DequantizeLinearAttrs::block_size),
                 field("to", &DequantizeLinearAttrs::to)};
};
extern const Op<DequantizeLinearAttrs> dequantize_linear;  // (q, scale, optional zero point of q's dtype)

}  // namespace rlx::ops
