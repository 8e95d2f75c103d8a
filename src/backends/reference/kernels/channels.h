// Which channel of a per-channel quantisation an element belongs to (spec 10, 4.12).
#pragma once

#include <optional>

#include "backends/host/call.h"

namespace rlx::reference {

// Without an axis the whole tensor is one channel.
class Channels {
 public:
  Channels(std::span<const int64_t> sizes, std::optional<int64_t> axis) {
    if (!axis) return;
    const host::SplitAt split = host::split_at(sizes, *axis);
    inner_ = split.inner;
    count_ = split.cols;
  }
  int64_t count() const { return count_; }
  int64_t of(int64_t element) const { return count_ == 1 ? 0 : element / inner_ % count_; }

 private:
  int64_t inner_ = 1, count_ = 1;
};

}  // namespace rlx::reference
