#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/movement_loops.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>
//
#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/movement_loops.h"
#include "backends/cpu/simd/transpose-inl.h"
#include "rlx/error.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::ScalableTag<uint8_t>;

HWY_INLINE uint8_t* u8(void* p) { return static_cast<uint8_t*>(p); }
HWY_INLINE const uint8_t* u8(const void* p) { return static_cast<const uint8_t*>(p); }

// `pattern` holds the element as often as it fits.
void FillPattern(std::byte* dst, uint64_t pattern, int64_t bytes, bool streaming) {
  const hn::ScalableTag<uint64_t> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d)) * 8;
  const auto v = hn::Set(d, pattern);
  int64_t i = 0;
  if (streaming) {
    // Elements have 1, 2, 4 or 8 bytes and lie on multiples of that, so the pattern fits at any line.
    const auto off = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % kCacheLine);
    const int64_t head = std::min(bytes, off == 0 ? 0 : kCacheLine - off);
    for (; i < head; ++i) dst[i] = static_cast<std::byte>(pattern >> (i % 8 * 8));
    if (i % 8 != 0) pattern = pattern >> (i % 8 * 8) | pattern << (64 - i % 8 * 8);
    const auto turned = hn::Set(d, pattern);
    const int64_t first = i;
    for (; i + step <= bytes; i += step) hn::Stream(turned, d, reinterpret_cast<uint64_t*>(dst + i));
    for (; i < bytes; ++i) dst[i] = static_cast<std::byte>(pattern >> ((i - first) % 8 * 8));
    return;
  }
  for (; i + step <= bytes; i += step) hn::StoreU(v, d, reinterpret_cast<uint64_t*>(dst + i));
  for (; i + 8 <= bytes; i += 8) std::memcpy(dst + i, &pattern, 8);
  for (; i < bytes; ++i) dst[i] = static_cast<std::byte>(pattern >> (i % 8 * 8));
}

// Rows and cols are multiples of a square's side, which has 16 bytes.
template <class T>
HWY_INLINE void transpose_squares(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                                  int64_t cols) {
  constexpr auto kSide = static_cast<int64_t>(16 / sizeof(T)), kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t c = 0; c + kSide <= cols; c += kSide)
    for (int64_t r = 0; r + kSide <= rows; r += kSide)
      transpose_square<T>(src + r * src_stride + c * kSize, src_stride, dst + c * dst_stride + r * kSize, dst_stride);
}

template <class T>
HWY_INLINE void transpose_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                                   int64_t cols) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(dst + c * dst_stride + r * kSize, src + r * src_stride + c * kSize, sizeof(T));
}

// Any rows and cols: squares, then what is left beside and below them.
template <class T>
HWY_INLINE void transpose_block(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                                int64_t cols) {
  constexpr auto kSide = static_cast<int64_t>(16 / sizeof(T)), kSize = static_cast<int64_t>(sizeof(T));
  const int64_t whole_rows = rows / kSide * kSide, whole_cols = cols / kSide * kSide;
  transpose_squares<T>(src, src_stride, dst, dst_stride, whole_rows, whole_cols);
  if (whole_rows < rows)
    transpose_elements<T>(src + whole_rows * src_stride, src_stride, dst + whole_rows * kSize, dst_stride,
                          rows - whole_rows, whole_cols);
  if (whole_cols < cols)
    transpose_elements<T>(src + whole_cols * kSize, src_stride, dst + whole_cols * dst_stride, dst_stride, rows,
                          cols - whole_cols);
}

#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void copy_line(char* to, const char* from) {
  const Bytes d;
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(Bytes()));
  for (int64_t k = 0; k < kCacheLine; k += lanes) hn::StoreU(hn::LoadU(d, u8(from + k)), d, u8(to + k));
}
#endif

#if HWY_TARGET != HWY_SCALAR
// 16 bytes of each of 1, 2 or 4 rows, `stride` bytes apart, side by side in one vector.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const char* p, int64_t stride) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    return hn::LoadU(d, reinterpret_cast<const T*>(p));
  } else {
    const hn::Half<D> half;
    constexpr auto kBlocks = static_cast<int64_t>(hn::MaxLanes(D()) * sizeof(T) / 16);
    return hn::Combine(d, load_blocks(half, p + kBlocks / 2 * stride, stride), load_blocks(half, p, stride));
  }
}

