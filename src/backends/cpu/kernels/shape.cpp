// Data movement: elements are bytes, so every dtype takes the same path.
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "core/thread_pool.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/slice.h"
#include "rlx/ops/transpose.h"

namespace rlx::cpu {

using host::View;

static int64_t element_bytes(const View& x) { return static_cast<int64_t>(size_of(x.dtype)); }
static int64_t total_bytes(const View& x) { return x.elements() * element_bytes(x); }

bool few_axes(const Signature& s) { return s.output(0).rank() <= kMostAxes; }

void concat(const Call& call) {
  const int64_t axis = call.attrs<ops::ConcatAttrs>().axis;
  const View& y = call.output(0);
  const auto [outer, cols, inner] = host::split_at(y.sizes, axis);
  const int64_t element = element_bytes(y);
  int64_t first = 0;
  for (int64_t i = 0; i < call.num_inputs(); ++i) {
    const View& x = call.input(i);
    const int64_t own = host::split_at(x.sizes, axis).cols;
    StridedCopy copy(y.data + first * inner * element, x.data, element);
    copy.add_axis(outer, own * inner * element, cols * inner * element);
    copy.add_axis(own * inner, element, element);
    copy.run(call.pool(), total_bytes(y));
    first += own;
  }
}

void expand(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const int64_t added = y.rank() - x.rank();
  int64_t from[kMostAxes] = {}, to[kMostAxes];
  int64_t x_stride = element_bytes(x), y_stride = x_stride;
  for (int64_t d = y.rank(); d-- > 0;) {
    to[d] = y_stride;
    y_stride *= y.dim(d);
    if (d < added) continue;
    if (x.dim(d - added) != 1) from[d] = x_stride;
    x_stride *= x.dim(d - added);
  }
  StridedCopy copy(y.data, x.data, element_bytes(x));
  for (int64_t d = 0; d < y.rank(); ++d) copy.add_axis(y.dim(d), from[d], to[d]);
  copy.run(call.pool(), total_bytes(y));
}

void narrow(const Call& call) {
  const auto& attrs = call.attrs<ops::NarrowAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const auto [outer, cols, inner] = host::split_at(x.sizes, attrs.axis);
  const int64_t len = host::split_at(y.sizes, attrs.axis).cols, element = element_bytes(x);
  StridedCopy copy(y.data, x.data + attrs.start.value() * inner * element, element);
  copy.add_axis(outer, cols * inner * element, len * inner * element);
  copy.add_axis(len * inner, element, element);
  copy.run(call.pool(), total_bytes(y));
}

void resize_nearest_2x(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const int64_t element = element_bytes(x), width = x.dim(3), rows = x.elements() / width;
  const int64_t from = width * element, to = 2 * from;
  const bool streaming =
      total_bytes(y) >= kStreamBytes && reinterpret_cast<uintptr_t>(y.data) % 16 == 0 && to % 16 == 0 && to >= kLongRow;
  call.pool().parallel_for(0, rows, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      double_row(y.data + 2 * r * to, y.data + (2 * r + 1) * to, x.data + r * from, element, width, streaming);
    if (streaming) stream_flush();
  });
}

void slice(const Call& call) {
  const auto& attrs = call.attrs<ops::SliceAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  int64_t from[kMostAxes], to[kMostAxes], first = 0, x_stride = element_bytes(x), y_stride = x_stride;
  for (int64_t d = x.rank(); d-- > 0;) {
    const auto a = static_cast<size_t>(d);
    first += attrs.start[a].value() * x_stride;
    from[d] = attrs.step[a] * x_stride;
    to[d] = y_stride;
    x_stride *= x.dim(d);
    y_stride *= y.dim(d);
  }
  StridedCopy copy(y.data, x.data + first, element_bytes(x));
  for (int64_t d = 0; d < y.rank(); ++d) copy.add_axis(y.dim(d), from[d], to[d]);
  copy.run(call.pool(), total_bytes(y));
}

void transpose(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  int64_t own[kMostAxes], to[kMostAxes], x_stride = element_bytes(x), y_stride = x_stride;
  for (int64_t d = x.rank(); d-- > 0;) {
    own[d] = x_stride;
    to[d] = y_stride;
    x_stride *= x.dim(d);
    y_stride *= y.dim(d);
  }
  StridedCopy copy(y.data, x.data, element_bytes(x));
  const std::vector<int64_t>& perm = call.attrs<ops::TransposeAttrs>().perm;
  for (int64_t d = 0; d < y.rank(); ++d) copy.add_axis(y.dim(d), own[perm[static_cast<size_t>(d)]], to[d]);
  copy.run(call.pool(), total_bytes(y));
}

}  // namespace rlx::cpu
