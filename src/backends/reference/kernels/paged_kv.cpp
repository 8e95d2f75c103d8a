#include "rlx/ops/paged_kv.h"

#include <cmath>
#include <cstring>

#include "backends/host/kv_pages.h"
#include "backends/reference/kernels/kernels.h"
#include "core/kv_rows.h"

namespace rlx::reference {

using host::KvPageTable;

// A row of a pool, in doubles.
static void read_row(const View& pool, ops::KvFormat format, int64_t at, std::vector<double>& row) {
  if (format == ops::KvFormat::kQ8) {
    std::vector<float> values(row.size());
    decode_q8_row(reinterpret_cast<const uint32_t*>(pool.data) + at, static_cast<int64_t>(row.size()), values.data());
    row.assign(values.begin(), values.end());
    return;
  }
  const Reader reader(pool.dtype, pool.data);
  for (size_t d = 0; d < row.size(); ++d) row[d] = reader[at + static_cast<int64_t>(d)];
}

void paged_attention(const Call& call) {
  const auto& attrs = call.attrs<ops::PagedAttentionAttrs>();
  const View &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const KvPageTable pages(call, 1, 3);
  const int64_t batch = q.dim(0), queries = q.dim(1), heads = q.dim(2), width = q.dim(3);
  const double scale = attrs.score_scale ? *attrs.score_scale : 1 / std::sqrt(static_cast<double>(width));
  const double cap = attrs.attn_logit_softcap.value_or(0);
  const Reader query = call.reader(0);
  const Writer y = call.writer(0);
  const auto* lengths = call.input_as<int32_t>(4);
  std::vector<double> row(static_cast<size_t>(width)), sum(row.size());
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[b];
    pages.check(b, 0, length);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t position = length - queries + i, from = ((b * queries + i) * heads + h) * width;
        const int64_t kv_head = h / (heads / pages.heads());
        const bool bounded = attrs.mask_kind != ops::MaskKind::kNone;
        const int64_t end = bounded ? position + 1 : length;
        const int64_t begin =
            attrs.mask_kind == ops::MaskKind::kSlidingWindow ? std::max<int64_t>(0, position - attrs.window) : 0;
        std::vector<double> scores;
        double top = -INFINITY, total = 0;
        for (int64_t j = begin; j < end; ++j) {
          read_row(k, attrs.format, pages.at(b, j, kv_head), row);
          double s = 0;
          for (int64_t d = 0; d < width; ++d) s += query[from + d] * row[static_cast<size_t>(d)];
          s *= scale;
          if (cap > 0) s = cap * std::tanh(s / cap);
          scores.push_back(s);
          top = std::max(top, s);
        }
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int64_t j = begin; j < end; ++j) {
          const double score = scores[static_cast<size_t>(j - begin)];
          const double weight = score == -INFINITY ? 0 : std::exp(score - top);  // as if it were masked (Q22)
          if (weight == 0) continue;
          total += weight;
          read_row(v, attrs.format, pages.at(b, j, kv_head), row);
          for (size_t d = 0; d < row.size(); ++d) sum[d] += weight * row[d];
        }
        for (size_t d = 0; d < sum.size(); ++d) y.set(from + static_cast<int64_t>(d), total == 0 ? 0 : sum[d] / total);
      }
  }
}

void paged_kv_append(const Call& call) {
  const View &pool = call.input(0), &rows = call.input(1), &out = call.output(0);
  const KvPageTable pages(call, 0, 2);
  const auto* lengths = call.input_as<int32_t>(3);
  const int64_t batch = rows.dim(0), count = rows.dim(1), heads = rows.dim(2), width = rows.dim(3);
  for (int64_t b = 0; b < batch; ++b) pages.check(b, lengths[b], lengths[b] + count);
  if (out.data != pool.data)
    std::memcpy(out.data, pool.data, static_cast<size_t>(pool.elements()) * size_of(pool.dtype));
  const Reader reader = call.reader(1);
  const Writer writer = call.writer(0);
  std::vector<float> row(static_cast<size_t>(width));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t from = ((b * count + i) * heads + h) * width, to = pages.at(b, lengths[b] + i, h);
        if (call.attrs<ops::PagedKvAppendAttrs>().format == ops::KvFormat::kQ8) {
          for (int64_t d = 0; d < width; ++d) row[static_cast<size_t>(d)] = static_cast<float>(reader[from + d]);
          encode_q8_row(row.data(), width, call.output_as<uint32_t>(0) + to);
        } else {
          for (int64_t d = 0; d < width; ++d) writer.set(to + d, reader[from + d]);
        }
      }
}

}  // namespace rlx::reference
