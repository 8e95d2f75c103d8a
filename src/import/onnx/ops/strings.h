// Tensors of strings. They are known while a model is imported.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

bool is_strings(const OnnxNode& n, int64_t i);
const Strings& strings_of(const OnnxNode& n, int64_t i);  // throws when it is something else
Item strings_item(OnnxNode& n, Strings strings);
// Equal, element by element, broadcast as NumPy does.
Value strings_equal(OnnxNode& n);

}  // namespace rlx::onnx
