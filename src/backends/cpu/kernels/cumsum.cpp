// Running sums along any axis. Sums of floats are taken in double, as the oracle takes them; integers wrap.
#include "rlx/ops/cumsum.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/select.h"
#include "backends/cpu/simd/stream.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kChains = 8;         // running sums side by side: one alone waits for every addition
constexpr int64_t kChunk = 2048;       // elements of a row that are summed by the chains together
constexpr int64_t kStrip = 1024;       // columns side by side
constexpr int64_t kEnoughRows = 16;    // fewer rows are cut into blocks, so that all threads have work
constexpr int64_t kBlock = 32 * 2048;  // elements of such a block

template <class T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <class T>
SumOf<T> total(const T* x, int64_t n) {
  SumOf<T> sums[kChains] = {};
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int64_t c = 0; c < kChains; ++c) sums[c] += static_cast<SumOf<T>>(x[i + c]);
  for (; i < n; ++i) sums[0] += static_cast<SumOf<T>>(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// n elements at most kChunk, in running order: x[0], x[step], ...; returns what the sum is behind them.
template <class T, bool kExclusive, int64_t kStep>
SumOf<T> scan_chunk(const T* x, T* y, int64_t n, SumOf<T> sum) {
  const auto next = [](SumOf<T>& s, T v) {
    const SumOf<T> before = s;
    s += static_cast<SumOf<T>>(v);
    return static_cast<T>(kExclusive ? before : s);
  };
  const int64_t part = n / kChains;
  SumOf<T> sums[kChains];
  for (int64_t c = 0; c < kChains; ++c) {
    sums[c] = sum;
    sum += total(kStep > 0 ? x + c * part : x - (c + 1) * part + 1, part);
  }
  for (int64_t i = 0; i < part; ++i)
    for (int64_t c = 0; c < kChains; ++c) {
      const int64_t at = (c * part + i) * kStep;
      y[at] = next(sums[c], x[at]);
    }
  for (int64_t i = kChains * part; i < n; ++i) y[i * kStep] = next(sum, x[i * kStep]);
  return sum;
}

template <class T>
SumOf<T> scan_chunk(const T* x, T* y, int64_t n, SumOf<T> sum, bool exclusive, bool reverse) {
  if (exclusive) return reverse ? scan_chunk<T, true, -1>(x, y, n, sum) : scan_chunk<T, true, 1>(x, y, n, sum);
  return reverse ? scan_chunk<T, false, -1>(x, y, n, sum) : scan_chunk<T, false, 1>(x, y, n, sum);
}

// A whole row, or the part of one that begins with `sum`; x and y point at its first element in memory. `stream` writes
// y past the caches.
template <class T>
void scan_row(const T* x, T* y, int64_t n, SumOf<T> sum, bool exclusive, bool reverse, bool stream) {
  alignas(64) T buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t size = std::min(kChunk, n - i), first = reverse ? n - i - size : i;
    T* to = stream ? buffer : y + first;
    const int64_t begin = reverse ? size - 1 : 0;
    sum = scan_chunk(x + first + begin, to + begin, size, sum, exclusive, reverse);
    if (stream) stream_copy(buffer, y + first, size * static_cast<int64_t>(sizeof(T)));
  }
}

template <class T>
void scan_columns(const T* x, T* y, int64_t cols, int64_t stride, int64_t width, bool exclusive, bool reverse,
                  bool stream) {
  SumOf<T> sums[kStrip] = {};
  alignas(64) T buffer[kStrip];
  for (int64_t c = 0; c < cols; ++c) {
    const int64_t at = (reverse ? cols - 1 - c : c) * stride;
    T* to = stream ? buffer : y + at;
    if constexpr (std::is_same_v<T, float>) {
      const int64_t left = std::min<int64_t>(2, cols - 1 - c);  // of the rows that follow
      scan_step(x + at, to, sums, width, exclusive, x + at + (reverse ? -left : left) * stride);
    } else {
      for (int64_t i = 0; i < width; ++i) {
        const SumOf<T> before = sums[i];
        sums[i] += static_cast<SumOf<T>>(x[at + i]);
        to[i] = static_cast<T>(exclusive ? before : sums[i]);
      }
    }
    if (stream) stream_copy(buffer, y + at, width * static_cast<int64_t>(sizeof(T)));
  }
}

int64_t blocks_of(const host::SplitAt& at) {
  return at.inner == 1 && at.outer < kEnoughRows && at.cols > kBlock ? div_up(at.cols, kBlock) : 1;
}