// A tile of one cache line each way, written as whole lines. Every block of 16 bytes of the vectors is a square of its
// own, so one round of interleaving turns up to four of them.
template <class T>
HWY_INLINE void transpose_line_tile(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                                    bool streaming) {
  const hn::ScalableTag<T> d;
  constexpr size_t kSide = 16 / sizeof(T);
  constexpr auto kVector = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()) * sizeof(T));
  for (int64_t column = 0; column < kCacheLine; column += 16)
    for (int64_t part = 0; part < kCacheLine; part += kVector) {
      const char* from = src + part / static_cast<int64_t>(sizeof(T)) * src_stride + column;
      hn::Vec<hn::ScalableTag<T>> v[kSide];
      for (size_t i = 0; i < kSide; ++i)
        v[i] = load_blocks(d, from + static_cast<int64_t>(i) * src_stride, static_cast<int64_t>(kSide) * src_stride);
      interleave_stages<hwy::CeilLog2(kSide)>(d, v);
      char* to = dst + column / static_cast<int64_t>(sizeof(T)) * dst_stride + part;
      for (size_t i = 0; i < kSide; ++i, to += dst_stride)
        if (streaming)
          hn::Stream(v[i], d, reinterpret_cast<T*>(to));
        else
          hn::StoreU(v[i], d, reinterpret_cast<T*>(to));
    }
}
#endif

// In tiles of a cache line each way, so that a line of src is read and a line of dst written once. Rows far apart often
// fall into the same few places of the cache, so the lines of a tile are collected in a buffer before they are turned.
template <class T>
HWY_INLINE void transpose_tiles(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                                int64_t cols, [[maybe_unused]] bool streaming) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T)), kTile = kCacheLine / kSize;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t kAhead = kSize == 1 ? 2 : 4;  // tiles: as long as memory takes to answer
  alignas(kCacheLine) char lines[kTile * kCacheLine];
  const bool far_apart = streaming || src_stride >= 1024;
#endif
  for (int64_t r = 0; r < rows; r += kTile)
    for (int64_t c = 0; c < cols; c += kTile) {
      const int64_t h = std::min(kTile, rows - r), w = std::min(kTile, cols - c);
      const char* from = src + r * src_stride + c * kSize;
      char* to = dst + c * dst_stride + r * kSize;
#if HWY_TARGET != HWY_SCALAR
      if (h == kTile && w == kTile) {
        if (!far_apart) {
          transpose_line_tile<T>(from, src_stride, to, dst_stride, streaming);
          continue;
        }
        // Behind the last tiles of these rows come the first of the next.
        const int64_t later = kAhead * kCacheLine + (c + kAhead * kTile < cols ? 0
                                                     : r + 2 * kTile <= rows   ? kTile * src_stride - cols * kSize
                                                                               : -kAhead * kCacheLine);
        for (int64_t i = 0; i < kTile; ++i) {
          hwy::Prefetch(from + i * src_stride + later);
          copy_line(lines + i * kCacheLine, from + i * src_stride);
        }
        transpose_line_tile<T>(lines, kCacheLine, to, dst_stride, streaming);
        continue;
      }
#endif
      transpose_block<T>(from, src_stride, to, dst_stride, h, w);
    }
}

void TransposePanel(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t cols,
                    int64_t size, bool streaming) {
  switch (size) {
    case 1: return transpose_tiles<uint8_t>(src, src_stride, dst, dst_stride, rows, cols, streaming);
    case 2: return transpose_tiles<uint16_t>(src, src_stride, dst, dst_stride, rows, cols, streaming);
    case 4: return transpose_tiles<uint32_t>(src, src_stride, dst, dst_stride, rows, cols, streaming);
    case 8: return transpose_tiles<uint64_t>(src, src_stride, dst, dst_stride, rows, cols, streaming);
    default: RLX_ASSERT(false && "elements have 1, 2, 4 or 8 bytes");
  }
}

template <class T>
HWY_INLINE void double_elements(std::byte* dst, std::byte* second, const std::byte* src, int64_t n,
                                [[maybe_unused]] bool streaming) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<T> d;
  constexpr auto lanes = static_cast<int64_t>(16 / sizeof(T));
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, reinterpret_cast<const T*>(src + i * kSize));
    const auto lower = hn::InterleaveLower(d, v, v), upper = hn::InterleaveUpper(d, v, v);
    for (std::byte* row : {dst, second}) {
      auto* to = reinterpret_cast<T*>(row + 2 * i * kSize);
      if (streaming) {
        hn::Stream(lower, d, to);
        hn::Stream(upper, d, to + lanes);
      } else {
        hn::StoreU(lower, d, to);
        hn::StoreU(upper, d, to + lanes);
      }
    }
  }
