#include "rlx/ops/gather.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::View;

namespace {

int64_t element_bytes(const View& x) { return static_cast<int64_t>(size_of(x.dtype)); }

}  // namespace

void gather(const Call& call) {
  const View &table = call.input(0), &y = call.output(0);
  const auto [outer, cols, inner] = host::split_at(table.sizes, call.attrs<ops::GatherAttrs>().axis);
  const int64_t count = call.input(1).elements(), size = cols;  // clang 14 cannot capture a structured binding
  const int64_t bytes = inner * element_bytes(table);
  const Indices indices(call.input(1));
  const bool streaming = outer * count * bytes >= kStreamBytes && rows_stream_well(y.data, bytes, bytes);
  const int64_t ahead = rows_ahead(std::max<int64_t>(1, bytes));
  FirstFault fault;
  const int64_t grain = std::max<int64_t>(1, 4 * kGrain / std::max<int64_t>(1, bytes));
  call.pool().parallel_for(0, outer * count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const std::byte* from = table.data + i / count * size * bytes;
      const int64_t stop = std::min(end, (i / count + 1) * count);
      for (int64_t k = i % count; i < stop; ++i, ++k) {
        const int64_t index = indices.at(k, size);
        if (index < 0) {
          fault.note(k);
          continue;
        }
        if (bytes >= kCacheLine && i + ahead < stop)
          prefetch_row(from + std::max<int64_t>(0, indices.at(k + ahead, size)) * bytes, bytes);
        if (bytes == 4)
          std::memcpy(y.data + i * 4, from + index * 4, 4);
        else
          copy_bytes(y.data + i * bytes, from + index * bytes, bytes, streaming);
      }
    }
    if (streaming) stream_flush();
  });
  if (fault.any()) indices.fail_at(fault.first(), size);
}

// ---- sums of rows by index: every result row is summed by one thread, its updates in their order ----

namespace {

// Elements of a row that are summed at a time, and rows that are summed before they are added to the total: so the
// rounding errors of long sums stay small.
constexpr int64_t kSlice = 512, kPartialRows = 256;

void scatter(const Call& call, int64_t axis) {
  const View &dy = call.input(0), &y = call.output(0);
  const auto [outer, cols, inner] = host::split_at(y.sizes, axis);
  const int64_t count = call.input(1).elements(), size = cols, width = inner;
  const Indices indices(call.input(1));
  // Counting sort: the updates of row i are order[starts[i]] … order[starts[i + 1] - 1], ascending.
  auto* starts = call.scratch_as<int32_t>();
  int32_t* order = starts + size + 2;
  std::fill(starts, starts + size + 2, 0);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = indices.at(k, size);
    if (index < 0) indices.fail_at(k, size);
    ++starts[index + 2];
  }
  for (int64_t i = 2; i < size + 2; ++i) starts[i] += starts[i - 1];
  for (int64_t k = 0; k < count; ++k) order[starts[indices.at(k, size) + 1]++] = static_cast<int32_t>(k);

  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)), element = element_bytes(y);
  const int64_t bytes = width * element;
  const bool streaming = outer * size * bytes >= kStreamBytes && rows_stream_well(y.data, bytes, bytes);
  call.pool().parallel_for(0, outer * size, grain, [&](int64_t begin, int64_t end) {
    alignas(64) float total[kSlice], part[kSlice], row[kSlice];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / size, first = starts[i % size], last = starts[i % size + 1];
      const auto update = [&](int64_t u) { return (o * count + order[u]) * width; };
      if (first == last) {
        std::memset(y.data + i * bytes, 0, static_cast<size_t>(bytes));
        continue;
      }
      if (last < count) prefetch_row(dy.data + update(last) * element, bytes);
      if (last - first == 1) {
        copy_bytes(y.data + i * bytes, dy.data + update(first) * element, bytes, streaming);
        continue;
      }
      for (int64_t x = 0; x < width; x += kSlice) {
        const int64_t n = std::min(kSlice, width - x);
        for (int64_t u = first; u < last; u += kPartialRows) {
          float* sum = u == first ? total : part;
          to_f32(dy.dtype, dy.data, update(u) + x, sum, n);
          for (int64_t k = u + 1; k < std::min(last, u + kPartialRows); ++k)
            add_rows(sum, row_as_f32(dy.dtype, dy.data, update(k) + x, row, n), n);
          if (u != first) add_rows(total, part, n);
        }
        from_f32(y.dtype, total, y.data, i * width + x, n);
      }
    }
    if (streaming) stream_flush();
  });
}

int64_t scatter_scratch_bytes(const Signature& s, int64_t axis) {
  const Dim& rows = s.output(0).dim(normalize_axis(axis, s.output(0).rank()));
  return (rows.value() + 2 + s.input(1).shape.num_elements()) * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace

bool scatter_supports(const Signature& s) {
  constexpr int64_t kMost = int64_t{1} << 30;  // indices are sorted as 32 bits
  return is_small_float(s.output(0).dtype) && s.output(0).shape.num_elements() < kMost &&
         s.input(1).shape.num_elements() < kMost;
}

int64_t scatter_add_scratch(const Signature& s, int) { return scatter_scratch_bytes(s, 0); }
void scatter_add(const Call& call) { scatter(call, 0); }

int64_t gather_backward_scratch(const Signature& s, int) {
  return scatter_scratch_bytes(s, s.attrs.as<ops::GatherBackwardAttrs>().axis);
}
void gather_backward(const Call& call) { scatter(call, call.attrs<ops::GatherBackwardAttrs>().axis); }

}  // namespace rlx::cpu
