#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using enum ops::ActivationKind;

static Tensor f64(std::vector<double> values) {
  return Tensor::from_doubles(DType::F64, {static_cast<int64_t>(values.size())}, values);
}

OP_CASES(relu_backward) {
  add({f64({-1, 0, -0.0, 2, NAN, INFINITY}), f64({3, 4, 5, 6, 7, 8})}).expect({f64({0, 0, 0, 6, 0, 8})}, kExact);
  add({f64({-1, 2}), f64({NAN, NAN})}).expect({f64({0, NAN})}, kExact);  // what is cut off does not matter
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    add({random({3, 5}, d), random({3, 5}, d)}).check([](const Tensors& in, const Tensors& out) {
      for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(out[0].at(i), in[0].at(i) > 0 ? in[1].at(i) : 0.0);
    });
  add({random({3, 701}), random({3, 701})});
  add({random({0, 2}), random({0, 2})}).expect({Tensor(DType::F32, {0, 2})});
  add_error({random({2}), random({3})}, {}, "Operand dy shape ([3]) is not [2].");
  add_error({random({2}), random({2}, DType::F64)}, {}, "Operand dtypes (f32, f64) differ");
  add_error({random({2}, DType::I32), random({2}, DType::I32)}, {}, "is not a float type");
}

OP_CASES(activation_backward) {
  // Central differences of the forward op, away from its kinks and poles.
  for (int32_t k = 1; k <= 17; ++k) {
    const auto kind = static_cast<ops::ActivationKind>(k);
    if (kind == kRound) continue;  // straight through on purpose
    const bool positive = kind == kLog || kind == kSqrt || kind == kRsqrt;
    const double high = kind == kTan ? 1.2 : 3;
    Tensor x = random({2, 7}, positive ? 0.3 : -high, high, DType::F64);
    if (kind == kRelu || kind == kAbs)  // keep 0 out of the step's reach
      for (double& v : x.mutable_values<double>()) v += std::copysign(0.01, v);
    add({x, random({2, 7}, DType::F64)}, {.kind = kind}).check([kind](const Tensors& in, const Tensors& out) {
      const auto forward = [kind](const Tensor& at) { return run(ops::activation_op(kind), {at})[0]; };
      EXPECT_TRUE(matches_finite_differences(forward, in[0], in[1], out[0], 1e-7)) << name_of(kind);
    });
    for (const DType d : {DType::F32, DType::F16, DType::BF16})  // several blocks and a tail
      add({random({3, 701}, positive ? 0.3 : -high, high, d), random({3, 701}, d)}, {.kind = kind});
    // Narrow types round the f64 gradient once.
    for (const DType d : {DType::F32, DType::F16, DType::BF16})
      add({random({9}, positive ? 0.3 : -high, high, d), random({9}, d)}, {.kind = kind})
          .check([kind, d](const Tensors& in, const Tensors& out) {
            const Tensor wide =
                run(ops::activation_backward, {in[0].cast(DType::F64), in[1].cast(DType::F64)}, {.kind = kind})[0];
            EXPECT_TRUE(near(out[0], wide.cast(d), kExact)) << name_of(kind);
          });
  }
  // Edges of the derivative column.
  const Tensor two = f64({2, 2, 2, 2});
  const Tensor edge = f64({0, -1, 4, NAN});
  add({edge, two}, {.kind = kRelu}).expect({f64({0, 0, 2, 0})}, kExact);
  add({edge, two}, {.kind = kSqrt}).expect({f64({0, 0, 0.5, 0})}, kExact);
  add({edge, two}, {.kind = kRsqrt}).expect({f64({0, 0, -0.125, 0})}, kExact);
  add({edge, two}, {.kind = kLog}).expect({f64({INFINITY, -2, 0.5, NAN})}, kExact);
  add({f64({0, -3, 3, -0.0}), two}, {.kind = kAbs}).expect({f64({0, -2, 2, 0})}, kExact);
  add({f64({0.4, 0.5, -7.5, 1e9}), two}, {.kind = kRound}).expect({two}, kExact);
  for (const auto kind : {kSigmoid, kTanh, kGelu, kSilu, kGeluApprox})  // saturated, never NaN
    add({f64({-700, 700}), f64({2, 2})}, {.kind = kind}).check([kind](const Tensors&, const Tensors& out) {
      EXPECT_NEAR(out[0].at(0), 0, 1e-200) << name_of(kind);
      EXPECT_NEAR(out[0].at(1), kind == kSigmoid || kind == kTanh ? 0 : 2, 1e-12) << name_of(kind);
    });
  for (const auto kind : {kGelu, kSilu, kGeluApprox})  // and nothing in it overflows
    add({Tensor::f32({4}, {1e10f, 1e20f, 1e30f, 3e38f}), Tensor::f32({4}, {2, 3, 4, 5})}, {.kind = kind})
        .expect({Tensor::f32({4}, {2, 3, 4, 5})}, kRounding);
  add_error({random({2}), random({2})}, {.kind = kNone}, "Activation kind (none) has no op.");
  add_error({random({2}), random({3})}, {.kind = kGelu}, "Operand dy shape ([3]) is not [2].");
  add_error({random({2}, DType::C64), random({2}, DType::C64)}, {.kind = kExp}, "is not a float type");
}

}  // namespace rlx::test
