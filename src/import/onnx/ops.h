// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows cast_rows();
Rows control_flow_rows();
Rows conv_rows();
Rows elementwise_rows();
Rows index_rows();
Rows matmul_rows();
Rows quantize_rows();
Rows reduce_rows();
Rows sequence_rows();
Rows shape_rows();

}  // namespace rlx::onnx
