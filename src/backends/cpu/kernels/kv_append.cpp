#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "core/thread_pool.h"
#include "rlx/ops/sequence_state.h"

namespace rlx::cpu {

// Where the cache's bytes are the result's, only the new rows are written.
void kv_append(const Call& call) {
  const host::View &cache = call.input(0), &rows = call.input(1), &out = call.output(0);
  const int64_t axis = call.attrs<ops::KvAppendAttrs>().axis;
  const auto [outer, capacity, inner] = host::split_at(cache.sizes, axis);
  const int64_t batch = cache.dim(0), count = host::split_at(rows.sizes, axis).cols;
  const int64_t cap = capacity, per_batch = outer / batch;  // clang 14 cannot capture a structured binding
  const auto* len = call.input_as<int32_t>(2);
  for (int64_t b = 0; b < batch; ++b)
    if (len[b] < 0 || len[b] > cap - count)
      fail(ErrorKind::kRuntime,
           str("Rows ", len[b], " … ", len[b] + count, " of batch ", b, " do not fit the cache (", cap, ")."));
  const int64_t bytes = inner * static_cast<int64_t>(size_of(cache.dtype));  // of one row
  if (out.data != cache.data) {
    StridedCopy copy(out.data, cache.data, bytes);
    copy.add_axis(outer * cap, bytes, bytes);
    copy.run(call.pool(), outer * cap * bytes);
  }
  if (count == 0) return;
  const int64_t grain = std::max<int64_t>(1, 4 * kGrain / std::max<int64_t>(1, count * bytes));
  call.pool().parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      copy_bytes(out.data + (o * cap + len[o / per_batch]) * bytes, rows.data + o * count * bytes, count * bytes,
                 false);
  });
}

}  // namespace rlx::cpu
