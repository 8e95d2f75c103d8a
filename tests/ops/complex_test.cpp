#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using C = std::complex<float>;

static Tensor c64(std::vector<C> values) {
  return Tensor::of<C>(DType::C64, {static_cast<int64_t>(values.size())}, values);
}

OP_CASES(complex_norm_sq) {
  add({c64({{3, 4}, {0, -2}, {0, 0}, {NAN, 1}})}).expect({Tensor::f32({4}, {25, 4, 0, NAN})}, kExact);
  add({random({2, 5}, DType::C64)}).check([](const Tensors& in, const Tensors& out) {
    // z * conj(z) is real and the same number
    const Tensor product = run(ops::mul, {in[0], run(ops::conjugate, {in[0]})[0]})[0];
    EXPECT_TRUE(near(out[0], run(ops::cast, {product})[0], kRounding));
  });
  add({random({0}, DType::C64)}).expect({Tensor(DType::F32, {0})});
  add_error({random({2})}, {}, "Operand dtype (f32) is not c64.");
}

OP_CASES(conjugate) {
  add({c64({{3, 4}, {-1, -2}})}).expect({c64({{3, -4}, {-1, 2}})}, kExact);
  add({random({3, 1, 2}, DType::C64)}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_EQ(run(ops::conjugate, {out[0]})[0], in[0]);
  });
  add_error({random({2}, DType::F64)}, {}, "Operand dtype (f64) is not c64.");
}

OP_CASES(complex_norm_sq_backward) {
  add({c64({{3, 4}, {-1, 2}}), Tensor::f32({2}, {2, -0.5f})}).expect({c64({{6, 8}, {0.5f, -1}})}, kExact);
  // d/d conj(z) = (d/dre + i d/dim) / 2, by central differences of g (re^2 + im^2).
  add({random({2, 3}, DType::C64), random({2, 3})}).check([](const Tensors& in, const Tensors& out) {
    for (int64_t i = 0; i < 6; ++i) {
      const C z = in[0].values<C>()[static_cast<size_t>(i)], dz = out[0].values<C>()[static_cast<size_t>(i)];
      const double g = in[1].at(i), h = 1e-4, a = z.real(), b = z.imag();
      const auto f = [&](double re, double im) { return g * (re * re + im * im); };
      EXPECT_NEAR(dz.real(), (f(a + h, b) - f(a - h, b)) / (4 * h), 1e-5);
      EXPECT_NEAR(dz.imag(), (f(a, b + h) - f(a, b - h)) / (4 * h), 1e-5);
    }
  });
  add_error({random({2}), random({2})}, {}, "Operand z dtype (f32) is not c64.");
  add_error({random({2}, DType::C64), random({2}, DType::F64)}, {}, "Operand g dtype (f64) is not f32.");
  add_error({random({2}, DType::C64), random({1})}, {}, "Operand g shape ([1]) is not [2].");
}

}  // namespace rlx::test
