#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using ops::ScaleMode;
using ops::Ste;

// Multiples of 1/4, whose quotients by powers of two every device has exactly: none is pushed over a tie.
static Tensor quarters(CaseBuilderBase& cases, std::vector<int64_t> sizes, DType dtype) {
  std::vector<double> values = cases.integers(sizes, -40, 40).to_doubles();
  for (double& v : values) v /= 4;
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

OP_CASES(fake_quantize) {
  // bits 4: q_max 7, the largest magnitude 14 gives a scale of 2; ties to even.
  add({Tensor::f32({6}, {14, -14, 1, 3, 5.1, -7})}, {.bits = 4})
      .expect({Tensor::f32({6}, {14, -14, 0, 4, 6, -8})}, kExact);
  add({Tensor::f32({2, 3}, {1, -7, 3.4, 70, 14, -26})}, {.bits = 4, .axis = 0})
      .expect({Tensor::f32({2, 3}, {1, -7, 3, 70, 10, -30})}, kRounding);
  add({Tensor::f32({3}, {0.4, -0.9, 1})}, {.bits = 2}).expect({Tensor::f32({3}, {0, -1, 1})}, kExact);
  add({Tensor::f32({2}, {0, 0})}).expect({Tensor::f32({2}, {0, 0})}, kExact);  // the scale is at least 1e-12
  add({Tensor::f32({2, 2}, {1, NAN, 3, 4})}, {.axis = 0})
      .expect({Tensor::f32({2, 2}, {NAN, NAN, 3, 4})}, {.rel = 0.01});  // a NaN takes its channel with it
  // Fixed: the state is the scale; values beyond the grid are clamped.
  add({Tensor::f32({4}, {0.3, 0.26, 100, -100}), Tensor::f32({1}, {0.5})}, {.bits = 4, .scale_mode = ScaleMode::kFixed})
      .expect({Tensor::f32({4}, {0.5, 0.5, 3.5, -3.5})}, kExact);
  // EMA: a state that is not positive is replaced, another one decays; the new state is the scale.
  add({Tensor::f32({2, 2}, {7, 1.2, 28, 6}), Tensor::f32({2}, {0, 8})},
      {.bits = 4, .axis = 0, .scale_mode = ScaleMode::kEma, .decay = 0.75})
      .expect({Tensor::f32({2, 2}, {7, 1, 28, 7}), Tensor::f32({2}, {1, 7})}, kExact);
  // The grid: every result is a multiple of the scale, at most half a step away.
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const int64_t bits : {8, 4, 2})
      add({random({4, 3, 5}, dtype)}, {.bits = bits, .axis = -2})
          .check([bits, dtype](const Tensors& in, const Tensors& out) {
            const double eps = dtype == DType::BF16 ? 0x1p-8 : dtype == DType::F16 ? 0x1p-11 : 1e-6;
            for (int64_t c = 0; c < 3; ++c) {
              double top = 0;
              for (int64_t i = 0; i < 60; ++i)
                if (i / 5 % 3 == c) top = std::max(top, std::fabs(in[0].at(i)));
              const double step = top / (bits == 8 ? 127 : bits == 4 ? 7 : 1);
              for (int64_t i = 0; i < 60; ++i)
                if (i / 5 % 3 == c) {
                  const double y = out[0].at(i);
                  EXPECT_LE(std::fabs(y - in[0].at(i)), step / 2 + eps * top);
                  EXPECT_NEAR(y, std::nearbyint(y / step) * step, eps * top);
                }
            }
          });
  // Half of the largest element is a tie, 3.5 steps, but for the rounding of the scale: every device has the same one.
  const Tensor halves = random({300, 2});
  std::vector<float> pairs;
  for (int64_t i = 0; i < 300; ++i)
    pairs.insert(pairs.end(), {halves.values<float>()[i], 2 * halves.values<float>()[i]});
  add({Tensor::f32({300, 2}, pairs)}, {.bits = 4, .axis = 0});
  // Channels of several parts, in every dtype of x and of the state.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    add({quarters(*this, {2, 17000}, dtype)}, {.bits = 2, .axis = 0});
    add({quarters(*this, {9000, 2}, dtype)}, {.bits = 2, .axis = 1});
    for (const DType state : {DType::F32, DType::F16, DType::BF16}) {
      add({quarters(*this, {3, 70, 5}, dtype), Tensor::f32({70}, std::vector<float>(70, 0.5f)).cast(state)},
          {.bits = 8, .axis = 1, .scale_mode = ScaleMode::kFixed});
      add({quarters(*this, {3, 2, 5}, dtype), Tensor::f32({2}, {0, 1}).cast(state)},
          {.bits = 2, .axis = 1, .scale_mode = ScaleMode::kEma, .decay = 0.5});
    }
  }
  add({Tensor(DType::F32, {0}), Tensor::f32({1}, {2})}, {.scale_mode = ScaleMode::kEma, .decay = 0.5})
      .expect({Tensor(DType::F32, {0}), Tensor::f32({1}, {1})});
  add_error({random({2})}, {.bits = 3}, "Attribute bits (3) is not 8, 4 or 2");
  add_error({random({2})}, {.axis = 1}, "Axis (1) is out of range");
  add_error({random({2})}, {.scale_mode = ScaleMode::kEma}, "Number of operands (1) with scale_mode ema is not 2");
  add_error({random({2}), random({1})}, {}, "Number of operands (2) with scale_mode per_batch is not 1");
  add_error({random({2}), random({2})}, {.scale_mode = ScaleMode::kFixed}, "State shape ([2]) is not [1]");
  add_error({random({2}), random({1})}, {.scale_mode = ScaleMode::kEma, .decay = 1.5}, "Attribute decay (1.5)");
  add_error({integers({2}, 0, 3)}, {}, "not a float type");
}

