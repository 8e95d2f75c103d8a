// How far two tensors are apart, and how far they may be.
#pragma once

#include "rlx/tensor.h"

namespace rlx::cli {

struct Difference {
  double max_abs = 0, max_rel = 0;  // rel: of the largest expected value
  double limit = 0;                 // of max_rel; 0: exact
  bool ok() const { return max_rel <= limit; }
};

// The limit is 1e-4 for floats (two units in the last place for f16 and bf16, which 1e-4 is finer than) and 0 for
// everything else. NaN agrees with NaN and an infinity with itself; any other pair with one of them, and tensors of
// different types, are infinitely far apart.
Difference compare(const Tensor& actual, const Tensor& expected);

}  // namespace rlx::cli
