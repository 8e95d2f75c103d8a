// The zero points of matmul_integer: one per row of a, or per column of b, of every matrix.
#pragma once

#include <cstdint>

#include "backends/host/call.h"

namespace rlx::host {

// The zero point of row (or column) i of matrix m, which has n of them. `zero` is one number, n of them, or n per
// matrix.
class ZeroPoints {
 public:
  ZeroPoints(const Call& call, int64_t operand, int64_t n) : n_(n) {
    if (operand >= call.num_inputs()) return;
    const View& zero = call.input(operand);
    is_signed_ = zero.dtype == DType::I8;
    data_ = zero.data;
    kind_ = zero.elements() == 1 ? Kind::kOne : zero.rank() == 1 ? Kind::kShared : Kind::kOwn;
  }

  int32_t of(int64_t m, int64_t i) const {
    if (kind_ == Kind::kNone) return 0;
    const int64_t at = kind_ == Kind::kOne ? 0 : kind_ == Kind::kShared ? i : m * n_ + i;
    return is_signed_ ? reinterpret_cast<const int8_t*>(data_)[at] : reinterpret_cast<const uint8_t*>(data_)[at];
  }

 private:
  enum class Kind { kNone, kOne, kShared, kOwn };
  Kind kind_ = Kind::kNone;
  bool is_signed_ = false;
  int64_t n_;
  const std::byte* data_ = nullptr;
};

}  // namespace rlx::host