OP_CASES(fake_quantize_lsq) {
  add({Tensor::f32({2, 2}, {0.3, 0.76, -9, 3.6}), Tensor::f32({2}, {0.5, 1})}, {.bits = 4, .axis = 0})
      .expect({Tensor::f32({2, 2}, {0.5, 1, -7, 4})}, kExact);
  add({Tensor::f32({2}, {1, -1}), Tensor::f32({1}, {-3})}).expect({Tensor::f32({2}, {127e-12, -127e-12})}, kRounding);
  // The same as fake_quantize with that state.
  add({random({3, 4}, DType::F64), random({4}, 0.1, 1, DType::F64)}, {.bits = 4, .axis = 1})
      .check([](const Tensors& in, const Tensors& out) {
        EXPECT_EQ(out[0], run(ops::fake_quantize, in, {.bits = 4, .axis = 1, .scale_mode = ScaleMode::kFixed})[0]);
      });
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const DType scale : {DType::F32, DType::F16, DType::BF16})
      add({quarters(*this, {7, 3, 60}, dtype), Tensor::f32({3}, {0.25, 0.5, 2}).cast(scale)}, {.bits = 4, .axis = -2});
  add_error({random({2}), random({2})}, {}, "Scale shape ([2]) is not [1]");
  add_error({random({2}), random({1})}, {.bits = 16}, "Attribute bits (16)");
}

