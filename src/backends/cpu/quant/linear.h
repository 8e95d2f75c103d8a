// Loops of quantize_linear and dequantize_linear.
#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu::quant {

// Scale and zero point of consecutive elements: the same for all (step 0), or one each (step 1).
struct LinearSteps {
  const float* scale;
  const int32_t* zero;
  int64_t step;
};

// Codes of I8, U8, I16 or U16, clamped to [low, high].
void quantize_linear_run(const float* x, int64_t n, const LinearSteps& steps, int32_t low, int32_t high, DType to,
                         void* codes);
// Codes of I8, U8, I16, U16 or I32.
void dequantize_linear_run(DType from, const void* codes, int64_t n, const LinearSteps& steps, float* y);

}  // namespace rlx::cpu::quant
