// Kernels that own whole rows: what they share is how a row of any small float becomes f32 and goes back to memory.
#pragma once

#include <algorithm>
#include <span>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/stream.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

// Short rows are taken together, so that what is done per call and per copy is done for this many elements.
inline constexpr int64_t kGroupElements = 2048;

// Rows that follow each other in memory, in groups.
struct RowGroups {
  int64_t rows, cols;
  int64_t together;  // rows of a group
  int64_t buffer;    // floats that hold one group, a whole number of cache lines

  RowGroups(int64_t rows_, int64_t cols_)
      : rows(rows_),
        cols(cols_),
        together(std::max<int64_t>(1, kGroupElements / std::max<int64_t>(1, cols_))),
        buffer(round_up(together * cols_, 16)) {}

  // f(first row, number of rows) for every group, on all threads.
  template <class F>
  void each(ThreadPool& pool, const F& f) const {
    const int64_t groups = div_up(rows, together);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, together * cols));
    pool.parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) f(g * together, std::min(together, rows - g * together));
      stream_flush();
    });
  }
};

// The rows that the axes from `axis` on make.
inline RowGroups trailing_rows(std::span<const int64_t> sizes, int64_t axis) {
  const auto a = static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(sizes.size())));
  return {product(sizes.first(a)), product(sizes.subspan(a))};
}

// A result of F32, F16 or BF16 that is computed in f32: in place, or in a buffer that then goes to memory.
class RowWriter {
 public:
  // A result that takes an operand's bytes finds them in the cache: there is nothing to write past it.
  RowWriter(const host::View& y, bool shares_bytes)
      : dtype_(y.dtype),
        data_(y.data),
        stream_(!shares_bytes && y.elements() * static_cast<int64_t>(size_of(dtype_)) >= kStreamBytes) {}

  bool direct() const { return dtype_ == DType::F32 && !stream_; }
  // For kernels that write past the caches themselves, where that pays: long rows.
  bool streams_rows(int64_t cols) const { return stream_ && dtype_ == DType::F32 && cols >= 256; }
  bool streams() const { return stream_; }
  std::byte* bytes_at(int64_t offset) const { return data_ + offset * static_cast<int64_t>(size_of(dtype_)); }
  float* at(int64_t offset) const { return reinterpret_cast<float*>(data_) + offset; }
  float* target(int64_t offset, float* buffer) const { return direct() ? at(offset) : buffer; }
  // Overwrites the buffer.
  void finish(int64_t offset, float* buffer, int64_t n) const {
    if (direct()) return;
    if (!stream_) return from_f32(dtype_, buffer, data_, offset, n);
    const auto size = static_cast<int64_t>(size_of(dtype_));
    auto* stored = reinterpret_cast<std::byte*>(buffer);
    if (dtype_ != DType::F32) from_f32(dtype_, buffer, stored, 0, n);  // a vector is read before it is written over
    stream_copy(stored, data_ + offset * size, n * size);
  }
  // Rows that are still needed.
  void copy(int64_t offset, const float* from, int64_t n) const {
    if (dtype_ == DType::F32 && stream_)
      stream_copy(from, at(offset), n * 4);
    else
      from_f32(dtype_, from, data_, offset, n);
  }

 private:
  DType dtype_;
  std::byte* data_;
  bool stream_;
};

// Does a result go through buffers? Asked before the plan decides whether it shares an operand's bytes.
inline bool may_buffer(DType dtype, int64_t elements) { return dtype != DType::F32 || elements * 4 >= kStreamBytes; }

// Scratch: up to three small operands (gamma, beta, bias) as f32 where they are not, then the buffers of each thread.
struct RowScratch {
  int64_t param = 0, per_thread = 0;  // floats

  RowScratch(DType dtype, int64_t param_elements, int64_t floats_per_thread)
      : param(dtype == DType::F32 ? 0 : round_up(param_elements, 16)), per_thread(round_up(floats_per_thread, 16)) {}
  int64_t bytes(int threads) const { return (3 * param + threads * per_thread) * static_cast<int64_t>(sizeof(float)); }
  float* of_param(const Call& call, int64_t i) const { return call.scratch_as<float>() + i * param; }
  float* of_thread(const Call& call) const {
    return call.scratch_as<float>() + 3 * param + ThreadPool::this_thread() * per_thread;
  }
};

