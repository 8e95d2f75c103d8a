// How a float product is run (spec 20, 3.4): the table of its kernels, and a way to ask for one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"

namespace rlx::webgpu {

// Batch axes of a product that do not merge with their neighbours.
struct BatchAxis {
  int64_t size = 1, lhs_stride = 0, rhs_stride = 0;  // in elements; stride 0: the matrix is shared
};
constexpr size_t kMaxBatchAxes = 4;

// lhs [batch, m, k] · rhs [batch, k, n]; leading axes of lhs are rows where rhs is shared.
struct MatmulShape {
  std::vector<BatchAxis> batch;
  int64_t m = 0, n = 0, k = 0;
  int64_t matrices() const;
};
MatmulShape matmul_shape(const Shape& lhs, const Shape& rhs);

// A row of the table: a tile of tm x tn results.
struct MatmulVariant {
  std::string_view name;
  std::string_view file;    // the kernel's, without .wgsl; empty: matmul_tile_source writes it
  uint32_t tm = 0, tn = 0;  // 0: as many as a workgroup of the GEMV takes
  uint32_t tk = 0;          // of k in workgroup memory at once, and the results of a thread: of a generated kernel
  uint32_t rm = 0, rn = 0;
  // Multiply-adds per nanosecond that a unit of an NVIDIA H200 does, with one workgroup and with many.
  double alone = 0, busy = 0;
};
std::span<const MatmulVariant> matmul_variants();

// Which row a product takes, and into how many parts along k it is cut.
struct MatmulChoice {
  const MatmulVariant* variant = nullptr;
  int64_t splits = 1;
};
MatmulChoice choose_matmul(const MatmulShape& shape);
// The same among the rows that are tiles, for products that are not cut.
const MatmulVariant& choose_matmul_tile(const MatmulShape& shape);
const MatmulVariant& matmul_gemv();

// The text of the kernel of a row without a file. `in_parts`: a sum is one of parts of so much of k each. What is added
// to a long sum is rounded to its digits, and many like numbers all the same way.
constexpr uint32_t kMatmulPart = 512;
std::string matmul_tile_source(const MatmulVariant& variant, bool in_parts);

// For tests and measurements: while it lives, products lowered by this thread use the variant of this name, whatever
// their shape, and are split along k so many times (0: as the shape wants it).
class ForceMatmul {
 public:
  explicit ForceMatmul(std::string_view name, int64_t splits = 0);
  ~ForceMatmul();
  ForceMatmul(const ForceMatmul&) = delete;
  ForceMatmul& operator=(const ForceMatmul&) = delete;
  static const MatmulChoice& current();  // variant is null where none is forced; splits 0: as the shape wants it
};

}  // namespace rlx::webgpu
