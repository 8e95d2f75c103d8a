#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(softmax_cross_entropy_with_logits) {
  const float ln2 = std::log(2.0f), ln3 = std::log(3.0f), ln4 = std::log(4.0f);
  add({Tensor::f32({3, 2}, {0, 0, 0, ln3, 0, ln3}), Tensor::i32({3}, {1, 0, 1})})
      .expect({Tensor::f32({3}, {ln2, ln4, ln4 - ln3})}, kTranscendental);
  // Large logits do not overflow, and a confident row keeps its small loss.
  add({Tensor::f32({2, 2}, {1000, 0, 1000, 0}), Tensor::i64({2}, {1, 0})})
      .expect({Tensor::f32({2}, {1000, 0})}, kRounding);
  add({Tensor::f32({1, 2}, {-INFINITY, 3}), Tensor::i32({1}, {0})}).expect({Tensor::f32({1}, {INFINITY})}, kExact);
  add({Tensor::f32({1, 2}, {NAN, 3}), Tensor::i32({1}, {1})}).expect({Tensor::f32({1}, {NAN})}, kExact);
  for (const DType d : {DType::F32, DType::F64})
    add({random({9, 7}, d), integers({9}, 0, 6)}).check([](const Tensors& in, const Tensors& out) {
      const Tensor p = run(ops::softmax, {in[0].cast(DType::F64)})[0];
      for (int64_t n = 0; n < 9; ++n)
        EXPECT_NEAR(out[0].at(n), -std::log(p.at(n * 7 + static_cast<int64_t>(in[1].at(n)))), 1e-6);
    });
  for (const DType d : {DType::F16, DType::BF16}) add({random({4, 5}, d), integers({4}, 0, 4)});
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const int64_t classes : {1, 16, 33, 2049, 9000})
      add({random({classes < 99 ? 301 : 3, classes}, -9, 9, d), integers({classes < 99 ? 301 : 3}, 0, classes - 1)});
  add({Tensor(DType::F32, {0, 3}), Tensor(DType::I32, {0})}).expect({Tensor(DType::F32, {0})});
  add_error({random({2, 3}), Tensor::i32({2}, {0, 3})}, {}, "Label (3) is out of range for the classes (3)");
  add_error({random({2, 3}), Tensor::i32({2}, {0, -1})}, {}, "Label (-1) is out of range");
  add_error({random({2, 0}), Tensor::i32({2}, {0, 0})}, {}, "Label (0) is out of range for the classes (0)");
  add_error({random({2, 3}), Tensor::i32({3}, {0, 0, 0})}, {}, "Labels shape ([3]) is not [2]");
  add_error({random({2, 3}), random({2})}, {}, "Labels dtype (f32) is not i32 or i64");
  add_error({random({2, 3, 4}), Tensor::i32({2}, {0, 0})}, {}, "Logits rank (3) is not 2");
  add_error({random({2, 3}, DType::I32), Tensor::i32({2}, {0, 0})}, {}, "Logits dtype (i32) is not a float type");
}

OP_CASES(softmax_cross_entropy_backward) {
  add({Tensor::f32({1, 2}, {0, std::log(3.0f)}), Tensor::i32({1}, {1}), Tensor::f32({1}, {2})})
      .expect({Tensor::f32({1, 2}, {0.5, -0.5})}, kTranscendental);
  for (const int64_t classes : {1, 2, 5})
    add({random({4, classes}, DType::F64), integers({4}, 0, classes - 1), random({4}, DType::F64)})
        .check([](const Tensors& in, const Tensors& out) {
          EXPECT_TRUE(matches_finite_differences(
              [&](const Tensor& x) {
                return run(ops::softmax_cross_entropy_with_logits, {x, in[1]})[0];
              },
              in[0], in[2], out[0], 1e-7));
        });
  for (const DType d : {DType::F16, DType::BF16}) add({random({4, 5}, d), integers({4}, 0, 4), random({4}, d)});
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const int64_t classes : {1, 16, 33, 2049}) {
      const int64_t rows = classes < 99 ? 301 : 3;
      add({random({rows, classes}, -9, 9, d), integers({rows}, 0, classes - 1, DType::I64), random({rows}, d)});
    }
  add({Tensor::f32({3, 2}, {NAN, 1, INFINITY, 1, -INFINITY, 1}), Tensor::i32({3}, {1, 1, 1}), random({3})});
  add({Tensor(DType::F32, {0, 3}), Tensor(DType::I32, {0}), Tensor(DType::F32, {0})})
      .expect({Tensor(DType::F32, {0, 3})});
  add_error({random({2, 3}), Tensor::i32({2}, {0, 3}), random({2})}, {}, "Label (3) is out of range");
  add_error({random({2, 3}), Tensor::i32({2}, {0, 0}), random({3})}, {}, "Loss gradient shape ([3]) is not [2]");
  add_error({random({2, 3}), Tensor::i32({2}, {0, 0}), random({2}, DType::F16)}, {},
            "Operand dtypes (f32, f16) differ");
}

}  // namespace rlx::test
