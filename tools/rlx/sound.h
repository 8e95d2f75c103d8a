// Sounds as tensors: --input samples=speech.wav.
#pragma once

#include <string>

#include "rlx/shape.h"
#include "rlx/tensor.h"

namespace rlx::cli {

bool is_sound(const std::string& path);  // by how its name ends

// The samples in the shape of `type`: [N], [1, N] or [1, 1, N] of one channel (several are mixed), or [C, N] and
// [1, C, N] where the sound has those C channels. Floats are -1 … 1, i16 the samples of 16 bits. The sample rate stays
// what it is.
Tensor read_sound(const std::string& path, const std::string& input, const TensorType& type);

}  // namespace rlx::cli
