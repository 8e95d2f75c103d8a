#include "support/op_cases.h"

namespace rlx::test {

// Rows below, at and beyond a vector and a group of rows.
template <class Builder>
static void of_many_rows(Builder& b, bool has_bias, int params) {
  for (const int64_t cols : {1, 16, 33, 2049})
    for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
      const int64_t rows = cols < 200 ? 301 : 3;
      Tensors in{b.random({rows, cols}, d), b.random({rows, cols}, d)};
      for (int i = 0; i < params; ++i) in.push_back(b.random({cols}, d));
      b.add(in, {.has_bias = has_bias});
    }
}

// Each is, bit for bit, what the ops it stands for give one after the other.
OP_CASES(fused_residual_ln) {
  add({Tensor::f32({1, 2}, {-2, 0}), Tensor::f32({1, 2}, {1, 1}), Tensor::f32({2}, {2, 3}), Tensor::f32({2}, {0, 1})},
      {.eps = 0})
      .expect({Tensor::f32({1, 2}, {-2, 4}), Tensor::f32({1, 2}, {-1, 1})}, kRounding);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    add({random({2, 3, 5}, d), random({2, 3, 5}, d), random({5}, d), random({5}, d)}, {.eps = 0.01f})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor sum = run(ops::add, {in[0], in[1]})[0];
          EXPECT_EQ(out[1], sum);
          EXPECT_EQ(out[0], run(ops::layer_norm, {sum, in[2], in[3]}, {.eps = 0.01f})[0]);
        });
    add({random({2, 3, 5}, d), random({2, 3, 5}, d), random({5}, d), random({5}, d), random({5}, d)},
        {.has_bias = true, .eps = 0.01f})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor sum = run(ops::add, {run(ops::add, {in[0], in[1]})[0], in[2]})[0];
          EXPECT_EQ(out[1], sum);
          EXPECT_EQ(out[0], run(ops::layer_norm, {sum, in[3], in[4]}, {.eps = 0.01f})[0]);
        });
  }
  add({random({0, 5}), random({0, 5}), random({5}), random({5})})
      .expect({Tensor(DType::F32, {0, 5}), Tensor(DType::F32, {0, 5})});
  of_many_rows(*this, false, 2);
  of_many_rows(*this, true, 3);
  add_error({random({2, 5}), random({2, 5}), random({5}), random({5})}, {.has_bias = true},
            "Number of operands (4) is not 5 where has_bias is true");
  add_error({random({2, 5}), random({5}), random({5}), random({5})}, {}, "Residual shape ([5]) is not [2, 5]");
  add_error({random({2, 5}), random({2, 5}), random({4}), random({5})}, {}, "Gamma shape ([4]) is not [5]");
  add_error({random({2, 5}), random({2, 5}), random({5}), random({4})}, {}, "Beta shape ([4]) is not [5]");
  add_error({random({2, 5}), random({2, 5}), random({4}), random({5}), random({5})}, {.has_bias = true},
            "Bias shape ([4]) is not [5]");
  add_error({random({2, 5}), random({2, 5}, DType::F16), random({5}), random({5})}, {},
            "Operand dtypes (f32, f16) differ");
  add_error({random({2, 5}), random({2, 5}), random({5}), random({5})}, {.eps = -1}, "Eps (-1) is negative");
}

OP_CASES(fused_residual_rms_norm) {
  add({Tensor::f32({1, 2}, {2, 2}), Tensor::f32({1, 2}, {1, 2}), Tensor::f32({2}, {1, 2})}, {.eps = 0})
      .expect({Tensor::f32({1, 2}, {0.848528137f, 2.262741700f}), Tensor::f32({1, 2}, {3, 4})}, kRounding);
  for (const bool has_bias : {false, true})
    for (const bool has_beta : {false, true})
      for (const DType d : {DType::F32, DType::F16}) {
        Tensors in{random({3, 5}, d), random({3, 5}, d)};
        for (int i = 0; i < 1 + has_bias + has_beta; ++i) in.push_back(random({5}, d));
        add(in, {.has_bias = has_bias, .eps = 0.01f}).check([=](const Tensors& x, const Tensors& out) {
          Tensor sum = run(ops::add, {x[0], x[1]})[0];
          if (has_bias) sum = run(ops::add, {sum, x[2]})[0];
          Tensors norm{sum};
          for (size_t i = has_bias ? 3 : 2; i < x.size(); ++i) norm.push_back(x[i]);
          EXPECT_EQ(norm.size(), has_beta ? 3u : 2u);
          EXPECT_EQ(out[1], sum);
          EXPECT_EQ(out[0], run(ops::rms_norm, norm, {.eps = 0.01f})[0]);
        });
      }
  of_many_rows(*this, false, 1);
  of_many_rows(*this, true, 3);
  add_error({random({2, 5}), random({2, 5}), random({5}), random({5}), random({5})}, {},
            "Number of operands (5) is not 3 or 4 where has_bias is false");
  add_error({random({2, 5}), random({2, 5}), random({5})}, {.has_bias = true}, "Number of operands (3) is not 4 or 5");
  add_error({random({2, 5}), random({2, 5}), random({4})}, {}, "Gamma shape ([4]) is not [5]");
}

}  // namespace rlx::test
