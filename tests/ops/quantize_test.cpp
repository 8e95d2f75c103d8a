#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

static Tensor i8(std::vector<int64_t> sizes, std::vector<int8_t> values) {
  return Tensor::of<int8_t>(DType::I8, std::move(sizes), values);
}

OP_CASES(quantize) {
  // Ties go to even, the range saturates, NaN becomes the zero point.
  add({Tensor::f32({8}, {0.5, 1.5, 2.5, -0.5, 1000, -1000, INFINITY, NAN})}, {.scales = {1}, .zero_points = {3}})
      .expect({i8({8}, {3, 5, 5, 3, 127, -128, 127, 3})}, kExact);
  add({Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {.axis = 1, .scales = {1, 2, 4}, .zero_points = {0, 1, -1}})
      .expect({i8({2, 3}, {1, 2, 0, 4, 3, 1})}, kExact);  // 3/4 rounds to 1, 5/2 to 2, 6/4 to 2
  add({Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {.axis = -2, .scales = {1, 0.5}})
      .expect({i8({2, 3}, {1, 2, 3, 8, 10, 12})}, kExact);
  add({random({0, 3})}, {.scales = {1}}).expect({Tensor(DType::I8, {0, 3})});
  // Quantising what was dequantised gives the codes back.
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    const ops::QuantizeAttrs attrs{.axis = 0, .scales = {0.5, 0.25, 4}, .zero_points = {-7}};
    const Tensor q = integers({3, 5}, -128, 127, DType::I8);
    add({run(ops::dequantize, {q}, attrs)[0].cast(dtype)}, attrs).expect({q}, kExact);
  }
  // Runs and rows beyond a vector and beyond a buffer; quotients next to ties.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    add({random({3, 5001}, -300, 300, dtype)}, {.scales = {0.7f}, .zero_points = {-3}});
    add({random({7, 83}, -300, 300, dtype)}, {.axis = 0, .scales = {1, 2, 3, 0.1f, 7, 5, 9}, .zero_points = {2}});
    add({random({41, 2, 7}, -300, 300, dtype)},
        {.axis = 2, .scales = {1, 2, 3, 0.1f, 7, 5, 9}, .zero_points = {0, 1, 2, -3, 4, -5, 6}});
    add({random({41, 2, 7}, -300, 300, dtype)}, {.axis = 2, .scales = {3}, .zero_points = {0, 1, 2, -3, 4, -5, 6}});
  }
  Tensor ties(DType::F32, {2000});
  for (size_t i = 0; i < 2000; ++i)
    ties.mutable_values<float>()[i] =
        (static_cast<float>(i % 200) - 100.5f) * 0.1f * (1 + 0x1p-23f * static_cast<float>(i % 3));
  add({ties}, {.scales = {0.1f}});
  add_error({random({2, 3})}, {.axis = 1, .scales = {1, 2}}, "Number of scales (2) is not 1 or the channels (3)");
  add_error({random({2, 3})}, {.scales = {}}, "Number of scales (0)");
  add_error({random({2, 3})}, {.scales = {1, 2}}, "Number of scales (2) is not 1 or the channels (1)");
  add_error({random({2, 3})}, {.axis = 1, .scales = {1}, .zero_points = {1, 2}}, "Number of zero points (2)");
  add_error({random({2, 3})}, {.scales = {0}}, "Scale (0) is not positive");
  add_error({random({2, 3})}, {.scales = {1}, .zero_points = {int64_t{1} << 40}}, "does not fit 32 bits");
  add_error({random({2, 3})}, {.axis = 2, .scales = {1}}, "Axis (2) is out of range");
  add_error({integers({2}, 0, 1)}, {.scales = {1}}, "not a float type");
}

OP_CASES(dequantize) {
  add({i8({4}, {-128, 127, 0, 3})}, {.scales = {0.5}, .zero_points = {3}})
      .expect({Tensor::f32({4}, {-65.5, 62, -1.5, 0})}, kExact);
  add({i8({2, 2}, {1, 2, 3, 4})}, {.axis = 1, .scales = {1, 10}, .zero_points = {0, 1}})
      .expect({Tensor::f32({2, 2}, {1, 10, 3, 30})}, kExact);
  add({i8({2, 2}, {1, 2, 3, 4})}, {.axis = 0, .scales = {1, 10}}).expect({Tensor::f32({2, 2}, {1, 2, 30, 40})}, kExact);
  add({integers({5, 1003}, -128, 127, DType::I8)}, {.scales = {0.3f}, .zero_points = {int64_t{1} << 30}});
  add({integers({3, 5, 33}, -128, 127, DType::I8)}, {.axis = 1, .scales = {1, 0.2f, 3, 4, 5}, .zero_points = {9}});
  add({integers({90, 5}, -128, 127, DType::I8)},
      {.axis = 1, .scales = {1, 0.2f, 3, 4, 5}, .zero_points = {9, 1, 2, 3, 4}});
  add_error({random({2})}, {.scales = {1}}, "Operand dtype (f32) is not i8");
}

