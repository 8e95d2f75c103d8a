#define RLX_SIMD_VNNI
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/int32.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/quant/int32.h"
#include "backends/cpu/quant/small_floats.h"
//
#include "backends/cpu/quant/lanes-inl.h"

#ifndef RLX_INTEGER_RUNS_
#define RLX_INTEGER_RUNS_
namespace rlx::cpu::quant {
// Windows of a tile that lie in one row of the output.
struct ByteRun {
  int64_t to, n;    // first column, number of windows
  int64_t z, y, x;  // of the first window's tap 0
};
}  // namespace rlx::cpu::quant
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace rlx::cpu::quant;

#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE void add_ints(Ints v, uint32_t* sums) {
  _mm512_storeu_si512(sums, _mm512_add_epi32(_mm512_loadu_si512(sums), v));
}
#else
HWY_INLINE void add_ints(const Ints& v, uint32_t* sums) {
  for (int i = 0; i < 16; ++i) sums[i] += static_cast<uint32_t>(v.v[i]);
}
#endif

// Products of so many elements of K fit 32 bits.
constexpr int64_t kChunk = 32768;

template <int kRows>
HWY_INLINE void products(const IntegerRows& rows, int64_t first, const IntegerColumns& columns, int64_t k, int32_t* y,
                         int64_t y_row) {
  uint32_t sums[kRows][kColumns] = {};
  const int8_t* row = rows.codes + first * rows.step;
  const uint8_t* codes = columns.codes;
  for (int64_t k0 = 0; k0 < k; k0 += kChunk) {
    const int64_t end = std::min(k, k0 + kChunk);
    Ints acc[kRows];
    for (int r = 0; r < kRows; ++r) acc[r] = set(0);
    for (int64_t c = k0; c < end; c += 4, codes += 64) {
      const Bytes w = load_bytes(codes);
      for (int r = 0; r < kRows; ++r) acc[r] = dot4(acc[r], w, row + r * rows.step + c);
    }
    for (int r = 0; r < kRows; ++r) add_ints(acc[r], sums[r]);
  }
  for (int r = 0; r < kRows; ++r) {
    const auto zero = static_cast<uint32_t>(rows.zeros[first + r]), term = static_cast<uint32_t>(rows.terms[first + r]);
    for (int64_t c = 0; c < kColumns; ++c)
      sums[r][c] -= static_cast<uint32_t>(columns.zeros[c]) * term + zero * static_cast<uint32_t>(columns.sums[c]);
    if (columns.count == kColumns)
      std::memcpy(y + (first + r) * y_row, sums[r], sizeof sums[r]);
    else
      std::memcpy(y + (first + r) * y_row, sums[r], static_cast<size_t>(columns.count) * sizeof(int32_t));
  }
}

void IntegerProducts(const IntegerRows& rows, const IntegerColumns& columns, int64_t k, int32_t* y, int64_t y_row) {
  int64_t r = 0;
  const auto run = [&]<int kRows>(std::integral_constant<int, kRows>) HWY_ATTR {
    for (; r + kRows <= rows.count; r += kRows) products<kRows>(rows, r, columns, k, y, y_row);
  };
#if HWY_TARGET == HWY_AVX3_DL  // the others only have to be right
  run(std::integral_constant<int, 16>());
  run(std::integral_constant<int, 4>());
#endif
  run(std::integral_constant<int, 1>());
}

int32_t SumRow(const int8_t* row, int64_t k) {
  uint32_t sum = 0;  // like all sums here, it wraps
  for (int64_t i = 0; i < k; ++i) sum += static_cast<uint32_t>(int32_t{row[i]});
  return static_cast<int32_t>(sum);
}

int32_t CopyRow(const uint8_t* from, int64_t k, uint8_t flip, int8_t* to) {
  for (int64_t i = 0; i < k; ++i) to[i] = static_cast<int8_t>(from[i] ^ flip);
  for (int64_t i = k; i < in_fours(k); ++i) to[i] = 0;
  return SumRow(to, k);
}

// Four elements of K of n columns, side by side; `sums` counts them.
HWY_INLINE void interleave(const uint8_t* const* lines, int64_t n, uint8_t flip, uint8_t* HWY_RESTRICT codes,
                           int32_t* HWY_RESTRICT sums) {
  const uint8_t *a = lines[0], *b = lines[1], *c = lines[2], *d = lines[3];
  for (int64_t i = 0; i < n; ++i) {
    const auto p = static_cast<uint8_t>(a[i] ^ flip), q = static_cast<uint8_t>(b[i] ^ flip);
    const auto r = static_cast<uint8_t>(c[i] ^ flip), s = static_cast<uint8_t>(d[i] ^ flip);
    codes[4 * i] = p;
    codes[4 * i + 1] = q;
    codes[4 * i + 2] = r;
    codes[4 * i + 3] = s;
    sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + p + q + r + s);
  }
}

