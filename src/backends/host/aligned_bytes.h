// Memory of a program: zeroed bytes at the plan's alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rlx::host {

struct FreeBytes {
  void* pages = nullptr;  // mapped; null: allocated
  size_t size = 0;
  void operator()(std::byte* p) const;
};

// Large ones are pages that the system gives when they are touched: compiling a graph costs no memory until it runs.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  AlignedBytes(int64_t size, int64_t alignment);  // an Error where there is not as much
  std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte, FreeBytes> bytes_;
};

}  // namespace rlx::host