// Columns side by side, each an inner axis of a tensor [outer, cols, inner], in strips that fit the second cache. A
// strip is copied to a buffer first: its rows lie far apart, often by a power of two, and would push each other out of
// it.
struct Strips {
  int64_t outer, cols, inner;
  int64_t width;                        // of a strip, but for the last one
  static constexpr int64_t kAhead = 4;  // rows

  Strips(int64_t outer_, int64_t cols_, int64_t inner_, int64_t most)
      : outer(outer_),
        cols(cols_),
        inner(inner_),
        width(std::min(inner_, std::clamp<int64_t>(65536 / std::max<int64_t>(1, cols_) / 16 * 16, 16, most))) {}
  int64_t buffer() const { return cols * width; }

  // f(buffer, width) for every strip, in place; `scratch` holds a buffer for each thread.
  template <class F>
  void each(const Call& call, const RowScratch& scratch, const F& f) const {
    const host::View &x = call.input(0), &y = call.output(0);
    const RowWriter out(y, x.data == y.data);
    const int64_t strips = div_up(inner, width), grain = std::max<int64_t>(1, kGrain / (cols * width));
    call.pool().parallel_for(0, outer * strips, grain, [&](int64_t begin, int64_t end) {
      float* buffer = scratch.of_thread(call);
      for (int64_t u = begin; u < end; ++u) {
        const int64_t column = u % strips * width, n = std::min(width, inner - column);
        const int64_t first = u / strips * cols * inner + column;
        const auto size = static_cast<int64_t>(size_of(x.dtype));
        for (int64_t c = 0; c < cols; ++c) {
          // Each row is on another page, where no hardware looks ahead.
          const std::byte* ahead = x.data + (first + (c + kAhead) * inner) * size;
          for (int64_t i = 0; c + kAhead < cols && i < n * size; i += 64) __builtin_prefetch(ahead + i);
          to_f32(x.dtype, x.data, first + c * inner, buffer + c * n, n);
        }
        f(buffer, n);
        // The next strip is fetched while this one is written: memory is not to wait for the arithmetic.
        const bool follows = u + 1 < end && (u + 1) % strips != 0;
        for (int64_t c = 0; c < cols; ++c) {
          const std::byte* next = x.data + (first + c * inner + width) * size;
          for (int64_t i = 0; follows && i < width * size; i += 64) __builtin_prefetch(next + i, 0, 2);
          out.copy(first + c * inner, buffer + c * n, n);
        }
      }
      stream_flush();
    });
  }
};

// Rows of F16 and BF16 from here on are converted in the first and the last pass of a kernel; shorter ones are
// converted together.
inline constexpr int64_t kLongHalfRow = 64;

// f(x, y, rows, stream) for rows of F16 or BF16 bits. Rows that stream but do not begin with a cache line go through
// the buffer, which f may use until it writes y.
template <class F>
void each_half_row(const host::View& x, const RowWriter& out, int64_t row, int64_t rows, int64_t cols, float* buffer,
                   const F& f) {
  const auto* from = reinterpret_cast<const uint16_t*>(x.data) + row * cols;
  auto* to = reinterpret_cast<uint16_t*>(out.bytes_at(row * cols));
  if (!out.streams() || (reinterpret_cast<uintptr_t>(to) % 64 == 0 && cols % 32 == 0))
    return f(from, to, rows, out.streams());
  for (int64_t r = 0; r < rows; ++r, from += cols, to += cols) {
    f(from, reinterpret_cast<uint16_t*>(buffer), 1, false);
    stream_copy(buffer, to, cols * 2);
  }
}

// All of a small operand as f32: itself, or converted to `buffer`.
inline const float* all_as_f32(const host::View& v, float* buffer) {
  return row_as_f32(v.dtype, v.data, 0, buffer, v.elements());
}

}  // namespace rlx::cpu
