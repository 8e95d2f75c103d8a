// What fold_conv_scale and fuse_conv_bias_act ask of the nodes behind a convolution.
#pragma once

#include "passes/rewriter.h"

namespace rlx::passes {

// Is it one number per channel of y [N, C, …] when it is broadcast, or one number for all?
enum class PerChannel { kNo, kOne, kEach };
PerChannel per_channel(const TensorType& t, const TensorType& y);

// The numbers as [C], or as [1] where it is one.
Value as_vector(const Value& v, PerChannel kind);

}  // namespace rlx::passes