OP_CASES(fake_quantize_lsq_backward) {
  // z = 0.6, 1.52, -9, 3.6 with q_max 7: outside only the third.
  add({Tensor::f32({2, 2}, {0.3, 0.76, -9, 3.6}), Tensor::f32({2}, {0.5, 1}), Tensor::f32({2, 2}, {1, 10, 100, 1000})},
      {.bits = 4, .axis = 0})
      .expect({Tensor::f32({2, 2}, {1, 10, 0, 1000}), Tensor::f32({2}, {0.4 + 4.8, -700 + 400})}, kTranscendental);
  add({Tensor::f32({4}, {1, 9, -9, 2}), Tensor::f32({1}, {1}), Tensor::f32({4}, {INFINITY, INFINITY, NAN, NAN})},
      {.bits = 4})
      .expect({Tensor::f32({4}, {INFINITY, 0, 0, NAN}), Tensor::f32({1}, {NAN})}, kExact);
  // Where nothing changes its grid point, central differences of the forward see s * round(x / s) with round constant:
  // the gradient of the scale without the straight-through term -x/s.
  add({random({3, 4}, DType::F64), random({1}, 0.2, 0.3, DType::F64), random({3, 4}, DType::F64)}, {.bits = 4})
      .check([](const Tensors& in, const Tensors& out) {
        double straight = 0;
        for (int64_t i = 0; i < 12; ++i) {
          const double z = in[0].at(i) / in[1].at(0);
          if (std::fabs(z) <= 7) straight += in[2].at(i) * z;
        }
        const double full = out[1].at(0) + straight;
        const Tensor slope = Tensor::from_doubles(DType::F64, {1}, std::vector<double>{full});
        EXPECT_TRUE(matches_finite_differences(
            [&](const Tensor& s) {
              return run(ops::fake_quantize_lsq, {in[0], s}, {.bits = 4})[0];
            },
            in[1], in[2], slope, 1e-6, 1e-7));
      });
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const DType scale : {DType::F32, DType::F16, DType::BF16})
      add({quarters(*this, {7, 3, 60}, dtype), Tensor::f32({3}, {0.25, 0.5, 2}).cast(scale), random({7, 3, 60}, dtype)},
          {.bits = 4, .axis = 1});
    add({quarters(*this, {20001}, dtype), Tensor::f32({1}, {0.5}).cast(dtype), random({20001}, dtype)}, {.bits = 4});
  }
  add_error({random({2}), random({1}), random({3})}, {}, "Gradient shape ([3]) is not [2]");
  add_error({random({2}), random({1}), random({2}, DType::F64)}, {}, "Operand dtypes (f32, f64) differ");
}

OP_CASES(fake_quantize_backward) {
  // The largest magnitude 14 gives a scale of 2 and a range of ±14.
  const Tensor x = Tensor::f32({3}, {14, -7, 1}), dy = Tensor::f32({3}, {1, 2, 3});
  add({x, dy}, {.bits = 4}).expect({dy}, kExact);
  add({x, dy}, {.bits = 4, .ste = Ste::kClippedIdentity}).expect({dy}, kExact);
  add({x, dy}, {.bits = 4, .ste = Ste::kHardTanh}).expect({Tensor::f32({3}, {0, 1, 3 * 13.0f / 14})}, kRounding);
  const auto slope = [](double z) { return static_cast<float>(1 / (std::cosh(z) * std::cosh(z))); };
  add({x, dy}, {.bits = 4, .ste = Ste::kTanh})
      .expect({Tensor::f32({3}, {slope(7), 2 * slope(3.5), 3 * slope(0.5)})}, {.rel = 1e-5});
  // Per channel: the second row has a scale of its own.
  add({Tensor::f32({2, 2}, {14, 7, 28, 7}), Tensor::f32({2, 2}, {1, 1, 1, 1})},
      {.bits = 4, .axis = 0, .ste = Ste::kHardTanh})
      .expect({Tensor::f32({2, 2}, {0, 0.5, 0, 0.75})}, kRounding);
  // No element is beyond the range its own maximum spans.
  for (int i = 0; i < 20; ++i) {
    const Tensor g = random({64});
    add({random({64}), g}, {.ste = Ste::kClippedIdentity}).expect({g}, kExact);
  }
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const Ste ste : {Ste::kIdentity, Ste::kClippedIdentity, Ste::kTanh, Ste::kHardTanh}) {
      add({random({3, 9000}, dtype), random({3, 9000}, dtype)}, {.bits = 4, .axis = 0, .ste = ste});
      add({random({3, 5, 7}, dtype), random({3, 5, 7}, dtype)}, {.axis = -2, .ste = ste});
    }
  add_error({random({2}), random({3})}, {}, "Gradient shape ([3]) is not [2]");
  add_error({random({2}), random({2})}, {.bits = 1}, "Attribute bits (1)");
  add_error({random({2}), random({2})}, {.axis = -2}, "Axis (-2) is out of range");
}

}  // namespace rlx::test
