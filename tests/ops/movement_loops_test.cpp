// The streaming loops of data movement at sizes and alignments that op cases of a reasonable size do not reach.
#include "backends/cpu/kernels/movement_loops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device_cases.h"
#include "support/random.h"

namespace rlx::test {

namespace {

using Bytes = std::vector<std::byte>;
constexpr int64_t kSizes[] = {1, 2, 4, 8};
constexpr std::byte kGuard{0x5A};

Bytes numbered(int64_t n) {
  Bytes b(static_cast<size_t>(n));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::byte>(i * 37 + i / 256);
  return b;
}

// A buffer on a cache line, with guards behind.
struct Lines {
  explicit Lines(int64_t n) : bytes(static_cast<size_t>(n) + 256, kGuard) {
    const auto off = reinterpret_cast<uintptr_t>(bytes.data()) % 64;
    data = bytes.data() + (64 - off) % 64;
  }
  Bytes bytes;
  std::byte* data;
};

}  // namespace

TEST(MovementLoops, CopyTouchesExactlyItsBytes) {
  on_each_target([] {
    const Bytes src = numbered(700);
    for (const bool streaming : {false, true})
      for (const int64_t off : {0, 1, 8, 63})
        for (const int64_t n : {0, 1, 63, 64, 65, 127, 128, 129, 300, 600}) {
          Lines to(700);
          cpu::copy_bytes(to.data + off, src.data() + 3, n, streaming);
          cpu::stream_flush();
          ASSERT_EQ(std::memcmp(to.data + off, src.data() + 3, static_cast<size_t>(n)), 0) << off << " " << n;
          ASSERT_EQ(to.data[off + n], kGuard);
          if (off > 0) {
            ASSERT_EQ(to.data[off - 1], kGuard);
          }
        }
  });
}

TEST(MovementLoops, FillRepeatsTheElementAtAnyAlignment) {
  on_each_target([] {
    const Bytes src = numbered(64);
    for (const bool streaming : {false, true})
      for (const int64_t size : kSizes)
        for (const int64_t off : {0, 1, 3, 7})
          for (const int64_t n : {1, 5, 16, 63, 64, 200}) {
            Lines to(2200);
            std::byte* dst = to.data + off * size;
            cpu::fill_elements(dst, src.data() + 8, size, n, streaming);
            cpu::stream_flush();
            for (int64_t i = 0; i < n; ++i)
              ASSERT_EQ(std::memcmp(dst + i * size, src.data() + 8, static_cast<size_t>(size)), 0)
                  << "size " << size << ", " << off << ", element " << i << " of " << n;
            ASSERT_EQ(dst[n * size], kGuard);
          }
  });
}

TEST(MovementLoops, TransposedPanelsEqualElementByElement) {
  on_each_target([] {
    for (const bool streaming : {false, true})
      for (const int64_t size : kSizes)
        for (const int64_t rows : {1, 16, 70, 128, 300})
          for (const int64_t cols : {1, 3, 67, 130, 256}) {
            const int64_t src_stride = (cols + 5) * size, dst_stride = (rows * size + 63) / 64 * 64;
            const Bytes src = numbered(rows * src_stride);
            Lines to(cols * dst_stride);
            cpu::transpose_panel(to.data, dst_stride, src.data(), src_stride, rows, cols, size, streaming);
            cpu::stream_flush();
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t c = 0; c < cols; ++c)
                ASSERT_EQ(std::memcmp(to.data + c * dst_stride + r * size, src.data() + r * src_stride + c * size,
                                      static_cast<size_t>(size)),
                          0)
                    << "size " << size << ", " << rows << " x " << cols << " at " << r << ", " << c;
          }
  });
}

TEST(MovementLoops, DoubledRowsRepeatEveryElement) {
  on_each_target([] {
    for (const bool streaming : {false, true})
      for (const int64_t size : kSizes)
        for (const int64_t n : {8, 16, 40, 72}) {
          const Bytes src = numbered(n * size);
          Lines a(2 * n * size), b(2 * n * size);
          cpu::double_row(a.data, b.data, src.data(), size, n, streaming);
          cpu::stream_flush();
          for (int64_t i = 0; i < 2 * n; ++i)
            for (const Lines* to : {&a, &b})
              ASSERT_EQ(std::memcmp(to->data + i * size, src.data() + i / 2 * size, static_cast<size_t>(size)), 0);
          ASSERT_EQ(a.data[2 * n * size], kGuard);
        }
  });
}

}  // namespace rlx::test
