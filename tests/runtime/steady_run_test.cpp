// Nothing is allocated in a steady run: operator new, malloc and friends are counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/random.h"

static std::atomic<int64_t> allocations = 0;

void* operator new(size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace rlx::test {

TEST(SteadyRun, AllocatesNothing) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), 8}, DType::F32}), w = g.param("w", {{8}, DType::F32});
  const Value s = g.state("s", {{8}, DType::F32});
  const Value y = ops::softmax(ops::tanh(x * w) + s);
  g.update(s, s + w);
  g.output(ops::transpose(y, {.perm = {1, 0}}), "y");
  g.output(ops::concat(y, x, {.axis = 1}), "z");
  Executable exe = compile(g, {.device = "reference"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const std::vector<Tensor> inputs = {rng.tensor({4, 8})};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const int64_t before = allocations;
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace rlx::test
