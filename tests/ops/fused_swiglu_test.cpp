#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(fused_swiglu) {
  // silu(ln 3) = 0.75 ln 3
  const float l = std::log(3.0f);
  add({Tensor::f32({1, 4}, {2, 4, 0, l})}).expect({Tensor::f32({1, 2}, {0, 3 * l})}, kRounding);
  add({Tensor::f32({1, 4}, {0, l, 2, 4})}, {.gate_first = true}).expect({Tensor::f32({1, 2}, {0, 3 * l})}, kRounding);
  for (const DType d : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const std::optional<DType> to : {std::optional<DType>(), std::optional(DType::F16), std::optional(DType::F64)})
      for (const bool gate_first : {false, true})
        add({random({3, 2, 10}, d)}, {.cast_to = to, .gate_first = gate_first})
            .check([=](const Tensors& in, const Tensors& out) {
              ASSERT_EQ(out[0].type(), (TensorType{{3, 2, 5}, to.value_or(d)}));
              for (int64_t i = 0; i < 30; ++i) {
                const double a = in[0].at(i / 5 * 10 + i % 5), b = in[0].at(i / 5 * 10 + 5 + i % 5);
                const double up = gate_first ? b : a, gate = gate_first ? a : b;
                const double e = up * gate / (1 + std::exp(-gate));
                const bool narrow = d == DType::F16 || to == DType::F16;
                const double eps = d == DType::BF16 ? 2e-2 : narrow ? 2e-3 : 1e-6;
                EXPECT_NEAR(out[0].at(i), e, eps * (std::fabs(e) + 0.1));
              }
            });
  for (const int64_t half : {1, 67, 701, 1300})  // short rows side by side, long ones in parts
    for (const DType d : {DType::F32, DType::F16, DType::BF16})
      add({random({7, 2 * half}, -9, 9, d)}, {.cast_to = d == DType::BF16 ? std::optional(DType::F32) : std::nullopt});
  add({random({0, 4})}).expect({Tensor(DType::F32, {0, 2})});
  add({random({2, 0})}).expect({Tensor(DType::F32, {2, 0})});
  add_error({random({2, 5})}, {}, "Last size (5) is odd");
  add_error({random({})}, {}, "Operand rank (0) is less than 1.");
  add_error({random({4}, DType::I32)}, {}, "is not a float type");
}

}  // namespace rlx::test
