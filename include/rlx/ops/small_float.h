// Floats as codes of a small format and back. A code is a U8, one element per byte, whatever its format.
#pragma once

#include "rlx/graph.h"
#include "rlx/small_float.h"

namespace rlx::ops {

// Of any float dtype, as ONNX's Cast has it.
struct EncodeFloatAttrs {
  SmallFloat format = SmallFloat::kF8E4M3FN;
  bool saturate = true;                           // too large is the largest value, not infinity or NaN
  PowerRounding round_mode = PowerRounding::kUp;  // of f8e8m0
  static constexpr auto fields =
      std::tuple{field("format", &EncodeFloatAttrs::format), field("saturate", &EncodeFloatAttrs::saturate),
                 field("round_mode", &EncodeFloatAttrs::round_mode)};
};
extern const Op<EncodeFloatAttrs> encode_float;  // (x)

struct DecodeFloatAttrs {
  SmallFloat format = SmallFloat::kF8E4M3FN;
  DType to = DType::F32;  // a float dtype
  static constexpr auto fields =
      std::tuple{field("format", &DecodeFloatAttrs::format), field("to", &DecodeFloatAttrs::to)};
};
extern const Op<DecodeFloatAttrs> decode_float;  // (codes)

}  // namespace rlx::ops
