#include "import/onnx/ops.h"

#include <algorithm>

namespace rlx::onnx {

namespace {

// Families in any order; the rows of a domain sorted by name and opset.
Domain domain(std::string_view name, std::initializer_list<Rows> families) {
  Domain d{name, {}};
  for (const Rows& rows : families) d.rows.insert(d.rows.end(), rows.begin(), rows.end());
  std::sort(d.rows.begin(), d.rows.end(), [](const OpRow& a, const OpRow& b) {
    return a.op_type != b.op_type ? a.op_type < b.op_type : a.since < b.since;
  });
  return d;
}

const std::vector<Domain>& domains() {
  static const std::vector<Domain> all = {
      // A line per family.
      // clang-format off
      domain("", {
          attention_rows(),
          cast_rows(),
          control_flow_rows(),
          conv_rows(),
          einsum_rows(),
          elementwise_rows(),
          image_rows(),
          index_rows(),
          loss_rows(),
          matmul_rows(),
          misc_rows(),
          norm_rows(),
          normalize_rows(),
          quantize_rows(),
          random_rows(),
          recurrent_rows(),
          reduce_rows(),
          select_rows(),
          sequence_rows(),
          shape_rows(),
          signal_rows(),
          strings_rows(),
          tfidf_rows(),
      }),
      // clang-format on
      domain("ai.onnx.ml", {ml_rows(), trees_rows()}),
      domain("ai.onnx.preview", {preview_rows()}),
      domain("ai.onnx.preview.training", {gradient_rows(), training_rows()}),
      domain("com.microsoft", {contrib_attention_rows(), contrib_norm_rows(), contrib_quantize_rows(),
                               contrib_quantized_rows(), contrib_rows()}),
  };
  return all;
}

}  // namespace

std::span<const Domain> all_builders() { return domains(); }

const OpRow* find_builder(std::string_view domain, std::string_view op_type, int64_t opset) {
  for (const Domain& d : domains()) {
    if (d.name != domain) continue;
    const auto after = std::upper_bound(d.rows.begin(), d.rows.end(), opset, [&](int64_t version, const OpRow& row) {
      return row.op_type != op_type ? op_type < row.op_type : version < row.since;
    });
    if (after == d.rows.begin() || std::prev(after)->op_type != op_type) return nullptr;
    return &*std::prev(after);
  }
  return nullptr;
}

}  // namespace rlx::onnx
