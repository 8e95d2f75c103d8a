#include "backends/host/aligned_bytes.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rlx/error.h"

namespace rlx::host {

namespace {

// Large memory asks for large pages: a transpose touches a page per row, more than the TLB holds of small ones.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int64_t kHugeBytes = 8 << 20;

}  // namespace

void FreeBytes::operator()(std::byte* p) const {
#ifdef __linux__
  if (pages) {
    ::munmap(pages, size);
    return;
  }
#endif
  std::free(p);
}

AlignedBytes::AlignedBytes(int64_t size, int64_t alignment) {
  if (size == 0) return;
  size_t a = sizeof(void*);
  while (a < static_cast<size_t>(alignment)) a *= 2;
  const auto bytes = static_cast<size_t>(size);
  void* memory = nullptr;
#ifdef __linux__
  if (size >= kHugeBytes) {
    a = std::max(a, kHugePage);
    void* pages =
        ::mmap(nullptr, bytes + a, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) {
      memory = pages;
      size_t space = bytes + a;
      bytes_ = {static_cast<std::byte*>(std::align(a, bytes, memory, space)), FreeBytes{pages, bytes + a}};
      ::madvise(bytes_.get(), bytes, MADV_HUGEPAGE);  // a hint: it may fail
      return;
    }
  }
#endif
  if (posix_memalign(&memory, a, bytes) != 0)
    fail(ErrorKind::kMemory, str("The program needs ", size, " bytes of memory, which are not available."));
  std::memset(memory, 0, bytes);
  bytes_ = {static_cast<std::byte*>(memory), FreeBytes{}};
}

}  // namespace rlx::host
