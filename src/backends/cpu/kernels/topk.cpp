// The largest or smallest elements of rows along any axis: NaN is the largest, of equal ones the first comes first.
#include "rlx/ops/topk.h"

#include <cstring>

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/top_of_row.h"
#include "backends/cpu/round_up.h"
#include "rlx/ops/argmax.h"

namespace rlx::cpu {

namespace {

// Each thread: candidates, then a row as f32, its keys, and indices.
struct TopkScratch {
  int64_t cols, candidates;

  TopkScratch(int64_t cols_, int64_t k)
      : cols(round_up(cols_, 16)), candidates(round_up(candidates_for(cols_, k), 16)) {}
  int64_t bytes() const { return candidates * 8 + cols * 4 + cols * 4 + candidates * 4; }
};

template <class Index>
void write_row(const Call& call, const uint64_t* top, int64_t k, int64_t from, int64_t to, int64_t inner) {
  const host::View& x = call.input(0);
  const size_t size = size_of(x.dtype);
  for (int64_t c = 0; c < k; ++c) {
    const int64_t index = index_of(top[c]);
    if (call.wants(0))
      std::memcpy(call.output(0).data + static_cast<size_t>(to + c * inner) * size,
                  x.data + static_cast<size_t>(from + index * inner) * size, size);
    if (call.wants(1)) call.output_as<Index>(1)[to + c * inner] = static_cast<Index>(index);
  }
}

// A column of an inner axis, one behind another.
void gather(const host::View& x, int64_t first, int64_t stride, int64_t n, float* to) {
  if (x.dtype == DType::F32) {
    const float* from = reinterpret_cast<const float*>(x.data) + first;
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    return;
  }
  const host::Reader from(x.dtype, x.data);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[first + i * stride]);
}

Strips strips_of(const host::SplitAt& at) { return {at.outer, at.cols, at.inner, kArgStrip}; }

RowScratch arg_scratch(const host::SplitAt& at, DType dtype) {
  if (dtype == DType::F32) return {dtype, 0, 0};
  return {dtype, 0, at.inner > 1 ? strips_of(at).buffer() : RowGroups(at.outer, at.cols).buffer};
}

void arg(const Call& call, bool largest) {
  const host::View& x = call.input(0);
  const host::SplitAt at = host::split_at(x.sizes, call.attrs<ops::ArgmaxAttrs>().axis);
  if (at.cols == 0) fail(ErrorKind::kRuntime, "An axis of size 0 has no largest or smallest element.");
  const RowScratch scratch = arg_scratch(at, x.dtype);
  const host::IntWriter y = call.int_writer(0);
  if (at.inner == 1) {
    const RowGroups g(at.outer, at.cols);
    g.each(call.pool(), [&](int64_t row, int64_t rows) {
      const float* v = row_as_f32(x.dtype, x.data, row * g.cols, scratch.of_thread(call), rows * g.cols);
      for (int64_t r = 0; r < rows; ++r) y.set(row + r, arg_of_row(v + r * g.cols, g.cols, largest));
    });
    return;
  }
  const Strips s = strips_of(at);
  const int64_t strips = div_up(at.inner, s.width), grain = std::max<int64_t>(1, kGrain / s.buffer());
  call.pool().parallel_for(0, at.outer * strips, grain, [&](int64_t begin, int64_t end) {
    float* buffer = scratch.of_thread(call);
    int32_t index[kArgStrip];
    for (int64_t u = begin; u < end; ++u) {
      const int64_t column = u % strips * s.width, n = std::min(s.width, at.inner - column);
      const int64_t first = u / strips * at.cols * at.inner + column;
      if (x.dtype == DType::F32) {
        arg_of_columns(reinterpret_cast<const float*>(x.data) + first, at.cols, at.inner, n, largest, index);
      } else {
        for (int64_t c = 0; c < at.cols; ++c) to_f32(x.dtype, x.data, first + c * at.inner, buffer + c * n, n);
        arg_of_columns(buffer, at.cols, n, n, largest, index);
      }
      for (int64_t i = 0; i < n; ++i) y.set(u / strips * at.inner + column + i, index[i]);
    }
  });
}

}  // namespace

int64_t argmax_scratch(const Signature& s, int threads) {
  const host::SplitAt at = host::split_at(s.input(0).shape.sizes(), s.attrs.as<ops::ArgmaxAttrs>().axis);
  return arg_scratch(at, s.input(0).dtype).bytes(threads);
}
void argmax(const Call& call) { arg(call, true); }
void argmin(const Call& call) { arg(call, false); }

int64_t topk_scratch(const Signature& s, int threads) {
  const auto& attrs = s.attrs.as<ops::TopkAttrs>();
  return threads * TopkScratch(host::split_at(s.input(0).shape.sizes(), attrs.axis).cols, attrs.k).bytes();
}

void topk(const Call& call) {
  const host::View& x = call.input(0);
  const auto& attrs = call.attrs<ops::TopkAttrs>();
  const host::SplitAt at = host::split_at(x.sizes, attrs.axis);
  const TopkScratch scratch(at.cols, attrs.k);
  const int64_t grain = std::max<int64_t>(1, kGrain / at.cols);
  call.pool().parallel_for(0, at.outer * at.inner, grain, [&](int64_t begin, int64_t end) {
    auto* top = reinterpret_cast<uint64_t*>(call.scratch() + ThreadPool::this_thread() * scratch.bytes());
    auto* values = reinterpret_cast<float*>(top + scratch.candidates);
    auto* keys = reinterpret_cast<int32_t*>(values + scratch.cols);
    int32_t* found = keys + scratch.cols;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t o = row / at.inner, i = row % at.inner;
      const int64_t from = o * at.cols * at.inner + i, to = o * attrs.k * at.inner + i;
      const float* v = values;
      if (at.inner == 1)
        v = row_as_f32(x.dtype, x.data, from, values, at.cols);
      else
        gather(x, from, at.inner, at.cols, values);
      ordered_keys(v, keys, at.cols, attrs.largest);
      top_of_row(keys, at.cols, attrs.k, top, found);
      if (attrs.index_dtype == DType::I32)
        write_row<int32_t>(call, top, attrs.k, from, to, at.inner);
      else
        write_row<int64_t>(call, top, attrs.k, from, to, at.inner);
    }
  });
}

}  // namespace rlx::cpu
