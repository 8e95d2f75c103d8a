// Elements of any supported dtype to the lanes of a block and back, and stores that leave the caches alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

// n contiguous elements. Source and target do not overlap.
void load_lanes(DType dtype, const std::byte* from, void* to, int64_t n);
void store_lanes(DType dtype, const void* from, std::byte* to, int64_t n);

// A copy that does not read the target's lines into the caches: for results that are larger than those.
// finish_streaming() must be called by the same thread before others read them.
void stream_bytes(const void* from, void* to, int64_t bytes);
void finish_streaming();

}  // namespace rlx::cpu
