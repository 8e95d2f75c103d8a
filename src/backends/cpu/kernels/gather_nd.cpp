#include "rlx/ops/gather_nd.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/along_axis.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

using host::View;

namespace {

template <class T>
void gather_along(const Call& call, const AlongAxis& along) {
  const T* x = reinterpret_cast<const T*>(call.input(0).data);
  T* y = reinterpret_cast<T*>(call.output(0).data);
  const Indices indices(call.input(1));
  FirstFault fault;
  const int64_t inner = along.inner.count();
  // One index per place of x: runs go along the axis.
  const bool along_axis = inner == 1;
  const int64_t run = along_axis ? along.count : along.inner.run(), step = along_axis ? 0 : along.inner.step();
  call.pool().parallel_for(0, call.output(0).elements(), kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t within = begin % run, stop = std::min(end, begin + run - within);
      const T* from =
          x + along.outer.offset(begin / (along.count * inner)) + (along_axis ? 0 : along.inner.offset(begin % inner));
      for (; begin < stop; ++begin, from += step) {
        const int64_t index = indices.at(begin, along.size);
        if (index < 0)
          fault.note(begin);
        else
          y[begin] = from[index * along.stride];
      }
    }
  });
  if (fault.any()) indices.fail_at(fault.first(), along.size);
}

}  // namespace

void gather_elements(const Call& call) {
  const View &x = call.input(0), &indices = call.input(1);
  const AlongAxis along(x.sizes, indices.sizes, normalize_axis(call.attrs<ops::GatherElementsAttrs>().axis, x.rank()));
  switch (size_of(x.dtype)) {
    case 1: return gather_along<uint8_t>(call, along);
    case 2: return gather_along<uint16_t>(call, along);
    case 4: return gather_along<uint32_t>(call, along);
    default: return gather_along<uint64_t>(call, along);
  }
}

void gather_nd(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const std::span<const int64_t> sizes = call.input(1).sizes;
  const auto batch = static_cast<size_t>(call.attrs<ops::GatherNdAttrs>().batch_dims);
  const auto depth = sizes.back();
  const int64_t count = product(sizes.first(sizes.size() - 1));
  const int64_t per_batch = count / product(x.sizes.first(batch));
  const std::span<const int64_t> indexed = x.sizes.subspan(batch, static_cast<size_t>(depth));
  const int64_t bytes = product(x.sizes.subspan(batch + indexed.size())) * static_cast<int64_t>(size_of(x.dtype));
  const Indices indices(call.input(1));
  const bool streaming = count * bytes >= kStreamBytes && rows_stream_well(y.data, bytes, bytes);
  FirstFault fault;
  call.pool().parallel_for(0, count, std::max<int64_t>(1, 4 * kGrain / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t from = i / per_batch;
      bool good = true;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t size = indexed[static_cast<size_t>(k)], index = indices.at(i * depth + k, size);
        if (index < 0 && good) fault.note(i * depth + k);
        good = good && index >= 0;
        from = from * size + index;
      }
      if (!good) continue;
      if (bytes == 4)
        std::memcpy(y.data + i * 4, x.data + from * 4, 4);
      else
        copy_bytes(y.data + i * bytes, x.data + from * bytes, bytes, streaming);
    }
    if (streaming) stream_flush();
  });
  if (fault.any()) indices.fail_at(fault.first(), indexed[static_cast<size_t>(fault.first() % depth)]);
}

}  // namespace rlx::cpu
