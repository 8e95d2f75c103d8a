// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows elementwise_rows();
Rows matmul_rows();
Rows reduce_rows();
Rows shape_rows();

}  // namespace rlx::onnx
