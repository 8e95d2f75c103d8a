// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows control_flow_rows();
Rows elementwise_rows();
Rows matmul_rows();
Rows reduce_rows();
Rows sequence_rows();
Rows shape_rows();

}  // namespace rlx::onnx
