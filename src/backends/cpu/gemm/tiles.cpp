#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/tiles.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::masked_load;
using cpu::HWY_NAMESPACE::masked_store;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V load(D d, const float* p) { return hn::LoadU(d, p); }
template <class T>
HWY_INLINE V load(D d, const T* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
}
// How many rows ahead of its use a row of B is asked for.
constexpr int64_t kAhead = 12;

// The vectors and the broadcast of A must fit the registers beside the sums.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 14;
#endif

template <int kRows, int kVecs, class T>
void tile(const Tile& t) {
  const D d;
  constexpr int kGroups = (kRows + 2) / 3;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t k = t.k, b_k = t.b_k, a_k = t.a_k, c_row = t.c_row, a_row = t.a_row;
  // Three rows share a pointer (x86 addresses base + 0, 1 and 2 strides): a pointer per row would not fit the
  // registers.
  const float* a[kGroups];
#pragma GCC unroll 16
  for (int g = 0; g < kGroups; ++g) a[g] = t.a + 3 * g * a_row;
  const T* b[(kVecs + 1) / 2];
#pragma GCC unroll 16
  for (int p = 0; p < (kVecs + 1) / 2; ++p) b[p] = static_cast<const T*>(t.b) + p * t.b_panel;

  V sum[kRows][kVecs];
  float* c = t.c;
  const bool whole = t.cols == kVecs * lanes;
  if (t.accumulate && whole) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::LoadU(d, c + i * c_row + v * lanes);
  } else if (t.accumulate) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      const int64_t left = t.cols - v * lanes;
      const auto mask = hn::FirstN(d, static_cast<size_t>(left > 0 ? left : 0));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][v] = masked_load(d, mask, c + i * c_row + v * lanes);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        sum[i][v] = hn::Zero(d);
        hwy::Prefetch(c + i * c_row + v * lanes);  // there when it is written: stores wait for their line
      }
  }

  for (int64_t step = 0; step < k; ++step) {
    V bv[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) bv[v] = load(d, b[v / 2] + (v % 2) * lanes);
#pragma GCC unroll 16
    for (int p = 0; p < (kVecs + 1) / 2; ++p) {
      hwy::Prefetch(b[p] + kAhead * b_k);
      if (kVecs > 1 && sizeof(T) == 4) hwy::Prefetch(b[p] + kAhead * b_k + lanes);
      b[p] += b_k;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = hn::Set(d, a[i / 3][(i % 3) * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
    }
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] += a_k;
  }

  if (whole) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[i][v], d, c + i * c_row + v * lanes);
  } else {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      const int64_t left = t.cols - v * lanes;
      const auto mask = hn::FirstN(d, static_cast<size_t>(left > 0 ? left : 0));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) masked_store(d, mask, sum[i][v], c + i * c_row + v * lanes);
    }
  }
}

// The last columns of a row: reading a whole vector could leave B.
HWY_INLINE V load_last(D d, const float* p, int64_t n) {
  return masked_load(d, hn::FirstN(d, static_cast<size_t>(n)), p);
}
template <class T>
HWY_INLINE V load_last(D d, const T* p, int64_t n) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN T row[kLanes] = {};
  std::memcpy(row, p, std::min(static_cast<size_t>(n), kLanes) * sizeof(T));  // n is less; GCC warns if not told so
  return load(d, row);
}

// kSteps rows of B at a time: each sum is loaded and stored once per so many products, and B is read in long runs.
template <int kSteps, class T>
HWY_INLINE void stream_steps(const Stream& s, int64_t step) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = s.a + step;
  const T* b = static_cast<const T*>(s.b) + step * s.b_k;
  for (int64_t j = 0; j < s.cols; j += lanes) {
    const int64_t left = s.cols - j;
    V bv[kSteps];
    if (left >= lanes) {
#pragma GCC unroll 8
      for (int u = 0; u < kSteps; ++u) bv[u] = load(d, b + u * s.b_k + j);
    } else {
#pragma GCC unroll 8
      for (int u = 0; u < kSteps; ++u) bv[u] = load_last(d, b + u * s.b_k + j, left);
    }
    const auto mask = hn::FirstN(d, static_cast<size_t>(left));
    for (int64_t i = 0; i < s.rows; ++i) {
      float* c = s.c + i * s.c_row + j;
      V sum = step == 0 ? hn::Zero(d) : left >= lanes ? hn::LoadU(d, c) : masked_load(d, mask, c);
      const float* ai = a + i * s.a_row;
#pragma GCC unroll 8
      for (int u = 0; u < kSteps; ++u) sum = hn::MulAdd(hn::Set(d, ai[u]), bv[u], sum);
      if (left >= lanes)
        hn::StoreU(sum, d, c);
      else
        masked_store(d, mask, sum, c);
    }
  }
}

