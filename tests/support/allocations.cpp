#include "support/allocations.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

std::optional<int64_t> rlx::test::allocations() { return std::nullopt; }

// Tests ask for more memory than there is; malloc answers null then, as it does without a sanitizer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

#else

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> count = 0;

std::optional<int64_t> rlx::test::allocations() { return count.load(); }

void* operator new(size_t size) {
  ++count;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

#endif