#endif
  for (; i < n; ++i)
    for (std::byte* row : {dst, second})
      for (int64_t k = 0; k < 2; ++k) std::memcpy(row + (2 * i + k) * kSize, src + i * kSize, sizeof(T));
}

void DoubleRow(std::byte* dst, std::byte* second, const std::byte* src, int64_t size, int64_t n, bool streaming) {
  switch (size) {
    case 1: return double_elements<uint8_t>(dst, second, src, n, streaming);
    case 2: return double_elements<uint16_t>(dst, second, src, n, streaming);
    case 4: return double_elements<uint32_t>(dst, second, src, n, streaming);
    case 8: return double_elements<uint64_t>(dst, second, src, n, streaming);
    default: RLX_ASSERT(false && "elements have 1, 2, 4 or 8 bytes");
  }
}

void AddRows(float* sum, const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, x + i)), d, sum + i);
  for (; i < n; ++i) sum[i] += x[i];
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(FillPattern);
HWY_EXPORT(TransposePanel);
HWY_EXPORT(DoubleRow);
HWY_EXPORT(AddRows);

void copy_bytes(std::byte* dst, const std::byte* src, int64_t bytes, bool streaming) {
  if (streaming)
    stream_copy(src, dst, bytes);
  else if (bytes > 0)
    std::memcpy(dst, src, static_cast<size_t>(bytes));
}

// Short rows of a length the compiler knows are single instructions.
template <size_t kBytes>
static void copy_short_rows(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride,
                            int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(dst + r * dst_stride, src + r * src_stride, kBytes);
}

void copy_rows(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t rows,
               int64_t bytes, bool streaming) {
  switch (bytes) {
    case 1: return copy_short_rows<1>(dst, dst_stride, src, src_stride, rows);
    case 2: return copy_short_rows<2>(dst, dst_stride, src, src_stride, rows);
    case 4: return copy_short_rows<4>(dst, dst_stride, src, src_stride, rows);
    case 8: return copy_short_rows<8>(dst, dst_stride, src, src_stride, rows);
    case 12: return copy_short_rows<12>(dst, dst_stride, src, src_stride, rows);
    case 16: return copy_short_rows<16>(dst, dst_stride, src, src_stride, rows);
    case 32: return copy_short_rows<32>(dst, dst_stride, src, src_stride, rows);
    default: {
      // The processor foresees neighbours, not jumps.
      const int64_t ahead = src_stride == bytes || src_stride == 0 ? rows : rows_ahead(bytes);
      for (int64_t r = 0; r < rows; ++r) {
        if (r + ahead < rows) prefetch_row(src + (r + ahead) * src_stride, bytes);
        copy_bytes(dst + r * dst_stride, src + r * src_stride, bytes, streaming);
      }
    }
  }
}

void fill_elements(std::byte* dst, const std::byte* src, int64_t size, int64_t count, bool streaming) {
  uint64_t pattern = 0;
  std::memcpy(&pattern, src, static_cast<size_t>(size));
  for (int64_t bits = size * 8; bits < 64; bits *= 2) pattern |= pattern << bits;
  HWY_DYNAMIC_DISPATCH(FillPattern)(dst, pattern, size * count, streaming);
}

void transpose_panel(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t rows,
                     int64_t cols, int64_t size, bool streaming) {
  HWY_DYNAMIC_DISPATCH(TransposePanel)
  (reinterpret_cast<char*>(dst), dst_stride, reinterpret_cast<const char*>(src), src_stride, rows, cols, size,
   streaming);
}

void double_row(std::byte* dst, std::byte* second, const std::byte* src, int64_t size, int64_t n, bool streaming) {
  HWY_DYNAMIC_DISPATCH(DoubleRow)(dst, second, src, size, n, streaming);
}

void add_rows(float* sum, const float* x, int64_t n) { HWY_DYNAMIC_DISPATCH(AddRows)(sum, x, n); }

void prefetch_row(const std::byte* row, int64_t bytes) {
  for (int64_t i = 0; i < std::min<int64_t>(bytes, kLongRow); i += kCacheLine) hwy::Prefetch(row + i);
}

}  // namespace rlx::cpu
#endif
