// One copy loop for transpose, expand, narrow and concat: elements of any size between two strided tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rlx {
class ThreadPool;
}

namespace rlx::cpu {

inline constexpr int64_t kMostAxes = 16;

// Axes, outermost first, with the bytes from one index to the next in source and result.
class StridedCopy {
 public:
  StridedCopy(std::byte* to, const std::byte* from, int64_t element_bytes)
      : to_(to), from_(from), element_(element_bytes) {}
  // A `from` stride of 0 repeats. Axes of size 1 vanish, axes that lie alike become one.
  void add_axis(int64_t size, int64_t from_stride, int64_t to_stride);
  // The result's bytes altogether decide whether it is streamed past the caches.
  void run(ThreadPool& pool, int64_t result_bytes);

 private:
  struct Axis {
    int64_t size, from, to;
  };
  struct Place {
    int64_t from, to;
  };
  Place place_of(int64_t index) const;
  Axis take(int64_t axis);
  void copy_runs(ThreadPool& pool, int64_t run, bool large);
  void fill_runs(ThreadPool& pool, Axis run, bool large);
  void transpose(ThreadPool& pool, Axis rows, Axis cols, bool large);

  std::byte* to_;
  const std::byte* from_;
  int64_t element_;
  std::array<Axis, kMostAxes> axes_{};
  int64_t rank_ = 0;
};

}  // namespace rlx::cpu
