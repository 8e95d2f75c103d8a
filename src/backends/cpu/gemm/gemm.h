// Our own matrix product: packed panels, register tiles, fused epilogue. Every element of C is one chain of f32
// multiply-adds in ascending k, whatever the blocking, so results depend neither on the number of threads nor, for the
// same layouts of A and B, on the number of rows. (Skinny products with a transposed B are dot products: their order
// depends on the vector width, still not on threads.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/dtype.h"
#include "rlx/ops/activation.h"

namespace rlx {
class ThreadPool;
}

namespace rlx::cpu::gemm {

// F32, F16 or BF16 in any layout: element (i, j) is data[i * row_stride + j * col_stride].
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::F32;
  int64_t row_stride = 0, col_stride = 1;
};
struct Result {
  void* data = nullptr;
  DType dtype = DType::F32;
  int64_t row_stride = 0, col_stride = 1;
};

// c = act(a·b + bias) + residual, each optional; the sum is rounded once, when it is stored.
struct Epilogue {
  Matrix bias;  // a bias per column has row_stride 0, one per row has col_stride 0
  ops::ActivationKind activation = ops::ActivationKind::kNone;
  Matrix residual;
};

// One leading dimension: how far each operand moves from one product to the next, in elements; 0 broadcasts.
struct BatchDim {
  int64_t size = 1, a = 0, b = 0, c = 0, residual = 0;
};

// C overlaps no operand.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  Matrix a, b;
  const std::byte* packed_b = nullptr;  // what pack_b wrote, instead of b.data; b.dtype is still the element type
  Result c;
  Epilogue epilogue;
  std::span<const BatchDim> batch;  // none: one product. With packed_b its strides of b are in bytes
};

// Weights are packed once. The layout depends on the machine, the bytes are of b's dtype, aligned to 64.
int64_t packed_b_bytes(int64_t k, int64_t n, DType dtype);
void pack_b(const Matrix& b, int64_t k, int64_t n, std::byte* packed, ThreadPool& pool);

// The products allocate nothing: they work in `scratch`, aligned to 64. Its size depends on sizes, strides and dtypes,
// and on whether `packed_b` is null, but on no contents.
int64_t scratch_bytes(const Gemm& g, int threads);
void run(const Gemm& g, ThreadPool& pool, std::byte* scratch);
void run_alone(const Gemm& g, std::byte* scratch);  // on this thread, as from inside a loop; scratch for 1 thread

}  // namespace rlx::cpu::gemm
