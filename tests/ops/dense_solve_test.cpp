#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

static Tensor f64(std::vector<int64_t> sizes, std::vector<double> v) {
  return Tensor::from_doubles(DType::F64, std::move(sizes), v);
}

// A·x = b, row by row.
static void expect_solves(const Tensor& a, const Tensor& x, const Tensor& b, int64_t slices, double tolerance) {
  ASSERT_EQ(x.type(), b.type());
  const int64_t n = a.sizes().back(), k = b.num_elements() / (n * slices);
  for (int64_t s = 0; s < slices; ++s)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < k; ++j) {
        double sum = 0;
        for (int64_t c = 0; c < n; ++c) sum += a.at((s * n + i) * n + c) * x.at((s * n + c) * k + j);
        EXPECT_NEAR(sum, b.at((s * n + i) * k + j), tolerance);
      }
}

// Random numbers with a strong diagonal: never close to singular.
static Tensor well_conditioned(Rng& rng, std::vector<int64_t> sizes, DType dtype) {
  Tensor a = rng.uniform_tensor(sizes, -1, 1, DType::F64);
  const auto n = static_cast<size_t>(sizes.back());
  std::span<double> v = a.mutable_values<double>();
  for (size_t i = 0; i < v.size(); ++i)
    if (i % n == (i / n + 1) % n) v[i] += static_cast<double>(n);  // off the diagonal, so that rows must move
  return a.cast(dtype);
}

OP_CASES(dense_solve) {
  add({Tensor::f32({2, 2}, {2, 1, 1, 3}), Tensor::f32({2}, {5, 10})}).expect({Tensor::f32({2}, {1, 3})}, kRounding);
  add({Tensor::f32({2, 2}, {0, 1, 1, 0}), Tensor::f32({2}, {5, 7})}).expect({Tensor::f32({2}, {7, 5})}, kExact);
  add({Tensor::f32({1, 1}, {4}), Tensor::f32({1, 3}, {1, 2, 8})}).expect({Tensor::f32({1, 3}, {0.25, 0.5, 2})}, kExact);
  // Without pivoting 1e-20 would swallow the second equation.
  add({f64({2, 2}, {1e-20, 1, 1, 1}), f64({2}, {1, 2})}).expect({f64({2}, {1, 1})}, {.rel = 1e-12});
  // Badly scaled rows and columns are not singular.
  add({f64({2, 2}, {1, 0, 0, 1e-30}), f64({2}, {1, 1e-30})}).expect({f64({2}, {1, 1})}, {.rel = 1e-12});
  add({f64({2, 2}, {1e20, 1e20, 1, 2}), f64({2}, {2e20, 3})}).expect({f64({2}, {1, 1})}, {.rel = 1e-12});
  for (const DType d : {DType::F32, DType::F64})
    for (const std::vector<int64_t>& b : {std::vector<int64_t>{6}, {6, 1}, {6, 4}})
      add({well_conditioned(rng, {6, 6}, d), random(b, d)}).check([d](const Tensors& in, const Tensors& out) {
        expect_solves(in[0], out[0], in[1], 1, d == DType::F64 ? 1e-12 : 1e-5);
      });
  add({random({0, 0}), random({0})}).expect({Tensor(DType::F32, {0})});
  add({random({2, 2}), random({2, 0})}).expect({Tensor(DType::F32, {2, 0})});
  const char* singular = "is singular";
  add_error({Tensor::f32({2, 2}, {1, 2, 2, 4}), random({2})}, {}, "column (1) of 2 has no pivot");
  add_error({Tensor::f32({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), random({3})}, {}, "up to rounding");
  add_error({Tensor::f32({2, 2}, {0, 0, 0, 0}), random({2})}, {}, "Matrix 0 is singular");
  add_error({Tensor::f32({2, 2}, {NAN, 1, 1, 1}), random({2})}, {}, singular);
  add_error({f64({3, 3}, {0.1, 0.2, 0.3, 0.2, 0.4, 0.6, 0.7, 0.1, 0.9}), random({3}, DType::F64)}, {}, singular);
  add_error({Tensor::f32({2, 2}, {1, 1, 1, INFINITY}), random({2})}, {}, singular);
  add_error({random({2, 3}), random({2})}, {}, "Sides of the matrix (2 and 3) differ.");
  add_error({random({2, 2}), random({3})}, {}, "Sizes of matrix and right-hand side (2 and 3) differ.");
  add_error({random({2}), random({2})}, {}, "Matrix rank (1) is not 2.");
  add_error({random({2, 2}), random({2, 2, 2})}, {}, "Right-hand side rank (3) is not 1 or 2.");
  add_error({random({2, 2}, DType::F16), random({2}, DType::F16)}, {}, "Matrix dtype (f16) is not f32 or f64.");
  add_error({random({2, 2}), random({2}, DType::F64)}, {}, "Operand dtypes (f32, f64) differ");
}

OP_CASES(batched_dense_solve) {
  add({Tensor::f32({2, 2, 2}, {2, 1, 1, 3, 0, 1, 1, 0}), Tensor::f32({2, 2}, {5, 10, 5, 7})})
      .expect({Tensor::f32({2, 2}, {1, 3, 7, 5})}, kRounding);
  for (const DType d : {DType::F32, DType::F64})
    for (const std::vector<int64_t>& b : {std::vector<int64_t>{3, 5}, {3, 5, 2}})
      add({well_conditioned(rng, {3, 5, 5}, d), random(b, d)}).check([d](const Tensors& in, const Tensors& out) {
        expect_solves(in[0], out[0], in[1], 3, d == DType::F64 ? 1e-12 : 1e-5);
      });
  add({random({0, 2, 2}), random({0, 2})}).expect({Tensor(DType::F32, {0, 2})});
  add_error({Tensor::f32({2, 1, 1}, {1, 0}), random({2, 1})}, {}, "Matrix 1 is singular");
  add_error({random({2, 2}), random({2})}, {}, "Matrix rank (2) is not 3.");
  add_error({random({2, 2, 2}), random({3, 2})}, {}, "Sizes of matrix and right-hand side (2 and 3) differ.");
  add_error({random({2, 2, 2}), random({2})}, {}, "Right-hand side rank (1) is not 2 or 3.");
}

TEST(DenseSolve, ASingularMatrixIsARunTimeError) {
  try {
    run(ops::dense_solve, {Tensor(DType::F32, {2, 2}), Tensor(DType::F32, {2})});
    FAIL() << "no Error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
  }
}

TEST(DenseSolve, AnIllConditionedMatrixIsStillSolved) {
  // Hilbert's matrix of 8: condition 1e10. Its right-hand side is the sum of the columns, so x is all ones.
  std::vector<double> h(64), b(8, 0.0);
  for (size_t i = 0; i < 64; ++i) b[i / 8] += h[i] = 1.0 / static_cast<double>(i / 8 + i % 8 + 1);
  const Tensor x = run(ops::dense_solve, {f64({8, 8}, h), f64({8}, b)})[0];
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(x.at(i), 1, 1e-5);
}

TEST(DenseSolve, EveryMatrixOfLowerRankIsFound) {
  for_random(50, [](Rng& rng) {
    const int64_t n = rng.integer(2, 7), rank = rng.integer(1, n - 1);
    const Tensor a = run(ops::matmul, {rng.tensor({n, rank}, DType::F64), rng.tensor({rank, n}, DType::F64)})[0];
    EXPECT_THROW(run(ops::dense_solve, {a, rng.tensor({n}, DType::F64)}), Error);
  });
}

}  // namespace rlx::test
