// NumPy's .npy and .npz files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
// Read: versions 1 to 3, C and Fortran order, either byte order, elements f2 f4 f8 i1 i2 i4 i8 u1 u4 b1 c8. Elements
// that rlx has no dtype for (u2, u8, c16, Python objects, text, records) are Error(kUnsupported), everything malformed
// or truncated is Error(kInvalid). Written: version 1, C order, little endian. NumPy has no bf16, so BF16 is written as
// f4, which holds every value exactly; reading it back gives F32.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "rlx/tensor.h"

namespace rlx {

Tensor read_npy(const std::string& path);
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& where = "data");  // `where`: for messages
void write_npy(const std::string& path, const Tensor& tensor);

// By the name of the array, which is the entry's without ".npy".
std::map<std::string, Tensor> read_npz(const std::string& path);
std::map<std::string, Tensor> parse_npz(std::span<const std::byte> bytes, const std::string& where = "data");
void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors);  // stored, not compressed

}  // namespace rlx
