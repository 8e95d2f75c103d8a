// Codes of small floats, by the tables of ONNX's Cast.
#pragma once

#include "rlx/small_float.h"

namespace rlx {

// Rounds once. What is too large becomes the largest value if `saturate` is set, else infinity (f8e5m2) or NaN; f4e2m1
// has neither and always saturates. Of f8e8m0, which has no sign, the magnitude counts; zero and what is too small
// become the smallest power with `saturate`, else NaN.
uint8_t encode(SmallFloat format, double x, bool saturate = true, PowerRounding rounding = PowerRounding::kUp);
double decode(SmallFloat format, uint8_t code);  // bits that the format does not have are ignored

}  // namespace rlx
