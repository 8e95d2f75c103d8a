// ONNX's element types and how rlx holds them.
#pragma once

#include <optional>
#include <string_view>

#include "import/onnx/proto.h"
#include "rlx/dtype.h"

namespace rlx::onnx {

// The dtype that holds the elements; nullopt for strings, complex128 and unknown numbers. Types of less than a byte and
// the 8-bit floats are codes in U8 or, for signed integers, I8: one element per byte.
std::optional<DType> storage(ElemType elem);
// The same, as an Error that names the type.
DType storage_of(ElemType elem);

ElemType elem_of(DType dtype);
std::string_view name(ElemType elem);  // "float16"

bool is_code(ElemType elem);          // an 8- or 4-bit float: arithmetic needs a decoded value
bool is_small_int(ElemType elem);     // int4, uint4, int2, uint2
int bits_per_element(ElemType elem);  // as files pack them

}  // namespace rlx::onnx
