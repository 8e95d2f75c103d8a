// Softmax along any axis: rows in groups, or strips of columns side by side. One pass over memory where a row or a
// strip fits the second cache.
#include "rlx/ops/softmax.h"

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/simd/softmax.h"

namespace rlx::cpu {

namespace {

Strips strips_of(const host::SplitAt& at) { return {at.outer, at.cols, at.inner, kSoftmaxStrip}; }

RowScratch scratch_of(const host::SplitAt& at, DType dtype) {
  if (at.inner > 1) return {dtype, 0, strips_of(at).buffer()};
  return {dtype, 0, may_buffer(dtype, at.outer * at.cols) ? RowGroups(at.outer, at.cols).buffer : 0};
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
  if (at.inner > 1)
    return strips_of(at).each(call, scratch, [&](float* v, int64_t width) { softmax_columns(v, at.cols, width); });
  const RowGroups g(at.outer, at.cols);
  const RowWriter out(y, x.data == y.data);
  g.each(call.pool(), [&](int64_t row, int64_t rows) {
    float* buffer = scratch.of_thread(call);
    const int64_t first = row * g.cols, n = rows * g.cols;
    if (x.dtype != DType::F32 && g.cols >= kLongHalfRow)
      return each_half_row(x, out, row, rows, g.cols, buffer, [&](auto* from, auto* to, int64_t count, bool stream) {
        softmax_half_rows(x.dtype == DType::BF16, from, buffer, to, count, g.cols, stream);
      });
    const float* from = row_as_f32(x.dtype, x.data, first, buffer, n);
    if (out.streams_rows(g.cols)) return softmax_rows(from, buffer, out.at(first), rows, g.cols, true);
    float* to = out.target(first, buffer);
    softmax_rows(from, to, to, rows, g.cols, false);
    out.finish(first, to, n);
  });
}

}  // namespace rlx::cpu