OP_CASES(q_matmul) {
  // [1 2; 3 4] with zero point 1 times [5; 6] with zero point 2, plus 10: 14 and 28, times 0.25 = 3.5 and 7.
  add({i8({2, 2}, {1, 2, 3, 4}), i8({2, 1}, {5, 6}), Tensor::i32({1}, {10})},
      {.x_zp = 1, .w_zp = 2, .out_zp = -1, .mult = 0.25})
      .expect({i8({2, 1}, {3, 6})}, kExact);  // 3.5 ties to 4
  // 2^18 products of 128 * 128 are 2^32, more than 32 bits hold.
  add({integers({1, 1 << 18}, -128, -128, DType::I8), integers({1 << 18, 1}, -128, -128, DType::I8),
       Tensor::i32({1}, {0})},
      {.mult = 0x1p-26f})
      .expect({i8({1, 1}, {64})}, kExact);
  add({i8({2, 0}, {}), i8({0, 3}, {}), Tensor::i32({3}, {1, 200, -200})})
      .expect({i8({2, 3}, {1, 127, -128, 1, 127, -128})});
  // Without clamping in sight, the same as the matmul of the dequantised operands.
  add({integers({5, 7}, -20, 20, DType::I8), integers({7, 3}, -20, 20, DType::I8), integers({3}, -50, 50)},
      {.x_zp = -3, .w_zp = 5, .out_zp = 4, .mult = 0.01f})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 5; ++i)
          for (int64_t j = 0; j < 3; ++j) {
            double sum = in[2].at(j);
            for (int64_t c = 6; c >= 0; --c) sum += (in[0].at(i * 7 + c) + 3) * (in[1].at(c * 3 + j) - 5);
            EXPECT_NEAR(out[0].at(i * 3 + j), std::max(-128.0, std::min(127.0, sum * 0.01 + 4)), 0.5001);
          }
      });
  // Rows and columns around the blocks of the fast kernels, and a K beyond what 32 bits can sum.
  for (const auto& [m, k, n] :
       {std::tuple{1, 64, 33}, std::tuple{21, 67, 16}, std::tuple{70, 130, 50}, std::tuple{5, 66001, 3}})
    add({integers({m, k}, -128, 127, DType::I8), integers({k, n}, -128, 127, DType::I8), integers({n}, -9999, 9999)},
        {.x_zp = 127, .w_zp = -128, .out_zp = 7, .mult = 0.0007f / static_cast<float>(k)});
  const Tensor x = i8({1, 2}, {1, 2}), w = i8({2, 1}, {1, 2}), b = Tensor::i32({1}, {0});
  add_error({random({1, 2}), w, b}, {}, "Operand x dtype (f32) is not i8");
  add_error({x, random({2, 1}), b}, {}, "Weight dtype (f32) is not i8");
  add_error({x, w, random({1})}, {}, "Bias dtype (f32) is not i32");
  add_error({i8({2}, {1, 2}), w, b}, {}, "Operand x rank (1) is not 2");
  add_error({i8({1, 1}, {1}), w, b}, {}, "Contraction sizes of x and weight (1 and 2) differ");
  add_error({x, w, Tensor::i32({2}, {0, 0})}, {}, "Bias shape ([2]) is not [1]");
  add_error({x, w, b}, {.x_zp = 128}, "Zero point (128) is not in [-128, 127]");
  add_error({x, w, b}, {.mult = INFINITY}, "mult");
}

