// How the elements of a result and of its broadcast operands lie, over as few axes as possible.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/elementwise/program.h"
#include "backends/host/call.h"

namespace rlx::cpu {

inline constexpr int kMaxLayoutRank = 18;  // of a result of 16 axes, two of them split by a resize

struct Layout {
  int rank = 0, num_inputs = 0;
  int64_t sizes[kMaxLayoutRank];
  int64_t strides[kMaxProgramInputs][kMaxLayoutRank];  // in elements, 0 where an operand is broadcast

  int64_t row() const { return sizes[rank - 1]; }
  int64_t rows() const;
  bool is_contiguous(int input) const;
  bool is_scalar(int input) const;
  bool is_one_row(int input) const;  // the same for every row
};

// Operands broadcast to the result as NumPy does. Operand `resized` (or -1) is a [n, c, h/2, w/2] whose every element
// stands for 2 x 2 of the result: an axis of 2 inside each of the last two axes, along which it does not move.
Layout broadcast_layout(std::span<const int64_t> sizes, std::span<const host::View> inputs, int resized = -1);

// Drops axes of size 1 and merges neighbours along which every operand moves evenly. At least one axis remains.
void merge_axes(Layout& layout);

}  // namespace rlx::cpu
