// One graph for many sizes: compiled once per bucket of a symbol's sizes, run at the size that is needed (spec 20, 5).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rlx/runtime.h"

namespace rlx {

// Sizes first … upper are run by an executable compiled for `upper`.
struct Bucket {
  int64_t first = 1;
  int64_t upper = 1;
  bool operator==(const Bucket&) const = default;
};

// Buckets that end at powers of two from next_pow2(min) until `max` is covered: 8, 256 gives 1..8, 9..16, …, 129..256.
// No more than half of a bucket is padding.
std::vector<Bucket> power_of_two_ladder(int64_t min, int64_t max);

// Runs a graph at any size of one symbol: inputs are padded with zeros to the bucket's upper size, the run uses the
// first rows only (Executable::set_active_extent), outputs are cut back. Where a step mixes the rows the padding takes
// part in it: masks are the caller's duty then, and stats() of the bucket counts it. The graph has no states: they
// would belong to one bucket.
//
// Threads: as Executable, one at a time.
class BucketedExecutable {
 public:
  // `options.dims` gives the other symbols.
  BucketedExecutable(Graph graph, uint32_t symbol, std::vector<Bucket> buckets, const CompileOptions& options);
  BucketedExecutable(BucketedExecutable&&) noexcept;
  BucketedExecutable& operator=(BucketedExecutable&&) noexcept;
  ~BucketedExecutable();

  void set_param(std::string_view name, Tensor value);  // shared by all buckets
  NamedTensors run(const NamedTensors& inputs);

  int64_t compiled() const;  // buckets that have been used
  RunStats stats() const;    // summed over them

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