template <class T>
void scan(const Call& call, bool reverse) {
  const bool exclusive = call.attrs<ops::CumsumAttrs>().exclusive;
  const host::SplitAt at = host::split_at(call.input(0).sizes, call.attrs<ops::CumsumAttrs>().axis);
  const int64_t cols = at.cols, inner = at.inner, blocks = blocks_of(at);
  const T* x = call.input_as<T>(0);
  T* y = call.output_as<T>(0);
  const bool stream = at.outer * cols * inner * static_cast<int64_t>(sizeof(T)) >= kStreamBytes;
  if (inner > 1) {
    const int64_t strips = div_up(inner, kStrip);
    const int64_t grain = std::max<int64_t>(1, kGrain / (cols * std::min(inner, kStrip)));
    call.pool().parallel_for(0, at.outer * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t column = u % strips * kStrip, first = u / strips * cols * inner + column;
        scan_columns(x + first, y + first, cols, inner, std::min(kStrip, inner - column), exclusive, reverse, stream);
      }
      stream_flush();
    });
    return;
  }
  // The sums of the blocks, in running order, become what each of them begins with.
  auto* before = call.scratch_as<SumOf<T>>();
  const auto block_at = [&](int64_t u) {  // first element in memory, and size
    const int64_t b = u % blocks, position = (reverse ? blocks - 1 - b : b) * kBlock;
    return std::pair(u / blocks * cols + position, std::min(kBlock, cols - position));
  };
  if (blocks > 1) {
    call.pool().parallel_for(0, at.outer * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) before[u] = total(x + block_at(u).first, block_at(u).second);
    });
    for (int64_t row = 0; row < at.outer; ++row) {
      SumOf<T> sum{};
      for (int64_t u = row * blocks; u < (row + 1) * blocks; ++u) sum += std::exchange(before[u], sum);
    }
  }
  const int64_t grain = blocks > 1 ? 1 : std::max<int64_t>(1, kGrain / cols);
  call.pool().parallel_for(0, at.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const auto [first, size] = blocks > 1 ? block_at(u) : std::pair(u * cols, cols);
      scan_row(x + first, y + first, size, blocks > 1 ? before[u] : SumOf<T>{}, exclusive, reverse, stream);
    }
    stream_flush();
  });
}

Strips strips_of(const host::SplitAt& at) { return {at.outer, at.cols, at.inner, 256}; }

RowScratch half_scratch(const host::SplitAt& at, DType dtype) {
  return {dtype, 0, at.inner > 1 ? strips_of(at).buffer() : RowGroups(at.outer, at.cols).buffer};
}

// F16 and BF16, through buffers of f32.
void scan_half(const Call& call, bool reverse) {
  const host::View &x = call.input(0), &y = call.output(0);
  const bool exclusive = call.attrs<ops::CumsumAttrs>().exclusive;
  const host::SplitAt at = host::split_at(x.sizes, call.attrs<ops::CumsumAttrs>().axis);
  const RowScratch scratch = half_scratch(at, x.dtype);
  if (at.inner > 1)
    return strips_of(at).each(call, scratch, [&](float* v, int64_t width) {
      scan_columns(v, v, at.cols, width, width, exclusive, reverse, false);
    });
  const RowGroups g(at.outer, at.cols);
  const RowWriter out(y, false);
  g.each(call.pool(), [&](int64_t row, int64_t rows) {
    float* v = scratch.of_thread(call);
    to_f32(x.dtype, x.data, row * g.cols, v, rows * g.cols);
    for (int64_t r = 0; r < rows; ++r) scan_row(v + r * g.cols, v + r * g.cols, g.cols, 0.0, exclusive, reverse, false);
    out.finish(row * g.cols, v, rows * g.cols);
  });
}

void run(const Call& call, bool reverse) {
  switch (call.input(0).dtype) {
    case DType::F32: return scan<float>(call, reverse);
    case DType::I32: return scan<int32_t>(call, reverse);
    case DType::I64: return scan<int64_t>(call, reverse);
    default: return scan_half(call, reverse);
  }
}

}  // namespace

bool cumsum_supports(const Signature& s) {
  const DType t = s.input(0).dtype;
  return is_small_float(t) || t == DType::I32 || t == DType::I64;
}

int64_t cumsum_scratch(const Signature& s, int threads) {
  const DType dtype = s.input(0).dtype;
  const host::SplitAt at = host::split_at(s.input(0).shape.sizes(), s.attrs.as<ops::CumsumAttrs>().axis);
  if (dtype == DType::F16 || dtype == DType::BF16) return half_scratch(at, dtype).bytes(threads);
  const int64_t blocks = blocks_of(at);
  return blocks > 1 ? at.outer * blocks * static_cast<int64_t>(sizeof(double)) : 0;
}

void cumsum(const Call& call) { run(call, call.attrs<ops::CumsumAttrs>().reverse); }
void cumsum_backward(const Call& call) { run(call, !call.attrs<ops::CumsumAttrs>().reverse); }

}  // namespace rlx::cpu
