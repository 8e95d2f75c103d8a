// What becomes of the sums of a convolution before they are stored: act(sum + bias + residual), each optional. It is
// done while they are in the cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"
#include "rlx/ops/activation.h"

namespace rlx::cpu {

struct ConvEpilogue {
  const std::byte* bias = nullptr;      // one element per channel of the result
  const std::byte* residual = nullptr;  // as the result, whose channels lie contiguously then
  DType dtype = DType::F32;             // of both
  ops::ActivationKind activation = ops::ActivationKind::kNone;

  bool any() const { return bias || residual || activation != ops::ActivationKind::kNone; }
};

// n neighbouring results of one channel, in place; the first is element `at` of the result.
void finish_conv(const ConvEpilogue& e, int64_t channel, int64_t at, float* sums, int64_t n);

}  // namespace rlx::cpu
