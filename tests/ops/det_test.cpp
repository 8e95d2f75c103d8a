#include <cmath>

#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(det) {
  add({Tensor::f32({2, 2}, {0, 2, 3, 4})}).expect({Tensor::f32({}, {-6})}, kExact);
  add({Tensor::f32({2, 1, 1}, {5, -7})}).expect({Tensor::f32({2}, {5, -7})}, kExact);
  add({Tensor::f32({2, 2}, {1, 2, 2, 4})}).expect({Tensor::f32({}, {0})}, kExact);
  add({Tensor(DType::F32, {2, 0, 0})}).expect({Tensor::f32({2}, {1, 1})}, kExact);
  add({Tensor(DType::F32, {0, 2, 2})}).expect({Tensor(DType::F32, {0})}, kExact);
  add({Tensor::f32({2, 2}, {1, NAN, 2, 4})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::isnan(out[0].at(0)));
  });
  const FixtureFile file("onnx_sample.npz");
  for (int i = 0; file.has(str("det", i, "_y")); ++i)
    add({file[str("det", i, "_0")]}).expect({file[str("det", i, "_y")]}, {.rel = 1e-5, .abs = 1e-5});
  // det(A B) = det(A) det(B).
  for (const DType d : {DType::F32, DType::F64})
    add({random({3, 5, 5}, d)}).check([d](const Tensors& in, const Tensors& out) {
      const Tensor other = Rng(4).tensor({3, 5, 5}, d);
      const Tensor both = run(ops::det, {run(ops::matmul, {in[0], other})[0]})[0], one = run(ops::det, {other})[0];
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_NEAR(both.at(i), out[0].at(i) * one.at(i), 1e-4 * (1 + std::fabs(both.at(i))));
    });
  for (const DType d : {DType::F16, DType::BF16}) add({random({4, 3, 3}, d)});
  add_error({random({2, 3})}, {}, "Sides of the matrix (2 and 3) differ");
  add_error({random({3})}, {}, "Operand rank (1) is less than 2");
  add_error({integers({2, 2}, 0, 9)}, {}, "is not a float type");
}

}  // namespace rlx::test
