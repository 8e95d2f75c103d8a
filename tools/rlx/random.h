// Random tensors for inputs and params that are not given: the same on every run and machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rlx/tensor.h"

namespace rlx::cli {

// Floats (and both parts of C64) are normal, integers 0 … 9, Bool 0 or 1. The numbers come from splitmix64
// (https://prng.di.unimi.it/splitmix64.c) started at seed + FNV-1a of the name, so that one tensor's values do not
// depend on which others are random; normal ones are pairs of it through Box and Muller's transform.
Tensor random_tensor(uint64_t seed, std::string_view name, DType dtype, std::vector<int64_t> sizes);

}  // namespace rlx::cli
