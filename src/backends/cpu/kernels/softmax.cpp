// Softmax along any axis: rows in groups, or strips of columns side by side. One pass over memory where a row or a
// strip fits the second cache.
#include "rlx/ops/softmax.h"

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/simd/softmax.h"

namespace rlx::cpu {

namespace {

// Columns of a strip: about 256 KiB of them, a whole number of cache lines.
int64_t strip_width(int64_t cols) { return std::clamp<int64_t>(65536 / cols / 16 * 16, 16, kSoftmaxStrip); }

RowScratch scratch_of(const host::SplitAt& at, DType dtype) {
  if (!may_buffer(dtype, at.outer * at.cols * at.inner)) return {dtype, 0, 0};
  return {dtype, 0, at.inner == 1 ? RowGroups(at.outer, at.cols).buffer : at.cols * strip_width(at.cols)};
}

void softmax_inner(const Call& call, const host::SplitAt& at, const RowScratch& scratch) {
  const host::View &x = call.input(0), &y = call.output(0);
  const RowWriter out(y, x.data == y.data);
  const int64_t cols = at.cols, inner = at.inner, strip = strip_width(cols), strips = (inner + strip - 1) / strip;
  const int64_t grain = std::max<int64_t>(1, kGrain / (cols * std::min(strip, inner)));
  call.pool().parallel_for(0, at.outer * strips, grain, [&](int64_t begin, int64_t end) {
    float* buffer = scratch.of_thread(call);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t column = u % strips * strip, width = std::min(strip, inner - column);
      const int64_t first = u / strips * cols * inner + column;
      const float* from = reinterpret_cast<const float*>(x.data) + first;
      int64_t stride = inner;
      if (x.dtype != DType::F32) {
        for (int64_t c = 0; c < cols; ++c) to_f32(x.dtype, x.data, first + c * inner, buffer + c * width, width);
        from = buffer, stride = width;
      }
      softmax_columns(from, stride, out.target(first, buffer), out.direct() ? inner : width, cols, width);
      for (int64_t c = 0; c < cols && !out.direct(); ++c) out.finish(first + c * inner, buffer + c * width, width);
    }
  });
}

}  // namespace

int64_t softmax_scratch(const Signature& s, int threads) {
  const auto sizes = s.input(0).shape.sizes();
  if (product(sizes) == 0) return 0;
  return scratch_of(host::split_at(sizes, s.attrs.as<ops::SoftmaxAttrs>().axis), s.input(0).dtype).bytes(threads);
}

void softmax(const Call& call) {
  const host::View &x = call.input(0), &y = call.output(0);
  const host::SplitAt at = host::split_at(x.sizes, call.attrs<ops::SoftmaxAttrs>().axis);
  const RowScratch scratch = scratch_of(at, x.dtype);
  if (at.inner > 1) return softmax_inner(call, at, scratch);
  const RowGroups g(at.outer, at.cols);
  const RowWriter out(y, x.data == y.data);
  g.each(call.pool(), [&](int64_t row, int64_t rows) {
    float* buffer = scratch.of_thread(call);
    const int64_t first = row * g.cols, n = rows * g.cols;
    const float* from = row_as_f32(x.dtype, x.data, first, buffer, n);
    if (out.streams_rows(g.cols)) return softmax_rows(from, buffer, out.at(first), rows, g.cols, true);
    float* to = out.target(first, buffer);
    softmax_rows(from, to, to, rows, g.cols, false);
    out.finish(first, to, n);
  });
}

}  // namespace rlx::cpu
