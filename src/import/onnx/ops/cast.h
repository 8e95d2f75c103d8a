// Casts between ONNX's element types, for the builders that need them beside Cast itself.
#pragma once

#include "import/onnx/node.h"
#include "rlx/small_float.h"

namespace rlx::onnx {

// Codes of a small float format (is_code(elem)) and back.
Item encode(OnnxNode& n, const Value& x, ElemType to, bool saturate, PowerRounding rounding = PowerRounding::kUp);
Value decode(const Value& codes, ElemType from, DType to);

// What Cast does; strings on both sides included.
Item cast_item(OnnxNode& n, const Item& x, ElemType to);

}  // namespace rlx::onnx
