// The builders by family: one file of ops/ each.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

using Rows = std::vector<OpRow>;

Rows cast_rows();
Rows control_flow_rows();
Rows conv_rows();
Rows einsum_rows();
Rows elementwise_rows();
Rows index_rows();
Rows loss_rows();
Rows matmul_rows();
Rows misc_rows();
Rows ml_rows();
Rows normalize_rows();
Rows quantize_rows();
Rows random_rows();
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
