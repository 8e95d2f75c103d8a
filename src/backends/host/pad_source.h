// Where the elements of a padded axis come from.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rlx/ops/pad.h"

namespace rlx::host {

class PaddedAxis {
 public:
  PaddedAxis(ops::PadMode mode, int64_t size, int64_t before, int64_t after)
      : mode_(mode),
        front_(std::max<int64_t>(before, 0)),
        first_(std::max<int64_t>(-before, 0)),
        kept_(size - first_ - std::max<int64_t>(-after, 0)) {}

  int64_t front() const { return front_; }  // elements before the first one of x
  int64_t first() const { return first_; }  // the first element of x that is kept
  int64_t kept() const { return kept_; }

  // The element of x at place p of the result; -1: none, the value stands there.
  int64_t source(int64_t p) const {
    const int64_t q = p - front_;
    if (q >= 0 && q < kept_) return first_ + q;
    switch (mode_) {
      case ops::PadMode::kConstant: break;
      case ops::PadMode::kEdge: return first_ + std::clamp<int64_t>(q, 0, kept_ - 1);
      case ops::PadMode::kWrap: return first_ + modulo(q, kept_);
      case ops::PadMode::kReflect: {
        if (kept_ == 1) return first_;
        const int64_t period = 2 * (kept_ - 1), m = modulo(q, period);
        return first_ + (m < kept_ ? m : period - m);
      }
    }
    return -1;
  }

 private:
  static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }

  ops::PadMode mode_;
  int64_t front_, first_, kept_;
};

}  // namespace rlx::host
