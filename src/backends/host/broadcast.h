// Which element of a broadcast operand belongs to an element of the result.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "rlx/error.h"

namespace rlx::host {

// Walks a result in row-major order; offset(i) is the flat index into operand i. No allocation: rank is bounded.
template <int kOperands>
class BroadcastWalk {
 public:
  static constexpr int kMaxRank = 16;

  BroadcastWalk(std::span<const int64_t> sizes, const std::array<std::span<const int64_t>, kOperands>& operands)
      : rank_(static_cast<int>(sizes.size())) {
    require(rank_ <= kMaxRank, "Rank (", rank_, ") is more than ", kMaxRank, ".");
    for (int d = 0; d < rank_; ++d) sizes_[d] = sizes[static_cast<size_t>(d)];
    for (int o = 0; o < kOperands; ++o) {
      int64_t stride = 1;
      const auto own = static_cast<int>(operands[o].size());
      for (int d = rank_ - 1; d >= 0; --d) {
        const int i = d - (rank_ - own);
        const int64_t size = i < 0 ? 1 : operands[o][static_cast<size_t>(i)];
        strides_[o][d] = size == 1 ? 0 : stride;
        stride *= size;
      }
    }
  }

  int64_t offset(int operand) const { return offsets_[operand]; }

  void next() {
    for (int d = rank_ - 1; d >= 0; --d) {
      if (++index_[d] < sizes_[d]) {
        for (int o = 0; o < kOperands; ++o) offsets_[o] += strides_[o][d];
        return;
      }
      for (int o = 0; o < kOperands; ++o) offsets_[o] -= strides_[o][d] * (sizes_[d] - 1);
      index_[d] = 0;
    }
  }

 private:
  int rank_;
  int64_t sizes_[kMaxRank] = {}, index_[kMaxRank] = {};
  int64_t strides_[kOperands][kMaxRank] = {}, offsets_[kOperands] = {};
};

}  // namespace rlx::host
