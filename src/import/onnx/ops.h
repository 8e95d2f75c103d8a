// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows attention_rows();
Rows contrib_attention_rows();  // contrib: of domain com.microsoft
Rows contrib_norm_rows();
Rows contrib_quantized_rows();
Rows contrib_rows();
Rows control_flow_rows();
Rows elementwise_rows();
Rows matmul_rows();
Rows norm_rows();
Rows preview_rows();  // of domain ai.onnx.preview
Rows recurrent_rows();
Rows reduce_rows();
Rows sequence_rows();
Rows shape_rows();

}  // namespace rlx::onnx