void PackColumns(const uint8_t* from, int64_t k, int64_t k_stride, int64_t count, uint8_t flip, uint8_t* codes,
                 int32_t* sums) {
  uint8_t buffer[4][kColumns] = {};
  uint8_t nothing[kColumns];
  std::memset(nothing, flip, sizeof nothing);  // 0 behind the end
  std::fill(sums, sums + kColumns, 0);
  for (int64_t i = 0; i < k; i += 4, codes += 64) {
    const uint8_t* lines[4];
    for (int64_t j = 0; j < 4; ++j) {
      lines[j] = i + j < k ? from + (i + j) * k_stride : nothing;
      if (i + j >= k || count == kColumns) continue;
      std::memcpy(buffer[j], lines[j], static_cast<size_t>(count));
      lines[j] = buffer[j];
    }
    interleave(lines, kColumns, flip, codes, sums);
  }
}

// One tap of the windows of a tile: 32 bytes, of which copies may write more, so runs are in ascending order.
HWY_INLINE void fill_line(const ByteWindows& w, const ByteRun* runs, int64_t num_runs, int64_t channel, int64_t tz,
                          int64_t ty, int64_t tx, uint8_t* line) {
  const WindowAxis &az = w.axes[0], &ay = w.axes[1], &ax = w.axes[2];
  for (int64_t i = 0; i < num_runs; ++i) {
    const ByteRun& run = runs[i];
    const int64_t z = run.z + tz * az.step, y = run.y + ty * ay.step, x = run.x + tx * ax.step;
    uint8_t* to = line + run.to;
    if (!az.inside(z) || !ay.inside(y)) {
      std::memset(to, w.padding, kWindows);
      continue;
    }
    const int64_t row = w.first + ((channel * az.in + z) * ay.in + y) * ax.in;
    if (ax.stride == 1 && row + x >= 0 && row + x + kWindows <= w.elements) {
      std::memcpy(to, w.all + row + x, kWindows);
      for (int64_t e = 0; e < std::min(run.n, -x); ++e) to[e] = w.padding;
      for (int64_t e = std::max<int64_t>(0, ax.in - x); e < run.n; ++e) to[e] = w.padding;
      continue;
    }
    for (int64_t e = 0; e < run.n; ++e) {
      const int64_t at = x + e * ax.stride;
      to[e] = ax.inside(at) ? w.all[row + at] : w.padding;
    }
  }
}

void GatherWindows(const ByteWindows& w, const ByteRun* runs, int64_t num_runs, uint8_t* codes, int32_t* sums) {
  const WindowAxis &az = w.axes[0], &ay = w.axes[1], &ax = w.axes[2];
  const int64_t group = in_fours(w.depth()) * kColumns;
  uint8_t buffer[4][2 * kWindows] = {};
  const uint8_t* lines[2][4];
  for (int j = 0; j < 4; ++j) {
    lines[0][j] = buffer[j];
    lines[1][j] = buffer[j] + kColumns;
  }
  std::fill(sums, sums + kWindows, 0);
  int64_t filled = 0;
  const auto give = [&]() HWY_ATTR {
    interleave(lines[0], kColumns, w.flip, codes, sums);
    interleave(lines[1], kColumns, w.flip, codes + group, sums + kColumns);
    codes += 4 * kColumns;
    filled = 0;
  };
  for (int64_t c = 0; c < w.channels; ++c)
    for (int64_t tz = 0; tz < az.taps; ++tz)
      for (int64_t ty = 0; ty < ay.taps; ++ty)
        for (int64_t tx = 0; tx < ax.taps; ++tx) {
          fill_line(w, runs, num_runs, c, tz, ty, tx, buffer[filled]);
          if (++filled == 4) give();
        }
  if (filled == 0) return;
  while (filled < 4) std::memset(buffer[filled++], w.flip, kWindows);  // 0 behind the end
  give();
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(IntegerProducts);
HWY_EXPORT(CopyRow);
HWY_EXPORT(SumRow);
HWY_EXPORT(PackColumns);
HWY_EXPORT(GatherWindows);

namespace quant {

void integer_products(const IntegerRows& rows, const IntegerColumns& columns, int64_t k, int32_t* y, int64_t y_row) {
  HWY_DYNAMIC_DISPATCH(IntegerProducts)(rows, columns, k, y, y_row);
}
int32_t copy_row(const uint8_t* from, int64_t k, uint8_t flip, int8_t* to) {
  return HWY_DYNAMIC_DISPATCH(CopyRow)(from, k, flip, to);
}
int32_t sum_row(const int8_t* row, int64_t k) { return HWY_DYNAMIC_DISPATCH(SumRow)(row, k); }
void pack_columns(const uint8_t* from, int64_t k, int64_t k_stride, int64_t count, uint8_t flip, uint8_t* codes,
                  int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(PackColumns)(from, k, k_stride, count, flip, codes, sums);
}

void gather_windows(const ByteWindows& w, int64_t window, int64_t n, uint8_t* codes, int32_t* sums) {
  const WindowAxis &az = w.axes[0], &ay = w.axes[1], &ax = w.axes[2];
  ByteRun runs[kWindows];
  int64_t count = 0;
  for (int64_t to = 0; to < n;) {
    const int64_t at = window + to, x = at % ax.out, y = at / ax.out % ay.out, z = at / ax.out / ay.out;
    const int64_t length = std::min(n - to, ax.out - x);
    runs[count++] = {to, length, z * az.stride + az.first, y * ay.stride + ay.first, x * ax.stride + ax.first};
    to += length;
  }
  HWY_DYNAMIC_DISPATCH(GatherWindows)(w, runs, count, codes, sums);
}

}  // namespace quant
}  // namespace rlx::cpu
#endif
