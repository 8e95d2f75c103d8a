#include "support/op_cases.h"

namespace rlx::test {

using enum ops::ActivationKind;

// x·w + bias in double, x flattened to rows.
static std::vector<double> linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const int64_t k = w.sizes()[0], n = w.sizes()[1], rows = x.num_elements() / k;
  std::vector<double> out(static_cast<size_t>(rows * n));
  for (int64_t i = 0; i < rows * n; ++i) {
    double sum = bias.at(i % n);
    for (int64_t c = 0; c < k; ++c) sum += x.at(i / n * k + c) * w.at(c * n + i % n);
    out[static_cast<size_t>(i)] = sum;
  }
  return out;
}

OP_CASES(fused_matmul_bias_act) {
  add({Tensor::f32({1, 2}, {1, 2}), Tensor::f32({2, 2}, {1, -1, 1, -1}), Tensor::f32({2}, {0.5, 1})},
      {.activation = kRelu})
      .expect({Tensor::f32({1, 2}, {3.5, 0})}, kExact);
  for (const std::vector<int64_t>& x : {std::vector<int64_t>{5, 7}, {2, 3, 7}, {2, 1, 2, 7}})
    add({random(x), random({7, 4}), random({4})}).check([](const Tensors& in, const Tensors& out) {
      std::vector<int64_t> sizes = in[0].sizes();
      sizes.back() = 4;
      EXPECT_TRUE(near(out[0], Tensor::from_doubles(DType::F32, sizes, linear(in[0], in[1], in[2])), kAccumulation));
    });
  // Every kind is its own op on the sum; gelu the exact form.
  for (int32_t kind = 1; kind <= 17; ++kind) {
    const auto activation = static_cast<ops::ActivationKind>(kind);
    add({random({3, 5}, 0.1, 1, DType::F64), random({5, 2}, 0.1, 1, DType::F64), random({2}, 0.1, 1, DType::F64)},
        {.activation = activation})
        .check([activation](const Tensors& in, const Tensors& out) {
          const Tensor sum = Tensor::from_doubles(DType::F64, {3, 2}, linear(in[0], in[1], in[2]));
          EXPECT_TRUE(near(out[0], run(ops::activation_op(activation), {sum})[0], {.rel = 1e-12, .abs = 1e-12}));
        });
  }
  // Every epilogue in f32, over more than a tile, and few rows of a long k.
  for (int32_t kind = 0; kind <= 17; ++kind) {
    const auto activation = static_cast<ops::ActivationKind>(kind);
    add({random({3, 5}, 0.1, 1), random({5, 6}, 0.1, 1), random({6}, 0.1, 1)}, {.activation = activation});
  }
  for (const ops::ActivationKind activation : {kNone, kGelu})
    for (const auto& [m, k, n] : {std::tuple{2, 700, 20}, {20, 30, 70}, {67, 40, 68}, {40, 600, 9}})
      add({random({m, k}), random({k, n}), random({n})}, {.activation = activation});
  add({random({1, 2}), Tensor::f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), Tensor::f32({4}, {NAN, INFINITY, -INFINITY, 0})},
      {.activation = kRelu});
  // Bit for bit the ops one by one, in narrow types too.
  for (const DType d : {DType::F16, DType::BF16})
    add({random({4, 9}, d), random({9, 3}, d), random({3}, d)}, {.activation = kSilu})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor sum = run(ops::add, {run(ops::matmul, {in[0], in[1]})[0], in[2]})[0];
          EXPECT_EQ(out[0], run(ops::silu, {sum})[0]);
        });
  add({random({2, 0}), random({0, 3}), Tensor::f32({3}, {1, 2, 3})})
      .expect({Tensor::f32({2, 3}, {1, 2, 3, 1, 2, 3})}, kExact);
  add({Tensor::i32({1, 2}, {1, 2}), Tensor::i32({2, 1}, {3, -4}), Tensor::i32({1}, {1})}, {.activation = kRelu})
      .expect({Tensor::i32({1, 1}, {0})}, kExact);
  add_error({random({2, 3}), random({1, 3, 4}), random({4})}, {}, "Operand w rank (3) is not 2.");
  add_error({random({2, 3}), random({3, 4}), random({3})}, {}, "Operand bias shape ([3]) is not [4].");
  add_error({random({2, 3}), random({2, 4}), random({4})}, {}, "Contracted sizes (3 and 2) differ.");
  add_error({random({2, 3}), random({3, 4}), random({4}, DType::F16)}, {}, "Operand dtypes (f32, f16) differ");
  add_error({random({1, 1}, DType::I32), random({1, 1}, DType::I32), random({1}, DType::I32)}, {.activation = kGelu},
            "Op 'gelu' is not defined for i32.");
}

OP_CASES(fused_matmul_split) {
  add({Tensor::f32({1, 1}, {2}), Tensor::f32({1, 3}, {1, 2, 3}), Tensor::f32({3}, {10, 20, 30})}, {.widths = {1, 2}})
      .expect({Tensor::f32({1, 1}, {12}), Tensor::f32({1, 2}, {24, 36})}, kExact);
  for (const std::vector<Dim>& widths : {std::vector<Dim>{3, 3, 3}, {9}, {1, 0, 8}, {2, 7}})
    for (const DType d : {DType::F32, DType::F64})
      add({random({2, 3, 4}, d), random({4, 9}, d), random({9}, d)}, {.widths = widths})
          .check([widths](const Tensors& in, const Tensors& out) {
            const std::vector<double> all = linear(in[0], in[1], in[2]);
            ASSERT_EQ(out.size(), widths.size());
            int64_t start = 0;
            for (size_t p = 0; p < widths.size(); start += widths[p++].value()) {
              const int64_t width = widths[p].value();
              ASSERT_EQ(out[p].sizes(), (std::vector<int64_t>{2, 3, width}));
              for (int64_t i = 0; i < 6 * width; ++i)
                EXPECT_NEAR(out[p].at(i), all[static_cast<size_t>(i / width * 9 + start + i % width)], 1e-5);
            }
          });
  // Parts made of fours and others, more than four, with few rows and with many.
  for (const std::vector<Dim>& widths :
       {std::vector<Dim>{32, 16, 16}, {32, 15, 17}, {4, 8, 20, 32}, {64}, {10, 10, 10, 10, 24}, {0, 60, 4}})
    for (const int64_t rows : {6, 70})
      for (const DType d : {DType::F32, DType::F16, DType::BF16})
        if (d == DType::F32 || rows == 6)
          add({random({rows, 40}, d), random({40, 64}, d), random({64}, d)}, {.widths = widths});
  add_error({random({2, 3}), random({3, 4}), random({4})}, {}, "The list of widths is empty.");
  add_error({random({2, 3}), random({3, 4}), random({4})}, {.widths = {1, 2}},
            "Sum of the widths and columns of w (3 and 4) differ.");
  add_error({random({2, 3}), random({3, 4}), random({4})}, {.widths = {5, -1}}, "Width (-1) is negative.");
  add_error({random({2, 3}), random({3, 4}), random({3})}, {.widths = {4}}, "Operand bias shape ([3]) is not [4].");
}

}  // namespace rlx::test
