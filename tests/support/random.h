// Random tensors that are the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rlx/tensor.h"

namespace rlx::test {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t bits();                          // splitmix64
  double uniform(double low, double high);  // [low, high)
  double normal();
  int64_t integer(int64_t low, int64_t high);  // both included
  bool chance(double p) { return uniform(0, 1) < p; }

  // Normal values, in [-1, 1] mostly, rounded to the dtype; integers in [-100, 100] (unsigned: [0, 200]), Bool 0 / 1.
  Tensor tensor(std::vector<int64_t> sizes, DType dtype = DType::F32);
  Tensor uniform_tensor(std::vector<int64_t> sizes, double low, double high, DType dtype = DType::F32);
  Tensor integers(std::vector<int64_t> sizes, int64_t low, int64_t high, DType dtype = DType::I32);

  struct ShapeOptions {
    int64_t min_rank = 0, max_rank = 4, min_dim = 1, max_dim = 9;
  };
  std::vector<int64_t> shape(const ShapeOptions& options);

 private:
  uint64_t state_;
};

// What RLX_SEED says, or 1.
uint64_t first_seed();

// Calls `body` with `count` seeds; a failure names the seed that repeats it (RLX_SEED=… runs that one alone, and
// RLX_SEEDS=… so many from there on).
void for_random(int count, const std::function<void(Rng&)>& body);
// The same for a test that counts what it covers: goes on with the next seeds until that is `enough`, up to ten times
// as many. So the claim holds from any seed on, and for RLX_SEED=… alone.
void for_random(int count, const std::function<bool()>& enough, const std::function<void(Rng&)>& body);

}  // namespace rlx::test
