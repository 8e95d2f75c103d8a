// The inner loops of data movement: bytes of any dtype. `streaming` stores go past the caches: for results too large to
// be found there again (simd/stream.h). A thread that made some calls stream_flush() when it has done its part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/stream.h"

namespace rlx::cpu {

// A streamed row has whole cache lines, or so many that its ends do not matter.
inline constexpr int64_t kCacheLine = 64, kLongRow = 1024;

inline bool on_line(const void* p) { return reinterpret_cast<uintptr_t>(p) % kCacheLine == 0; }
// Rows of `bytes` bytes at dst, dst + stride, …
inline bool rows_stream_well(const void* dst, int64_t stride, int64_t bytes) {
  return bytes >= kLongRow || (on_line(dst) && stride % kCacheLine == 0 && bytes % kCacheLine == 0);
}

void copy_bytes(std::byte* dst, const std::byte* src, int64_t bytes, bool streaming);
// `rows` rows of `bytes` bytes, strides in bytes.
void copy_rows(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t rows,
               int64_t bytes, bool streaming);
// The element of `size` (1, 2, 4, 8) bytes at src, `count` times.
void fill_elements(std::byte* dst, const std::byte* src, int64_t size, int64_t count, bool streaming);
// dst[c][r] = src[r][c], elements of `size` bytes, strides in bytes. Streaming: dst and its stride lie on cache lines.
void transpose_panel(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t rows,
                     int64_t cols, int64_t size, bool streaming);
// Both dst rows [2n]: dst[2i] = dst[2i + 1] = src[i]. Streaming: the rows begin on multiples of 16 bytes.
void double_row(std::byte* dst, std::byte* second, const std::byte* src, int64_t size, int64_t n, bool streaming);

// Asks for the beginning of a row that is read soon: rows_ahead() rows before its turn, where rows lie here and there.
void prefetch_row(const std::byte* row, int64_t bytes);
inline int64_t rows_ahead(int64_t bytes) { return bytes >= 2048 ? 1 : 2048 / bytes; }

// sum[i] += x[i].
void add_rows(float* sum, const float* x, int64_t n);

}  // namespace rlx::cpu
