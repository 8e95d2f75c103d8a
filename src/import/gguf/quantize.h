// A GGUF file with its weights in another scheme.
#pragma once

#include <string>

namespace rlx::gguf {

struct QuantizeResult {
  int64_t bytes_before = 0, bytes_after = 0;  // of tensors
  int64_t changed = 0, kept = 0;              // tensors
};

// `type` as ggml spells it, in any case: q4_0, Q4_K, f16. Matrices are changed; norms, biases and the choice of experts
// stay. Where rows are not multiples of the scheme's block the next larger scheme of 32 takes its place. `out` appears
// when it is complete. Error(kInvalid) names a tensor with numbers that are not finite.
QuantizeResult quantize_file(const std::string& in, const std::string& out, const std::string& type);

}  // namespace rlx::gguf
