// The one array inside an .npy file or an entry of an .npz file: what npy.cpp and npz.cpp share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "rlx/tensor.h"

namespace rlx {

// Fills the span with the next bytes, or throws.
using ReadBytes = std::function<void(std::span<std::byte>)>;

// An array of `size` bytes with its header. Nothing is allocated for it before the header agrees with `size`.
Tensor read_npy_array(const ReadBytes& read, uint64_t size);

// The bytes before the data, and the tensor whose bytes are that data: `tensor` itself, or an F32 copy of a BF16 one.
struct NpyArray {
  std::string header;
  Tensor data;
};
NpyArray to_npy_array(const Tensor& tensor);

}  // namespace rlx
