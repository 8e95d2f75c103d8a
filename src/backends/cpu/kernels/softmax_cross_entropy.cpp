// Losses and gradients of rows of logits.
#include <cmath>

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/simd/softmax.h"

namespace rlx::cpu {

namespace {

RowScratch scratch_of(const RowGroups& g, DType dtype) {
  return {dtype, g.rows, may_buffer(dtype, g.rows * g.cols) ? g.buffer : 0};
}

// Before any row is computed, so that the first wrong label is the one that is named.
void check_labels(const Call& call, int64_t rows, int64_t classes) {
  const host::IntReader labels = call.int_reader(1);
  for (int64_t n = 0; n < rows; ++n)
    if (labels[n] < 0 || labels[n] >= classes)
      fail(ErrorKind::kRuntime, str("Label (", labels[n], ") is out of range for the classes (", classes, ")."));
}

}  // namespace

int64_t softmax_cross_entropy_scratch(const Signature& s, int threads) {
  return scratch_of(trailing_rows(s.input(0).shape.sizes(), 1), s.input(0).dtype).bytes(threads);
}

void softmax_cross_entropy_with_logits(const Call& call) {
  const host::View& x = call.input(0);
  const RowGroups g = trailing_rows(x.sizes, 1);
  const RowScratch scratch = scratch_of(g, x.dtype);
  check_labels(call, g.rows, g.cols);
  const host::IntReader labels = call.int_reader(1);
  const host::Writer loss = call.writer(0);
  g.each(call.pool(), [&](int64_t first, int64_t rows) {
    const float* v = row_as_f32(x.dtype, x.data, first * g.cols, scratch.of_thread(call), rows * g.cols);
    for (int64_t n = first; n < first + rows; ++n, v += g.cols) {
      const ExpSum row = exp_sum_of_row(v, g.cols);
      loss.set(n, std::log(row.sum) + (static_cast<double>(row.top) - static_cast<double>(v[labels[n]])));
    }
  });
}

void softmax_cross_entropy_backward(const Call& call) {
  const host::View &x = call.input(0), &dx = call.output(0);
  const RowGroups g = trailing_rows(x.sizes, 1);
  const RowScratch scratch = scratch_of(g, x.dtype);
  check_labels(call, g.rows, g.cols);
  const host::IntReader labels = call.int_reader(1);
  const float* d_loss = all_as_f32(call.input(2), scratch.of_param(call, 0));
  const RowWriter out(dx, x.data == dx.data);
  g.each(call.pool(), [&](int64_t first, int64_t rows) {
    float* buffer = scratch.of_thread(call);
    const float* v = row_as_f32(x.dtype, x.data, first * g.cols, buffer, rows * g.cols);
    float* to = out.target(first * g.cols, buffer);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = v + r * g.cols;
      float* d = to + r * g.cols;
      const int64_t label = labels[first + r];
      const ExpSum row = exp_sum_of_row(from, g.cols);
      // The label's own element in double: p - 1 cancels where the model is right.
      const double p = std::exp(static_cast<double>(from[label]) - static_cast<double>(row.top)) / row.sum;
      const float scale = d_loss[first + r];
      scaled_exp_row(from, d, g.cols, row.top, static_cast<float>(static_cast<double>(scale) / row.sum));
      d[label] = static_cast<float>((p - 1) * static_cast<double>(scale));
    }
    out.finish(first * g.cols, to, rows * g.cols);
  });
}

}  // namespace rlx::cpu
