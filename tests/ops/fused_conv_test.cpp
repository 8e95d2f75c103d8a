#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

double activated(ops::ActivationKind kind, double x) {
  using enum ops::ActivationKind;
  switch (kind) {
    case kRelu: return x < 0 ? 0 : x;
    case kSigmoid: return 1 / (1 + std::exp(-x));
    case kTanh: return std::tanh(x);
    case kSilu: return x / (1 + std::exp(-x));
    case kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case kNeg: return -x;
    default: return x;
  }
}

Tolerance tolerance_of(DType dtype) {
  return dtype == DType::F16 ? kHalf : dtype == DType::BF16 ? kBFloat : kAccumulation;
}

}  // namespace

OP_CASES(fused_conv_bias_act) {
  using ops::ActivationKind;
  // By hand: the sums 21, 32, 43 less 30, plus a residual.
  add({Tensor::f32({1, 1, 4}, {1, 2, 3, 4}), Tensor::f32({1, 1, 2}, {1, 10}), Tensor::f32({1}, {-30})},
      {.kernel_size = {2}, .activation = ActivationKind::kRelu})
      .expect({Tensor::f32({1, 1, 3}, {0, 2, 13})}, kExact);
  add({Tensor::f32({1, 1, 4}, {1, 2, 3, 4}), Tensor::f32({1, 1, 2}, {1, 10}), Tensor::f32({1}, {-30}),
       Tensor::f32({1, 1, 3}, {10, -3, NAN})},
      {.kernel_size = {2}, .activation = ActivationKind::kRelu})
      .expect({Tensor::f32({1, 1, 3}, {1, 0, NAN})}, kExact);  // the residual comes before the activation
  // Each against the conv alone, in f64.
  struct Shape {
    std::vector<int64_t> x, w;
    ops::ConvAttrs conv;
  };
  const auto judged = [&](const Shape& s, DType dtype, ActivationKind kind, bool residual) {
    const auto& a = s.conv;
    Tensors in = {random(s.x, dtype), random(s.w, dtype), random({s.w[0]}, dtype)};
    const Tensor plain = run(ops::conv, {in[0].cast(DType::F64), in[1].cast(DType::F64)}, a)[0];
    if (residual) in.push_back(random(plain.sizes(), dtype));
    add(in, {a.kernel_size, a.stride, a.padding, a.dilation, a.groups, kind})
        .check([=](const Tensors& operands, const Tensors& out) {
          std::vector<double> y = plain.to_doubles();
          const int64_t channels = plain.sizes()[1], plane = product(plain.sizes()) / (plain.sizes()[0] * channels);
          for (size_t i = 0; i < y.size(); ++i) {
            const auto e = static_cast<int64_t>(i);
            y[i] += operands[2].at(e / plane % channels) + (operands.size() > 3 ? operands[3].at(e) : 0);
            y[i] = activated(kind, y[i]);
          }
          EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, plain.sizes(), y), tolerance_of(dtype)));
        });
  };
  const Shape shapes[] = {
      {{2, 5, 13, 19}, {17, 5, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 1}},
      {{2, 6, 11, 9}, {10, 3, 3, 3}, {{3, 3}, {2, 2}, {0, 0, 1, 1}, {}, 2}},
      {{1, 9, 12, 11}, {30, 9, 1, 1}, {{1, 1}, {}, {}, {}, 1}},
      {{2, 7, 21, 35}, {7, 1, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 7}},
      {{1, 6, 7, 7}, {6, 1, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 6}},  // short rows
      {{1, 6, 70}, {9, 6, 3}, {{3}, {2}, {1}, {}, 1}},
      {{1, 3, 5, 12, 13}, {15, 3, 2, 3, 3}, {{2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {}, 1}},
      {{1, 3, 4, 6, 20}, {6, 1, 3, 3, 3}, {{3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {}, 3}},
  };
  for (const Shape& s : shapes)
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64})
      for (const bool residual : {false, true}) judged(s, dtype, ActivationKind::kRelu, residual);
  for (const ActivationKind kind : {ActivationKind::kNone, ActivationKind::kSigmoid, ActivationKind::kTanh,
                                    ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kNeg}) {
    judged(shapes[0], DType::F32, kind, true);
    judged(shapes[3], DType::F32, kind, false);
  }
  for (const bool residual : {false, true}) {
    judged({{1, 96, 4, 6}, {24, 96, 1, 1}, {{1, 1}, {}, {}, {}, 1}}, DType::F32, ActivationKind::kRelu, residual);
    judged({{2, 32, 4, 6}, {20, 32, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 1}}, DType::F16, ActivationKind::kSilu,
           residual);
    judged({{2, 4, 6, 5}, {6, 2, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 2}}, DType::F32, ActivationKind::kRelu, residual);
  }
  judged({{1, 60, 6, 5}, {20, 60, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 1}}, DType::F32, ActivationKind::kRelu, true);
  judged({{1, 3, 9, 9}, {230, 3, 3, 3}, {{3, 3}, {}, {}, {}, 1}}, DType::F32, ActivationKind::kRelu, true);
  judged({{3, 4, 20, 20}, {3, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 1}}, DType::F32, ActivationKind::kSilu, true);
  add({Tensor(DType::F32, {1, 0, 4}), Tensor(DType::F32, {2, 0, 2}), Tensor::f32({2}, {3, -4})},
      {.kernel_size = {2}, .activation = ActivationKind::kRelu})
      .expect({Tensor::f32({1, 2, 3}, {3, 3, 3, 0, 0, 0})}, kExact);  // no channels: the bias alone
  const Tensor x = random({1, 2, 4}), w = random({3, 2, 2}), b = random({3});
  add_error({x, w, random({2})}, {.kernel_size = {2}}, "Bias shape ([2]) is not [3]");
  add_error({x, w, random({3}, DType::F16)}, {.kernel_size = {2}}, "differ; cast one");
  add_error({x, w, b, random({1, 3, 4})}, {.kernel_size = {2}}, "Residual shape ([1, 3, 4]) is not [1, 3, 3]");
  add_error({x, w, b, random({1, 3, 3}, DType::F64)}, {.kernel_size = {2}}, "differ; cast one");
  add_error({x, w, b}, {.kernel_size = {5}}, "does not end in kernel_size");
}

}  // namespace rlx::test