template <class T>
void stream(const Stream& s) {
  int64_t step = 0;
  for (; step + 8 <= s.k; step += 8) stream_steps<8, T>(s, step);
  for (; step < s.k; ++step) stream_steps<1, T>(s, step);
}

template <int kRows, int kCols, class T>
HWY_INLINE void dot_block(const Dots& s, int64_t row, int64_t col) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kCols];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) sum[i][j] = hn::Zero(d);
  const float* a = s.a + row * s.a_row;
  const T* b = static_cast<const T*>(s.b) + col * s.b_col;
  const int64_t a_row = s.a_row, b_col = s.b_col;
  int64_t k = 0;
  for (; k + lanes <= s.k; k += lanes) {
    V av[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) av[i] = hn::LoadU(d, a + i * a_row + k);
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      const V bv = load(d, b + j * b_col + k);
      if (kCols > 1) hwy::Prefetch(b + j * b_col + k + 16 * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][j] = hn::MulAdd(av[i], bv, sum[i][j]);
    }
  }
  if (k < s.k) {
    V av[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) av[i] = load_last(d, a + i * a_row + k, s.k - k);
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      const V bv = load_last(d, b + j * b_col + k, s.k - k);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][j] = hn::MulAdd(av[i], bv, sum[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j)
      s.c[(row + i) * s.c_row + (col + j) * s.c_col] = hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
}

template <int kCols, class T>
HWY_INLINE void dot_columns(const Dots& s, int64_t col) {
  int64_t row = 0;
  for (; row + 4 <= s.rows; row += 4) dot_block<4, kCols, T>(s, row, col);
  for (; row + 2 <= s.rows; row += 2) dot_block<2, kCols, T>(s, row, col);
  if (row < s.rows) dot_block<1, kCols, T>(s, row, col);
}

template <class T>
void dots(const Dots& s) {
  int64_t col = 0;
  for (; col + 4 <= s.cols; col += 4) dot_columns<4, T>(s, col);
  for (; col < s.cols; ++col) dot_columns<1, T>(s, col);
}

template <int kRows, int kVecs, class T>
constexpr TileFn tile_fn() {
  if constexpr (kRows >= 1 && kRows <= kTileRows)
    return tile<kRows, kVecs, T>;
  else
    return nullptr;
}

template <class T>
constexpr void set_type(TileKernels& table, int type) {
  [&]<int... kRows>(std::integer_sequence<int, kRows...>) {
    ((table.tile[type][kRows] = tile_fn<kRows, 2, T>()), ...);
    if constexpr (std::is_same_v<T, float>) ((table.half_tile[kRows] = tile_fn<kRows, 1, T>()), ...);
  }
  (std::make_integer_sequence<int, kMaxRows + 1>());
  table.wide_tile[type][1] = tile<1, 2 * kWidePanels[1], T>;
  table.wide_tile[type][2] = tile<2, 2 * kWidePanels[2], T>;
  if constexpr (kTileRows == kMaxRows) {
    table.wide_tile[type][3] = tile<3, 2 * kWidePanels[3], T>;
    table.wide_tile[type][4] = tile<4, 2 * kWidePanels[4], T>;
    table.wide_tile[type][5] = tile<5, 2 * kWidePanels[5], T>;
    table.wide_tile[type][6] = tile<6, 2 * kWidePanels[6], T>;
  }
  table.stream[type] = stream<T>;
  table.dots[type] = dots<T>;
}

constexpr TileKernels make_table() {
  TileKernels table = {};
  table.rows = kTileRows;
  table.lanes = static_cast<int>(hn::MaxLanes(D()));
  set_type<float>(table, 0);
  set_type<hwy::float16_t>(table, 1);
  set_type<hwy::bfloat16_t>(table, 2);
  return table;
}

const TileKernels* tiles_of_target() {
  static constexpr TileKernels table = make_table();
  static_assert(!HWY_HAVE_SCALABLE, "panels have the width of a vector, known when compiled");
  return &table;
}

}  // namespace rlx::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu::gemm {
HWY_EXPORT(tiles_of_target);
const TileKernels& tile_kernels() { return *HWY_DYNAMIC_DISPATCH(tiles_of_target)(); }
}  // namespace rlx::cpu::gemm
#endif
