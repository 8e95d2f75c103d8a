// Nearest neighbours are moved: bytes of any dtype.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/host/resize_axis.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::ResizeAxis;
using host::View;

namespace {

template <class T>
void pick(std::byte* to, const std::byte* from, const int64_t* offsets, int64_t n) {
  for (int64_t j = 0; j < n; ++j) std::memcpy(to + j * int64_t{sizeof(T)}, from + offsets[j], sizeof(T));
}

// offsets: of elements or runs, in bytes.
void pick_runs(std::byte* to, const std::byte* from, const int64_t* offsets, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 1: return pick<uint8_t>(to, from, offsets, n);
    case 2: return pick<uint16_t>(to, from, offsets, n);
    case 4: return pick<uint32_t>(to, from, offsets, n);
    case 8: return pick<uint64_t>(to, from, offsets, n);
    default:
      for (int64_t j = 0; j < n; ++j) std::memcpy(to + j * bytes, from + offsets[j], static_cast<size_t>(bytes));
  }
}

}  // namespace

bool resize_nearest_supports(const Signature& s) {
  const auto& attrs = s.attrs.as<ops::ResizeAttrs>();
  return attrs.mode == ops::ResizeMode::kNearest && attrs.coordinate != ops::ResizeCoordinate::kTfCropAndResize &&
         few_axes(s) && s.input(0).shape.num_elements() > 0;
}

// For every axis and place where in x its elements begin.
int64_t resize_nearest_scratch(const Signature& s, int) {
  int64_t places = 0;
  for (const Dim& d : s.output(0).shape) places += d.value();
  return places * static_cast<int64_t>(sizeof(int64_t));
}

void resize_nearest(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const int64_t rank = y.rank(), element = static_cast<int64_t>(size_of(x.dtype));
  std::array<const int64_t*, kMostAxes> offsets{};
  auto* table = call.scratch_as<int64_t>();
  int64_t last = -1, stride = element, run = element;  // the last axis that changes, and the bytes behind it
  for (int64_t a = rank; a-- > 0;) {
    const ResizeAxis axis(call.attrs<ops::ResizeAttrs>(), rank, a, x.dim(a), y.dim(a));
    const bool stays = axis.is_identity();
    if (last < 0 && stays) run *= y.dim(a);
    if (last < 0 && !stays) last = a;
    offsets[static_cast<size_t>(a)] = table;
    for (int64_t j = 0; j < y.dim(a); ++j) {
      int64_t index = j;
      double weight = 1;
      if (!stays) axis.at(j, &index, &weight);
      *table++ = index * stride;
    }
    stride *= x.dim(a);
  }
  if (last < 0) {
    StridedCopy copy(y.data, x.data, element);
    copy.add_axis(y.elements(), element, element);
    return copy.run(call.pool(), y.elements() * element);
  }
  const int64_t places = y.dim(last), bytes = places * run, rows = y.elements() * element / bytes;
  call.pool().parallel_for(0, rows, std::max<int64_t>(1, 4 * kGrain / bytes), [&](int64_t begin, int64_t end) {
    int64_t before = -1;
    for (int64_t r = begin; r < end; ++r) {
      int64_t from = 0;
      for (int64_t a = last, rest = r; a-- > 0; rest /= y.dim(a))
        from += offsets[static_cast<size_t>(a)][rest % y.dim(a)];
      std::byte* to = y.data + r * bytes;
      if (from == before)
        std::memcpy(to, to - bytes, static_cast<size_t>(bytes));
      else
        pick_runs(to, x.data + from, offsets[static_cast<size_t>(last)], places, run);
      before = from;
    }
  });
}

}  // namespace rlx::cpu
