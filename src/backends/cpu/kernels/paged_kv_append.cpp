#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/cpu/simd/convert.h"
#include "backends/host/kv_pages.h"
#include "core/kv_rows.h"
#include "core/thread_pool.h"
#include "rlx/ops/paged_kv.h"

namespace rlx::cpu {

bool paged_kv_append_supports(const Signature& s) {
  return is_small_float(s.input(1).dtype) && (s.input(0).dtype == DType::U32 || is_small_float(s.input(0).dtype));
}

int64_t paged_kv_append_scratch(const Signature& s, int threads) {
  return threads * s.input(1).dim(3).value() * static_cast<int64_t>(sizeof(float));
}

// Where the pool's bytes are the result's, only the new rows are written.
void paged_kv_append(const Call& call) {
  const host::View &pool = call.input(0), &rows = call.input(1), &out = call.output(0);
  const host::KvPageTable pages(call, 0, 2);
  const auto* lengths = call.input_as<int32_t>(3);
  const int64_t batch = rows.dim(0), count = rows.dim(1), heads = rows.dim(2), width = rows.dim(3);
  for (int64_t b = 0; b < batch; ++b) pages.check(b, lengths[b], lengths[b] + count);
  if (out.data != pool.data) {
    const int64_t bytes = pool.elements() * static_cast<int64_t>(size_of(pool.dtype));
    StridedCopy copy(out.data, pool.data, bytes / pool.dim(0));
    copy.add_axis(pool.dim(0), bytes / pool.dim(0), bytes / pool.dim(0));
    copy.run(call.pool(), bytes);
  }
  const bool q8 = call.attrs<ops::PagedKvAppendAttrs>().format == ops::KvFormat::kQ8;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
  call.pool().parallel_for(0, batch * count * heads, grain, [&](int64_t begin, int64_t end) {
    float* row = call.scratch_as<float>() + ThreadPool::this_thread() * width;
    for (int64_t n = begin; n < end; ++n) {
      const int64_t b = n / (count * heads), to = pages.at(b, lengths[b] + n / heads % count, n % heads);
      to_f32(rows.dtype, rows.data, n * width, row, width);
      if (q8)
        encode_q8_row(row, width, call.output_as<uint32_t>(0) + to);
      else
        from_f32(out.dtype, row, out.data, to, width);
    }
  });
}

}  // namespace rlx::cpu
