#include "fixture_file.h"
#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(col2im) {
  // Windows of 2 in a row of 3 overlap in the middle.
  add({Tensor::f32({1, 2, 2}, {1, 2, 10, 20})}, {.image_size = {3}, .kernel_size = {2}})
      .expect({Tensor::f32({1, 1, 3}, {1, 12, 20})}, kExact);
  add({Tensor::i32({1, 2, 2}, {1, 2, 10, 20})},
      {.image_size = {2}, .kernel_size = {2}, .stride = {2}, .before = {1}, .after = {1}})
      .expect({Tensor::i32({1, 1, 2}, {10, 2})}, kExact);
  const FixtureFile file("onnx_sample.npz");
  for (int i = 0; file.has(str("col2im", i, "_y")); ++i) {
    const std::vector<int64_t> a = file.ints(str("col2im", i, "_a"));
    const size_t n = a.size() / 6;
    const auto list = [&](size_t k) {
      return std::vector<int64_t>(a.begin() + static_cast<int64_t>(k * n), a.begin() + static_cast<int64_t>(k * n + n));
    };
    const std::vector<int64_t> image = list(0);
    add({file[str("col2im", i, "_0")]}, {.image_size = {image.begin(), image.end()},
                                         .kernel_size = list(1),
                                         .stride = list(2),
                                         .dilation = list(3),
                                         .before = list(4),
                                         .after = list(5)})
        .expect({file[str("col2im", i, "_y")]}, kAccumulation);
  }
  // It adds up what im2col takes apart: every element as often as windows hold it.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::U8})
    add({integers({2, 3 * 4, 9}, 1, 1, d)}, {.image_size = {4, 4}, .kernel_size = {2, 2}})
        .check([](const Tensors&, const Tensors& out) {
          ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, 4, 4}));
          for (int64_t i = 0; i < out[0].num_elements(); ++i) {
            const int64_t row = i / 4 % 4, col = i % 4;
            EXPECT_EQ(out[0].at(i), (row == 0 || row == 3 ? 1 : 2) * (col == 0 || col == 3 ? 1 : 2));
          }
        });
  add({Tensor(DType::F32, {0, 4, 9})}, {.image_size = {4, 4}, .kernel_size = {2, 2}})
      .expect({Tensor(DType::F32, {0, 1, 4, 4})}, kExact);
  const Tensor x = random({1, 2, 2});
  add_error({x}, {.image_size = {4}, .kernel_size = {2}},
            "Columns (2) of the operand are not as many as the windows (3)");
  add_error({x}, {.image_size = {4}, .kernel_size = {3}}, "are not a multiple of the window's elements (3)");
  add_error({x}, {.image_size = {1}, .kernel_size = {2}}, "A window of (2) elements is larger than the image (1)");
  add_error({x}, {.image_size = {3, 3}, .kernel_size = {2}}, "do not have as many entries");
  add_error({x}, {.image_size = {3}, .kernel_size = {2}, .stride = {0}}, "stride ([0]) has an entry below 1");
  add_error({random({1, 2, 2}, DType::Bool)}, {.image_size = {3}, .kernel_size = {2}}, "is not a float or integer");
}

OP_CASES(deform_conv) {
  const FixtureFile file("onnx_sample.npz");
  for (int i = 0; file.has(str("deform", i, "_y")); ++i) {
    const std::string name = str("deform", i, "_");
    const std::vector<int64_t> a = file.ints(name + "a");
    add({file[name + "0"], file[name + "1"], file[name + "2"], file[name + "3"], file[name + "4"]},
        {.stride = {a[2], a[3]},
         .dilation = {a[4], a[5]},
         .before = {a[6], a[7]},
         .after = {a[8], a[9]},
         .groups = a[0],
         .offset_groups = a[1],
         .bias = true,
         .mask = true})
        .expect({file[name + "y"]}, {.rel = 1e-3, .abs = 1e-4});
  }
  // Without offsets it is a convolution.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64})
    add({random({2, 4, 6, 5}, d), random({6, 2, 3, 2}, d), Tensor(d, {2, 2 * 6 * 2, 3, 6})},
        {.stride = {2, 1}, .before = {1, 1}, .after = {1, 1}, .groups = 2, .offset_groups = 2})
        .check([d](const Tensors& in, const Tensors& out) {
          const Tensor plain = run(ops::conv, {in[0], in[1]},
                                   {.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .groups = 2})[0];
          EXPECT_TRUE(near(out[0], plain, d == DType::BF16 ? kBFloat : d == DType::F16 ? kHalf : kAccumulation));
        });
  const Tensor x = random({1, 2, 4, 4}), w = random({3, 2, 2, 2}), offset = random({1, 8, 3, 3});
  // The mask alone; a bias alone.
  add({x, w, offset, random({1, 4, 3, 3})}, {.mask = true});
  add({x, w, offset, Tensor::f32({3}, {1, 2, 3})}, {.bias = true}).check([](const Tensors& in, const Tensors& out) {
    const Tensor plain = run(ops::deform_conv, {in[0], in[1], in[2]})[0];
    for (int64_t i = 0; i < 27; ++i) EXPECT_NEAR(out[0].at(i), plain.at(i) + static_cast<double>(i / 9 + 1), 1e-5);
  });
  {
    Tensor far = offset.clone();
    far.mutable_values<float>()[0] = NAN;
    far.mutable_values<float>()[1] = 1e30f;
    add({x, w, far});
  }
  add_error({x, w, offset}, {.bias = true}, "Operands (3) are not the 4 that bias and mask ask for");
  add_error({x, w, offset}, {.stride = {2, 2}}, "Offset shape ([1, 8, 3, 3]) is not [1, 8, 2, 2]");
  add_error({x, w, offset}, {.offset_groups = 3}, "offset_groups (3) does not divide the input channels (2)");
  add_error({x, random({3, 1, 2, 2}), offset}, {}, "Input channels per group of x and w (2 and 1) differ");
  add_error({x, w, offset, random({1, 3, 3, 3})}, {.mask = true}, "Mask shape ([1, 3, 3, 3]) is not [1, 4, 3, 3]");
  add_error({x, w, offset, random({2})}, {.bias = true}, "Bias shape ([2]) is not [3]");
  add_error({x, random({3, 2, 5, 2}), offset}, {}, "A window of (5) elements is larger than the image (4)");
}

}  // namespace rlx::test
