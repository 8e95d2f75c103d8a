#include "rlx/ops/attention.h"

#include "backends/reference/kernels/attention_rows.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void attention(const Call& call) {
  const int64_t masks = ops::has_mask_operand(call.attrs<ops::AttentionAttrs>().mask_kind) ? 1 : 0;
  AttentionRows rows(call, 3, call.num_inputs() > 3 + masks);
  const Reader v = call.reader(2);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      for (int64_t i = 0; i < rows.queries; ++i) {
        const auto& row = rows.row(b, h, i);
        if (call.wants(1)) call.writer(1).set((b * rows.heads + h) * rows.queries + i, rows.lse());
        if (!call.wants(0)) continue;
        const Writer y = call.writer(0);
        for (int64_t d = 0; d < rows.width; ++d) {
          double sum = 0;
          for (const auto& key : row) sum += key.weight * v[rows.kv.at(b, rows.kv_head(h), key.j) + d];
          y.set(rows.q.at(b, h, i) + d, sum);
        }
      }
}

// P is computed again from q and k: the saved y and lse are rounded, and this is the oracle.
void attention_backward(const Call& call) {
  const auto& attrs = call.attrs<ops::AttentionAttrs>();
  const int64_t optional = call.num_inputs() - 4 - (ops::has_mask_operand(attrs.mask_kind) ? 1 : 0);
  AttentionRows rows(call, 4, optional % 2 == 1);
  const Reader q = call.reader(0), k = call.reader(1), v = call.reader(2), dy = call.reader(3);
  std::vector<double> grads[4];  // q, k, v, bias: summed over queries, heads of a group and broadcast dims
  for (size_t r = 0; r < static_cast<size_t>(call.num_outputs()); ++r)
    grads[r].resize(static_cast<size_t>(call.output(static_cast<int64_t>(r)).elements()));
  const auto add = [&](size_t r, int64_t at, double value) { grads[r][static_cast<size_t>(at)] += value; };
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      for (int64_t i = 0; i < rows.queries; ++i) {
        const auto& row = rows.row(b, h, i);
        const int64_t qi = rows.q.at(b, h, i);
        std::vector<double> dp(row.size());
        double mean = 0;  // sum of P * dP
        for (size_t n = 0; n < row.size(); ++n) {
          const int64_t kj = rows.kv.at(b, rows.kv_head(h), row[n].j);
          for (int64_t d = 0; d < rows.width; ++d) dp[n] += dy[qi + d] * v[kj + d];
          mean += row[n].weight * dp[n];
        }
        for (size_t n = 0; n < row.size(); ++n) {
          const int64_t kj = rows.kv.at(b, rows.kv_head(h), row[n].j);
          const double ds = row[n].weight * (dp[n] - mean);
          if (attrs.mask_kind == ops::MaskKind::kBias) add(3, rows.mask.at(b, h, i) + row[n].j * rows.mask_key, ds);
          for (int64_t d = 0; d < rows.width; ++d) {
            add(0, qi + d, ds * row[n].slope * k[kj + d]);
            add(1, kj + d, ds * row[n].slope * q[qi + d]);
            add(2, kj + d, row[n].weight * dy[qi + d]);
          }
        }
      }
  for (int64_t r = 0; r < call.num_outputs(); ++r) {
    if (!call.wants(r)) continue;
    const Writer out = call.writer(r);
    for (size_t i = 0; i < grads[r].size(); ++i) out.set(static_cast<int64_t>(i), grads[r][i]);
  }
}

}  // namespace rlx::reference
