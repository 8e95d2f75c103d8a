// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows attention_rows();
Rows cast_rows();
Rows contrib_attention_rows();  // contrib: of domain com.microsoft
Rows contrib_norm_rows();
Rows contrib_quantize_rows();
Rows contrib_quantized_rows();
Rows contrib_rows();
Rows control_flow_rows();
Rows conv_rows();
Rows einsum_rows();
Rows elementwise_rows();
Rows gradient_rows();
Rows image_rows();
Rows index_rows();
Rows loss_rows();
Rows matmul_rows();
Rows misc_rows();
Rows ml_rows();
Rows norm_rows();
Rows normalize_rows();
Rows preview_rows();  // of domain ai.onnx.preview
Rows quantize_rows();
Rows random_rows();
Rows recurrent_rows();
Rows reduce_rows();
Rows select_rows();
Rows sequence_rows();
Rows shape_rows();
Rows signal_rows();
Rows strings_rows();
Rows tfidf_rows();
Rows training_rows();
Rows trees_rows();

}  // namespace rlx::onnx
