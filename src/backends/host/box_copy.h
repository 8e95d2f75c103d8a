// Copies the first rows of every axis between two dense tensors of different sizes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace rlx::host {

// Is a tensor of `part` sizes a prefix of the bytes of one of `whole` sizes? They differ in one axis at most, all sizes
// in front of it being 1.
inline bool is_prefix(std::span<const int64_t> part, std::span<const int64_t> whole) {
  size_t i = 0;
  while (i < part.size() && part[i] == whole[i] && whole[i] == 1) ++i;
  for (++i; i < part.size(); ++i)
    if (part[i] != whole[i]) return false;
  return true;
}

// `box` rows of each axis, from a tensor of `from_sizes` to one of `to_sizes`.
inline void box_copy(std::span<const int64_t> box, const std::byte* from, std::span<const int64_t> from_sizes,
                     std::byte* to, std::span<const int64_t> to_sizes, size_t element) {
  if (box.empty()) {
    std::memcpy(to, from, element);
    return;
  }
  if (box.size() == 1) {
    std::memcpy(to, from, static_cast<size_t>(box[0]) * element);
    return;
  }
  auto from_row = static_cast<int64_t>(element), to_row = static_cast<int64_t>(element);
  for (size_t i = 1; i < box.size(); ++i) {
    from_row *= from_sizes[i];
    to_row *= to_sizes[i];
  }
  for (int64_t r = 0; r < box[0]; ++r)
    box_copy(box.subspan(1), from + r * from_row, from_sizes.subspan(1), to + r * to_row, to_sizes.subspan(1), element);
}

}  // namespace rlx::host
