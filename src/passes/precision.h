// Which ops compute in which float type (spec 20, 1.4.12).
#pragma once

#include "rlx/dtype.h"

namespace rlx::passes {

enum class PrecisionPolicy {
  kAlwaysF32,              // as the graph says
  kAlwaysF16,              // every category
  kAutoMixedConservative,  // f16, but reductions in f32
  kAutoMixed,              // f16; kernels accumulate in f32
  kAutoMixedBf16,
  kCustom,  // PassOptions::custom_precision
};

// F32, F16 or BF16 per category of ops. Leaves always keep the type they were declared with.
struct PrecisionMap {
  DType compute = DType::F32;
  DType reduction = DType::F32;
  DType elementwise = DType::F32;
  DType data_movement = DType::F32;  // F32: stays or returns to it; else follows its operand
};

constexpr PrecisionMap precision_map(PrecisionPolicy policy, const PrecisionMap& custom) {
  switch (policy) {
    case PrecisionPolicy::kAlwaysF32: return {};
    case PrecisionPolicy::kAlwaysF16:
    case PrecisionPolicy::kAutoMixed: return {DType::F16, DType::F16, DType::F16, DType::F16};
    case PrecisionPolicy::kAutoMixedConservative: return {DType::F16, DType::F32, DType::F16, DType::F16};
    case PrecisionPolicy::kAutoMixedBf16: return {DType::BF16, DType::BF16, DType::BF16, DType::BF16};
    case PrecisionPolicy::kCustom: return custom;
  }
  return {};
}

}  // namespace rlx::passes