OP_CASES(q_conv2d) {
  // A 2 x 2 window of ones over 1..9: sums of four.
  add({i8({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), i8({1, 1, 2, 2}, {1, 1, 1, 1}), Tensor::i32({1}, {0})},
      {.kernel_size = {2, 2}})
      .expect({i8({1, 1, 2, 2}, {12, 16, 24, 28})}, kExact);
  // Padding counts as x_zp: only the real pixel, 5 - 1 = 4, contributes.
  add({i8({1, 1, 1, 1}, {5}), i8({1, 1, 3, 3}, {1, 1, 1, 1, 2, 1, 1, 1, 1}), Tensor::i32({1}, {1})},
      {.kernel_size = {3, 3}, .padding = {1, 1}, .x_zp = 1})
      .expect({i8({1, 1, 1, 1}, {9})}, kExact);
  // Every attribute, against a sum over input pixels instead of windows.
  const ops::QConv2dAttrs attrs{.kernel_size = {3, 2},
                                .stride = {2, 1},
                                .padding = {1, 2},
                                .dilation = {1, 2},
                                .groups = 2,
                                .x_zp = 3,
                                .w_zp = -2,
                                .out_zp = 5,
                                .mult = 0.02f};
  add({integers({2, 4, 7, 5}, -20, 20, DType::I8), integers({6, 2, 3, 2}, -20, 20, DType::I8), integers({6}, -99, 99)},
      attrs)
      .check([](const Tensors& in, const Tensors& out) {
        ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 6, 4, 7}));
        std::vector<double> sums(2 * 6 * 4 * 7);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] = in[2].at(static_cast<int64_t>(i) / 28 % 6);
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t ci = 0; ci < 4; ++ci)
            for (int64_t h = 0; h < 7; ++h)
              for (int64_t w = 0; w < 5; ++w)
                for (int64_t co = ci / 2 * 3; co < ci / 2 * 3 + 3; ++co)
                  for (int64_t i = 0; i < 3; ++i)
                    for (int64_t j = 0; j < 2; ++j) {
                      const int64_t oh = h + 1 - i, ow = w + 2 - 2 * j;
                      if (oh % 2 != 0 || oh < 0 || oh / 2 >= 4 || ow < 0 || ow >= 7) continue;
                      sums[static_cast<size_t>(((b * 6 + co) * 4 + oh / 2) * 7 + ow)] +=
                          (in[0].at(((b * 4 + ci) * 7 + h) * 5 + w) - 3) *
                          (in[1].at(((co * 2 + ci % 2) * 3 + i) * 2 + j) + 2);
                    }
        for (size_t i = 0; i < sums.size(); ++i)
          EXPECT_NEAR(out[0].at(static_cast<int64_t>(i)), std::max(-128.0, std::min(127.0, sums[i] * 0.02 + 5)),
                      0.5001);
      });
  // Padding at one end only is the other end of a result with padding at both.
  add({integers({1, 2, 5, 6}, -20, 20, DType::I8), integers({3, 2, 3, 2}, -20, 20, DType::I8), integers({3}, -99, 99)},
      {.kernel_size = {3, 2}, .padding = {0, 1, 2, 0}, .x_zp = 3, .mult = 0.02f})
      .check([](const Tensors& in, const Tensors& out) {
        const Tensor both =
            run(ops::q_conv2d, in, {.kernel_size = {3, 2}, .padding = {2, 1}, .x_zp = 3, .mult = 0.02f})[0];
        ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{1, 3, 5, 6}));
        ASSERT_EQ(both.sizes(), (std::vector<int64_t>{1, 3, 7, 7}));
        for (int64_t c = 0; c < 3; ++c)
          for (int64_t y = 0; y < 5; ++y)
            for (int64_t x = 0; x < 6; ++x) EXPECT_EQ(out[0].at((c * 5 + y) * 6 + x), both.at((c * 7 + y + 2) * 7 + x));
      });
  add({integers({2, 6, 13, 11}, -128, 127, DType::I8), integers({34, 6, 3, 3}, -128, 127, DType::I8),
       integers({34}, -999, 999)},
      {.kernel_size = {3, 3}, .padding = {1, 1}, .x_zp = -128, .w_zp = 3, .out_zp = 5, .mult = 0.0003f});
  add({integers({1, 36, 9, 40}, -128, 127, DType::I8), integers({36, 1, 5, 1}, -128, 127, DType::I8),
       integers({36}, -999, 999)},
      {.kernel_size = {5, 1}, .stride = {1, 3}, .padding = {2, 0}, .dilation = {2, 1}, .groups = 36, .mult = 0.003f});
  const Tensor x = integers({1, 2, 3, 3}, -9, 9, DType::I8), w = integers({2, 2, 2, 2}, -9, 9, DType::I8);
  const Tensor b = Tensor::i32({2}, {0, 0});
  add_error({x, w, b}, {.kernel_size = {2}}, "kernel_size ([2]) does not have 2 entries");
  add_error({x, w, b}, {.kernel_size = {2, 3}}, "does not end in kernel_size ([2, 3])");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .groups = 2}, "Input channels per group of x and w (1 and 2) differ");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .groups = 0}, "groups (0) is less than 1");
  add_error({x, integers({3, 1, 2, 2}, 0, 1, DType::I8), Tensor::i32({3}, {0, 0, 0})},
            {.kernel_size = {2, 2}, .groups = 2}, "groups (2) does not divide the output channels (3)");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .dilation = {3, 1}}, "Window (4) is larger than the padded input (3)");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .stride = {0}}, "stride ([0]) has an entry below 1");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .padding = {0, 0, 0}},
            "padding ([0, 0, 0]) has neither 2 entries nor 4");
  add_error({x, w, b}, {.kernel_size = {2, 2}, .w_zp = -129}, "Zero point (-129)");
}

}  // namespace rlx::test
