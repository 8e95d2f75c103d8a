// Indices that come as data, read by several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "backends/host/call.h"

namespace rlx::cpu {

// I32 or I64. Ends are checked as the oracle checks them, against the size of the axis they index.
class Indices {
 public:
  explicit Indices(const host::View& v) : data_(v.data), wide_(v.dtype == DType::I64) {}
  int64_t raw(int64_t k) const {
    return wide_ ? reinterpret_cast<const int64_t*>(data_)[k] : reinterpret_cast<const int32_t*>(data_)[k];
  }
  // Negative ones count from the end, once; -1: out of range.
  int64_t at(int64_t k, int64_t size) const {
    const int64_t i = raw(k);
    return i < -size || i >= size ? -1 : i < 0 ? i + size : i;
  }
  [[noreturn]] void fail_at(int64_t k, int64_t size) const {
    fail(ErrorKind::kRuntime, str("Index (", raw(k), ") is out of range for size (", size, ")."));
  }

 private:
  const std::byte* data_;
  bool wide_;
};

// The first index that is out of range: all threads together report the one that the oracle meets first.
class FirstFault {
 public:
  void note(int64_t k) {
    int64_t seen = first_.load(std::memory_order_relaxed);
    while (k < seen && !first_.compare_exchange_weak(seen, k)) {
    }
  }
  bool any() const { return first_.load() != std::numeric_limits<int64_t>::max(); }
  int64_t first() const { return first_.load(); }

 private:
  std::atomic<int64_t> first_ = std::numeric_limits<int64_t>::max();
};

}  // namespace rlx::cpu
