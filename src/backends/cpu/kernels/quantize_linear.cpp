// quantize_linear and dequantize_linear: rows of elements with one scale, or with one each.
#include "rlx/ops/quantize_linear.h"

#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/quant/linear.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"
#include "ops/linear_scales.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kRun = 1024;  // elements at a time: what is converted stays in the L1 cache

// n elements from `first` on, whose scales begin at `scale`.
struct ScaledRow {
  int64_t first, n, scale;
};

// The tensor in rows of elements that have one scale, or consecutive ones.
struct ScaledRows {
  ops::LinearScales s;
  bool along;      // the scale changes with every element of a row
  bool in_pieces;  // rows are blocks of the last axis
  int64_t length, count;

  explicit ScaledRows(const ops::LinearScales& scales) : s(scales) {
    const bool last = s.inner == 1;
    along = s.in_blocks ? !last : last && s.cols > 1;
    in_pieces = s.in_blocks && last;
    length = in_pieces ? std::min(s.block, s.cols) : last && !s.in_blocks ? s.cols : s.inner;
    count = in_pieces ? s.outer * s.blocks : last && !s.in_blocks ? s.outer : s.outer * s.cols;
  }

  ScaledRow row(int64_t i) const {
    if (in_pieces) {
      const int64_t begin = i % s.blocks * s.block;
      return {i / s.blocks * s.cols + begin, std::min(s.block, s.cols - begin), i};
    }
    if (s.inner == 1 && !s.in_blocks) return {i * s.cols, s.cols, 0};
    return {i * s.inner, s.inner, s.of(i / s.cols, i % s.cols, 0)};
  }
};

// f(first element, n, steps) for stretches of at most kRun elements.
template <class F>
void for_each_run(const Call& call, int64_t axis, int64_t block_size, const F& f) {
  const host::View& scale = call.input(1);
  const host::View* zero = call.num_inputs() > 2 ? &call.input(2) : nullptr;
  const ScaledRows rows(ops::LinearScales(call.input(0).sizes, scale.sizes, axis, block_size));
  const int64_t pieces = (rows.length + kRun - 1) / kRun, step = rows.along ? 1 : 0;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::min(rows.length, kRun));
  call.pool().parallel_for(0, rows.count * pieces, grain, [&](int64_t begin, int64_t end) {
    float scales[kRun];
    int32_t zeros[kRun] = {};
    for (int64_t t = begin; t < end; ++t) {
      const ScaledRow row = rows.row(t / pieces);
      const int64_t from = t % pieces * kRun, n = std::min(kRun, row.n - from), at = row.scale + from * step;
      const int64_t own = step == 1 ? n : 1;
      if (zero) {
        const host::IntReader reader(zero->dtype, zero->data);
        for (int64_t i = 0; i < own; ++i) zeros[i] = static_cast<int32_t>(reader[at + i]);
      }
      f(row.first + from, n, quant::LinearSteps{row_as_f32(scale.dtype, scale.data, at, scales, own), zeros, step});
    }
  });
}

}  // namespace

bool quantize_linear_supports(const Signature& s) {
  return s.attrs.as<ops::QuantizeLinearAttrs>().to != DType::I32;  // wider than what f32 rounds exactly
}

void quantize_linear(const Call& call) {
  const auto& attrs = call.attrs<ops::QuantizeLinearAttrs>();
  const host::View &x = call.input(0), &q = call.output(0);
  const auto low = static_cast<int32_t>(attrs.low.value_or(smallest_int(attrs.to)));
  const auto high = static_cast<int32_t>(attrs.high.value_or(largest_int(attrs.to)));
  const auto size = static_cast<int64_t>(size_of(attrs.to));
  for_each_run(call, attrs.axis, attrs.block_size, [&](int64_t first, int64_t n, const quant::LinearSteps& steps) {
    float buffer[kRun];
    quant::quantize_linear_run(row_as_f32(x.dtype, x.data, first, buffer, n), n, steps, low, high, attrs.to,
                               q.data + first * size);
  });
}

void dequantize_linear(const Call& call) {
  const auto& attrs = call.attrs<ops::DequantizeLinearAttrs>();
  const host::View &q = call.input(0), &y = call.output(0);
  const auto size = static_cast<int64_t>(size_of(q.dtype));
  for_each_run(call, attrs.axis, attrs.block_size, [&](int64_t first, int64_t n, const quant::LinearSteps& steps) {
    if (y.dtype == DType::F32)
      return quant::dequantize_linear_run(q.dtype, q.data + first * size, n, steps, call.output_as<float>(0) + first);
    float buffer[kRun];
    quant::dequantize_linear_run(q.dtype, q.data + first * size, n, steps, buffer);
    from_f32(y.dtype, buffer, y.data, first, n);
  });
}

}  // namespace rlx::cpu
