#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(lora_matmul) {
  // x w = [11, 2], x a = [3], times scale 2 is [6], times b is [6, -12]
  add({Tensor::f32({1, 2}, {1, 2}), Tensor::f32({2, 2}, {1, 0, 5, 1}), Tensor::f32({2, 1}, {1, 1}),
       Tensor::f32({1, 2}, {1, -2})},
      {.scale = 2})
      .expect({Tensor::f32({1, 2}, {17, -10})}, kExact);
  for (const DType d : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const float scale : {0.5f, -3.0f, 0.0f})
      add({random({5, 7}, d), random({7, 3}, d), random({7, 2}, d), random({2, 3}, d)}, {.scale = scale})
          .check([d, scale](const Tensors& in, const Tensors& out) {
            std::vector<double> expected(15);
            for (int64_t i = 0; i < 5; ++i)
              for (int64_t j = 0; j < 3; ++j) {
                double sum = 0;
                for (int64_t k = 0; k < 7; ++k) {
                  sum += in[0].at(i * 7 + k) * in[1].at(k * 3 + j);
                  for (int64_t r = 0; r < 2; ++r)
                    sum += scale * in[0].at(i * 7 + k) * in[2].at(k * 2 + r) * in[3].at(r * 3 + j);
                }
                expected[static_cast<size_t>(i * 3 + j)] = sum;
              }
            const Tolerance t = d == DType::F16 ? kHalf : d == DType::BF16 ? kBFloat : kAccumulation;
            EXPECT_TRUE(near(out[0], Tensor::from_doubles(d, {5, 3}, expected), t));
          });
  add({random({2, 3, 4}), random({4, 5}), random({4, 2}), random({2, 5})})
      .check([](const Tensors& in, const Tensors& out) {
        const Tensors flat = {in[0].reshaped({6, 4}), in[1], in[2], in[3]};
        EXPECT_EQ(out[0], run(ops::lora_matmul, flat)[0].reshaped({2, 3, 5}));
      });
  // Rank 0 adapts nothing.
  add({random({2, 3}), random({3, 4}), random({3, 0}), random({0, 4})})
      .check([](const Tensors& in, const Tensors& out) {
        EXPECT_EQ(out[0], run(ops::matmul, {in[0], in[1]})[0]);
      });
  add_error({random({2, 3}), random({3, 4}), random({3, 1}), random({2, 4})}, {}, "Contracted sizes (1 and 2) differ.");
  add_error({random({2, 3}), random({3, 4}), random({3, 1}), random({1, 5})}, {},
            "Columns of w and b (4 and 5) differ.");
  add_error({random({2, 3}), random({1, 3, 4}), random({3, 1}), random({1, 4})}, {}, "Operand w rank (3) is not 2.");
  add_error({random({2, 3}), random({3, 4}), random({3}), random({1, 4})}, {}, "Operand a rank (1) is not 2.");
  add_error({random({2, 3}), random({3, 4}), random({3, 1}), random({4})}, {}, "Operand b rank (1) is not 2.");
  add_error(
      {random({2, 3}, DType::I32), random({3, 4}, DType::I32), random({3, 1}, DType::I32), random({1, 4}, DType::I32)},
      {}, "is not a float type");
}

}  // namespace rlx::test
