#include <array>

#include "support/op_cases.h"
#include "window_fixture.h"

namespace rlx::test {

namespace {

struct Geometry {
  std::vector<int64_t> kernel, stride, padding, dilation;
  int64_t groups = 1;
};
int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t missing) {
  return i < list.size() ? list[i] : missing;
}

int64_t end_padding(const Geometry& g, size_t i) {
  return entry(g.padding, g.padding.size() == 2 * g.kernel.size() ? g.kernel.size() + i : i, 0);
}

// Conv by an explicitly zero-padded copy of x, the taps as the outermost loop: another order and other bounds than the
// kernel's.
Tensor conv_by_padding(const Tensor& x, const Tensor& w, const Geometry& g) {
  const size_t rank = g.kernel.size(), lead = 3 - rank;
  std::array<int64_t, 3> in = {1, 1, 1}, k = {1, 1, 1}, s = {1, 1, 1}, p = {0, 0, 0}, d = {1, 1, 1}, big, out;
  for (size_t i = 0; i < rank; ++i) {
    in[lead + i] = x.sizes()[i + 2];
    k[lead + i] = g.kernel[i];
    s[lead + i] = entry(g.stride, i, 1);
    p[lead + i] = entry(g.padding, i, 0);
    d[lead + i] = entry(g.dilation, i, 1);
  }
  for (size_t i = 0; i < 3; ++i) {
    big[i] = in[i] + p[i] + (i < lead ? 0 : end_padding(g, i - lead));
    out[i] = 0;
    while (out[i] * s[i] + d[i] * (k[i] - 1) < big[i]) ++out[i];
  }
  const int64_t n = x.sizes()[0], cin = x.sizes()[1], cout = w.sizes()[0], per = cin / g.groups;
  std::vector<double> padded(static_cast<size_t>(n * cin * big[0] * big[1] * big[2]), 0.0);
  const auto at = [&](int64_t plane, int64_t z, int64_t y, int64_t v) {
    return static_cast<size_t>(((plane * big[0] + z) * big[1] + y) * big[2] + v);
  };
  int64_t i = 0;
  for (int64_t plane = 0; plane < n * cin; ++plane)
    for (int64_t z = 0; z < in[0]; ++z)
      for (int64_t y = 0; y < in[1]; ++y)
        for (int64_t v = 0; v < in[2]; ++v) padded[at(plane, z + p[0], y + p[1], v + p[2])] = x.at(i++);
  std::vector<int64_t> sizes = {n, cout};
  for (size_t a = lead; a < 3; ++a) sizes.push_back(out[a]);
  std::vector<double> result(static_cast<size_t>(product(sizes)), 0.0);
  for (int64_t kz = 0; kz < k[0]; ++kz)
    for (int64_t ky = 0; ky < k[1]; ++ky)
      for (int64_t kx = 0; kx < k[2]; ++kx)
        for (int64_t co = 0; co < cout; ++co)
          for (int64_t ci = 0; ci < per; ++ci) {
            const double weight = w.at((((co * per + ci) * k[0] + kz) * k[1] + ky) * k[2] + kx);
            const int64_t from = co / (cout / g.groups) * per + ci;
            for (int64_t b = 0; b < n; ++b)
              for (int64_t z = 0; z < out[0]; ++z)
                for (int64_t y = 0; y < out[1]; ++y)
                  for (int64_t v = 0; v < out[2]; ++v)
                    result[static_cast<size_t>((((b * cout + co) * out[0] + z) * out[1] + y) * out[2] + v)] +=
                        weight *
                        padded[at(b * cin + from, z * s[0] + kz * d[0], y * s[1] + ky * d[1], v * s[2] + kx * d[2])];
          }
  return Tensor::from_doubles(x.dtype(), sizes, result);
}

ops::ConvAttrs conv_attrs(const Geometry& g) { return {g.kernel, g.stride, g.padding, g.dilation, g.groups}; }

Tolerance tolerance_of(DType dtype) {
  return dtype == DType::F16 ? kHalf : dtype == DType::BF16 ? kBFloat : kAccumulation;
}

}  // namespace

OP_CASES(conv) {
  // By hand: a 1-D cross-correlation does not flip the kernel.
  add({Tensor::f32({1, 1, 4}, {1, 2, 3, 4}), Tensor::f32({1, 1, 2}, {1, 10})}, {.kernel_size = {2}})
      .expect({Tensor::f32({1, 1, 3}, {21, 32, 43})}, kExact);
  add({Tensor::f32({1, 1, 4}, {1, 2, 3, 4}), Tensor::f32({1, 1, 2}, {1, 10})},
      {.kernel_size = {2}, .stride = {3}, .padding = {2}, .dilation = {2}})
      .expect({Tensor::f32({1, 1, 2}, {10, 42})}, kExact);
  const auto judged = [&](std::vector<int64_t> x, std::vector<int64_t> w, const Geometry& g, DType dtype) {
    add({random(std::move(x), dtype), random(std::move(w), dtype)}, conv_attrs(g))
        .check([g, dtype](const Tensors& in, const Tensors& out) {
          EXPECT_TRUE(near(out[0], conv_by_padding(in[0], in[1], g), tolerance_of(dtype)));
        });
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    judged({2, 3, 7, 5}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 2}, {1, 2}}, dtype);
  judged({2, 4, 9}, {6, 2, 3}, {{3}, {2}, {1}, {1}, 2}, DType::F32);
  judged({1, 3, 11}, {3, 1, 4}, {{4}, {1}, {3}, {2}, 3}, DType::F32);                                  // depthwise
  judged({2, 2, 4, 5, 3}, {3, 2, 2, 3, 1}, {{2, 3, 1}, {1, 2, 1}, {1, 0, 0}, {2, 1, 1}}, DType::F32);  // 3-D
  judged({2, 4, 3, 4, 5}, {4, 1, 3, 2, 2}, {{3, 2, 2}, {}, {1, 1, 1}, {}, 4}, DType::F32);
  // One slice, and kernels that reach beyond it: depthwise, but not in two dimensions.
  judged({1, 4, 1, 8, 8}, {4, 1, 3, 3, 3}, {{3, 3, 3}, {}, {1, 1, 1}, {}, 4}, DType::F32);
  judged({2, 1, 1, 9, 9}, {6, 1, 3, 3, 3}, {{3, 3, 3}, {}, {1, 1, 1}}, DType::F32);
  judged({2, 3, 1, 5, 6}, {3, 1, 3, 1, 1}, {{3, 1, 1}, {}, {1, 0, 0}, {}, 3}, DType::F32);
  judged({1, 3, 1, 5, 6}, {3, 1, 1, 3, 3}, {{1, 3, 3}, {3}, {1, 1, 1}, {}, 3}, DType::F32);  // reads padding alone
  judged({1, 3, 1, 5, 6}, {6, 1, 1, 3, 3}, {{1, 3, 3}, {}, {0, 1, 1}, {}, 3}, DType::F32);
  judged({1, 5, 6, 6}, {7, 5, 1, 1}, {{1, 1}}, DType::F32);
  judged({2, 2, 5, 6}, {2, 2, 3, 3}, {{3, 3}, {2}, {1}}, DType::F32);        // short lists: the last axis has defaults
  judged({1, 1, 3, 3}, {1, 1, 3, 3}, {{3, 3}, {1, 1}, {4, 4}}, DType::F32);  // windows wholly in the padding are 0
  // Other paddings at the ends than at the beginnings.
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    judged({2, 3, 7, 5}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {0, 2, 3, 1}, {1, 2}}, dtype);
  judged({2, 3, 40}, {5, 3, 4}, {{4}, {1}, {3, 0}}, DType::F32);  // causal
  judged({1, 6, 40}, {6, 1, 4}, {{4}, {1}, {3, 0}, {}, 6}, DType::F32);
  judged({1, 2, 4, 5, 3}, {4, 1, 2, 3, 1}, {{2, 3, 1}, {1, 2, 1}, {1, 0, 0, 0, 3, 1}, {2, 1, 1}, 2}, DType::F32);
  judged({2, 5, 21, 37}, {5, 1, 3, 3}, {{3, 3}, {2, 2}, {0, 0, 1, 1}, {}, 5}, DType::F32);  // TensorFlow's "same"
  judged({2, 5, 21, 36}, {9, 5, 3, 3}, {{3, 3}, {2, 2}, {0, 0, 1, 1}}, DType::F32);
  judged({1, 4, 9, 9}, {6, 4, 1, 1}, {{1, 1}, {1, 1}, {0, 0, 1, 2}}, DType::F32);  // a pointwise kernel
  for (const WindowFixture& f : window_fixtures("conv"))
    add({f.x, f.w}, {f.kernel, f.stride, f.padding, f.dilation, f.more[0]}).expect({f.y}, kExact);
  // A bias per channel.
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const int64_t groups : {1, 4}) {
      const Geometry g = {{3, 2}, {2, 1}, {1, 2}, {}, groups};
      add({random({2, 4, 7, 5}, dtype), random({8, 4 / groups, 3, 2}, dtype), random({8}, dtype)}, conv_attrs(g))
          .check([g, dtype](const Tensors& in, const Tensors& out) {
            const Tensor plain = conv_by_padding(in[0].cast(DType::F64), in[1].cast(DType::F64), g);
            const int64_t plane = plain.sizes()[2] * plain.sizes()[3];
            std::vector<double> y = plain.to_doubles();
            for (size_t i = 0; i < y.size(); ++i) y[i] += in[2].at(static_cast<int64_t>(i) / plane % 8);
            EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, plain.sizes(), y), tolerance_of(dtype)));
          });
    }
  add_error({random({1, 1, 4}), random({2, 1, 3}), random({1})}, {.kernel_size = {3}}, "Bias shape ([1]) is not [2]");
  add_error({random({1, 1, 4}), random({2, 1, 3}), random({2}, DType::F64)}, {.kernel_size = {3}}, "differ; cast one");
  // Beyond one tile, panel, block of k or block of rows of a fast kernel; odd tails, every dtype. No judge: backends
  // are compared.
  const auto compared = [&](std::vector<int64_t> x, std::vector<int64_t> w, const Geometry& g, DType dtype) {
    add({random(std::move(x), dtype), random(std::move(w), dtype)}, conv_attrs(g));
  };
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    compared({2, 5, 13, 19}, {17, 5, 3, 3}, {{3, 3}, {1, 1}, {1, 1}}, dtype);
    compared({2, 6, 17, 11}, {10, 3, 3, 3}, {{3, 3}, {2, 2}, {1, 1}, {}, 2}, dtype);
    compared({1, 9, 12, 11}, {30, 9, 1, 1}, {{1, 1}}, dtype);
    compared({2, 7, 21, 35}, {7, 1, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 7}, dtype);
    compared({1, 6, 150}, {33, 6, 3}, {{3}, {2}, {1}}, dtype);
  }
  compared({1, 60, 6, 5}, {20, 60, 3, 3}, {{3, 3}, {1, 1}, {1, 1}}, DType::F32);  // several blocks of k
  compared({1, 3, 9, 9}, {230, 3, 3, 3}, {{3, 3}}, DType::F32);                   // several blocks of rows
  compared({1, 4, 40, 40}, {3, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}}, DType::F32);   // few rows: wide tiles
  compared({1, 4, 30, 31}, {1, 4, 5, 5}, {{5, 5}, {1, 1}, {2, 2}}, DType::F32);
  compared({1, 3, 40, 37}, {16, 3, 7, 7}, {{7, 7}, {2, 2}, {3, 3}}, DType::F32);  // ResNet's first
  compared({1, 3, 30, 31}, {5, 3, 3, 4}, {{3, 4}, {3, 4}, {0, 2}, {2, 1}}, DType::F32);
  compared({1, 8, 15, 15}, {12, 8, 1, 1}, {{1, 1}, {2, 2}}, DType::F32);
  compared({1, 8, 9, 9}, {12, 8, 1, 1}, {{1, 1}, {1, 1}, {1, 1}}, DType::F32);  // a pointwise kernel with padding
  compared({1, 3, 5, 12, 13}, {15, 3, 2, 3, 3}, {{2, 3, 3}, {1, 2, 1}, {1, 1, 1}}, DType::F32);
  compared({1, 3, 6, 12, 19}, {6, 1, 3, 3, 3}, {{3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {}, 3}, DType::F32);  // depthwise, x2
  compared({1, 4, 33, 70}, {4, 1, 3, 3}, {{3, 3}, {2, 2}, {1, 1}, {}, 4}, DType::F32);
  compared({1, 4, 23, 40}, {8, 1, 5, 5}, {{5, 5}, {1, 1}, {2, 2}, {}, 4}, DType::F32);
  compared({1, 4, 23, 40}, {4, 1, 5, 5}, {{5, 5}, {2, 2}, {2, 2}, {}, 4}, DType::BF16);
  compared({1, 3, 25, 90}, {3, 1, 3, 3}, {{3, 3}, {3, 3}, {2, 2}, {2, 2}, 3}, DType::F32);
  compared({2, 5, 200}, {5, 1, 4}, {{4}, {1}, {3}, {}, 5}, DType::F32);               // Mamba's causal conv1d
  compared({1, 3, 2, 3}, {3, 1, 3, 3}, {{3, 3}, {2, 2}, {9, 9}, {}, 3}, DType::F32);  // mostly padding
  // Tiles of a GPU's matrix product: whole blocks of channels, vectors along the planes, K in parts, large tiles.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    compared({2, 32, 7, 6}, {20, 32, 3, 3}, {{3, 3}, {1, 1}, {1, 1}}, dtype);
    compared({2, 48, 4, 6}, {24, 48, 1, 1}, {{1, 1}}, dtype);
    compared({1, 130, 4, 6}, {24, 130, 1, 1}, {{1, 1}}, dtype);
    compared({1, 40, 5, 9}, {70, 20, 1, 1}, {{1, 1}, {}, {}, {}, 2}, dtype);
    compared({1, 32, 9, 9}, {16, 32, 1, 1}, {{1, 1}, {2, 2}}, dtype);
    compared({1, 6, 20, 20}, {6, 3, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 2}, dtype);  // few channels
  }
  compared({1, 9, 184, 184}, {66, 9, 1, 1}, {{1, 1}}, DType::F32);
  compared({1, 2, 185, 183}, {67, 2, 3, 2}, {{3, 2}, {1, 1}, {1, 0}}, DType::F32);
  compared({1, 2, 185, 183}, {13, 2, 3, 2}, {{3, 2}, {1, 1}, {1, 0}}, DType::F32);
  compared({1, 2, 4200000}, {1, 2, 1}, {{1}}, DType::F32);                   // more windows than one grid's axis holds
  compared({1, 2, 3000}, {2, 1, 9}, {{9}, {1}, {40}, {10}, 2}, DType::F32);  // depthwise, wide dilation
  add({Tensor(DType::F32, {0, 2, 4}), random({3, 2, 2})}, {.kernel_size = {2}}).expect({Tensor(DType::F32, {0, 3, 3})});
  add({Tensor(DType::F32, {1, 0, 4}), Tensor(DType::F32, {3, 0, 2})}, {.kernel_size = {2}})
      .expect({Tensor(DType::F32, {1, 3, 3})}, kExact);  // no channels: zeros
  add_error({random({1, 1, 2}), random({1, 1, 3})}, {.kernel_size = {3}},
            "Window (3) is larger than the padded input (2) along spatial axis 0");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .dilation = {2}},
            "Window (5) is larger than the padded input (4)");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {}, "kernel_size ([]) does not have 1, 2 or 3 entries");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {2}}, "does not end in kernel_size ([2])");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .stride = {0}},
            "stride ([0]) has an entry below 1");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .padding = {-1}}, "padding ([-1])");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .padding = {0, 0, 0}},
            "padding ([0, 0, 0]) has neither 1 entries nor 2");
  add_error({random({1, 1, 4, 4}), random({1, 1, 3, 3})}, {.kernel_size = {3, 3}, .padding = {0, 0, 0}},
            "padding ([0, 0, 0]) has neither 2 entries nor 4");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .padding = {0, -2}}, "padding ([0, -2])");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {3}, .dilation = {1, 1}}, "more than 1 entries");
  add_error({random({1, 3, 4}), random({2, 1, 3})}, {.kernel_size = {3}, .groups = 2},
            "does not divide the input channels (3)");
  add_error({random({1, 4, 4}), random({3, 2, 3})}, {.kernel_size = {3}, .groups = 2},
            "does not divide the output channels (3)");
  add_error({random({1, 4, 4}), random({3, 4, 3})}, {.kernel_size = {3}, .groups = 0}, "groups (0) is less than 1");
  add_error({random({1, 4, 4}), random({3, 3, 3})}, {.kernel_size = {3}}, "(4 and 3) differ");
  add_error({random({1, 4, 4, 4}), random({3, 4, 3})}, {.kernel_size = {3}}, "Input rank (4)");
  add_error({random({1, 4, 4}), random({3, 4, 3, 3})}, {.kernel_size = {3}}, "Weight rank (4)");
  add_error({random({1, 1, 4}, DType::I32), random({1, 1, 3}, DType::I32)}, {.kernel_size = {3}}, "not a float type");
  add_error({random({1, 1, 4}), random({1, 1, 3}, DType::F16)}, {.kernel_size = {3}}, "differ; cast one");
}

OP_CASES(conv_transpose) {
  // By hand: stride 2 leaves gaps, overlapping kernels add up.
  add({Tensor::f32({1, 1, 1, 2}, {1, 2}), Tensor::f32({1, 1, 1, 3}, {1, 10, 100})},
      {.kernel_size = {1, 3}, .stride = {1, 2}})
      .expect({Tensor::f32({1, 1, 1, 5}, {1, 10, 102, 20, 200})}, kExact);
  // output_padding only enlarges: the last column is reached by nothing here.
  add({Tensor::f32({1, 1, 1, 2}, {1, 2}), Tensor::f32({1, 1, 1, 1}, {3})},
      {.kernel_size = {1, 1}, .stride = {1, 2}, .output_padding = {0, 1}})
      .expect({Tensor::f32({1, 1, 1, 4}, {3, 0, 6, 0})}, kExact);
  // Rows of no elements have results all the same; they have no address that one could count from (found by fuzzing).
  add({Tensor(DType::F32, {1, 1, 3, 0}), random({1, 2, 7, 61})}, {.kernel_size = {7, 61}, .stride = {3, 2}})
      .expect({Tensor(DType::F32, {1, 2, 13, 59})}, kExact);
  // It is the transpose of conv with the same weight, so conv is linear in x with this gradient.
  const auto adjoint = [&](std::vector<int64_t> x, std::vector<int64_t> w, const Geometry& g,
                           std::vector<int64_t> output_padding) {
    const Tensor input = random(std::move(x), DType::F64), weight = random(std::move(w), DType::F64);
    const Tensor dy = random(conv_by_padding(input, weight, g).sizes(), DType::F64);
    add({dy, weight}, {g.kernel, g.stride, g.padding, g.dilation, std::move(output_padding), g.groups})
        .check([g, input](const Tensors& in, const Tensors& out) {
          ASSERT_EQ(out[0].sizes(), input.sizes());
          EXPECT_TRUE(matches_finite_differences([&](const Tensor& at) { return conv_by_padding(at, in[1], g); }, input,
                                                 in[0], out[0]));
        });
  };
  adjoint({2, 3, 5, 6}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 0}, {1, 2}}, {});
  adjoint({1, 4, 6, 5}, {6, 2, 3, 2}, {{3, 2}, {2, 3}, {1, 0}, {1, 1}, 2}, {1, 0});
  adjoint({1, 2, 4, 4}, {2, 1, 1, 4}, {{1, 4}, {}, {0, 2}, {}, 2}, {});
  adjoint({1, 2, 5, 6}, {3, 2, 3, 2}, {{3, 2}, {2, 1}, {0, 1, 1, 2}, {1, 2}}, {1, 0});  // other paddings at the ends
  adjoint({2, 4, 11}, {6, 2, 3}, {{3}, {2}, {1, 2}, {2}, 2}, {1});
  adjoint({1, 2, 4, 5, 3}, {3, 2, 2, 3, 1}, {{2, 3, 1}, {2, 1, 2}, {0, 1, 0, 1, 0, 0}, {1, 2, 1}}, {1, 0, 0});
  // One slice, and kernels that reach beyond it.
  add({random({2, 4, 1, 4, 4}), random({4, 1, 3, 1, 1})}, {.kernel_size = {3, 1, 1}, .padding = {1, 0, 0}, .groups = 4})
      .check([](const Tensors& in, const Tensors& out) {  // the middle tap is all that it meets
        for (int64_t i = 0; i < 128; ++i) EXPECT_NEAR(out[0].at(i), in[0].at(i) * in[1].at(i / 16 % 4 * 3 + 1), 1e-6);
      });
  add({random({2, 4, 1, 4, 4}), random({4, 1, 3, 3, 3})},
      {.kernel_size = {3, 3, 3}, .padding = {1, 1, 1}, .groups = 4});
  for (const WindowFixture& f : window_fixtures("transpose")) {
    const std::vector<int64_t> extra(f.more.begin(), f.more.end() - 1);
    add({f.x, f.w}, {f.kernel, f.stride, f.padding, f.dilation, extra, f.more.back()}).expect({f.y}, kExact);
  }
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    add({random({2, 6, 9, 7}, dtype), random({6, 11, 4, 4}, dtype)},
        {.kernel_size = {4, 4}, .stride = {2, 2}, .padding = {1, 1}});
    add({random({1, 40, 6, 5}, dtype), random({40, 9, 3, 2}, dtype)},  // dilation and stride share a factor
        {.kernel_size = {3, 2},
         .stride = {4, 3},
         .padding = {1, 0},
         .dilation = {2, 3},
         .output_padding = {1, 1},
         .groups = 2});
    add({random({1, 3, 6, 5}, dtype), random({3, 2, 1, 2}, dtype)},  // a stride larger than the kernel: rows of zeros
        {.kernel_size = {1, 2}, .stride = {3, 3}, .groups = 3});
    add({random({1, 16, 12, 13}, dtype), random({16, 20, 3, 3}, dtype)}, {.kernel_size = {3, 3}, .padding = {1, 1}});
  }
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    add({random({2, 7, 90}, dtype), random({7, 10, 4}, dtype)}, {.kernel_size = {4}, .stride = {2}, .padding = {1, 2}});
    add({random({1, 8, 4, 9, 10}, dtype), random({8, 3, 3, 2, 3}, dtype)}, {.kernel_size = {3, 2, 3},
                                                                            .stride = {2, 2, 1},
                                                                            .padding = {1, 0, 2, 0, 1, 1},
                                                                            .dilation = {1, 2, 1},
                                                                            .output_padding = {1, 0, 0},
                                                                            .groups = 4});
  }
  add({random({1, 48, 6, 5}), random({48, 17, 4, 4})}, {.kernel_size = {4, 4}, .stride = {2, 2}, .padding = {1, 1}});
  add({random({2, 16, 5, 5}), random({16, 70, 3, 3})},  // phases of 1, 2 and 4 taps
      {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}});
  add({random({1, 80, 12}), random({80, 30, 16})}, {.kernel_size = {16}, .stride = {8}, .padding = {4}});
  for (const DType dtype : {DType::F16, DType::BF16})
    add({random({1, 2, 3, 3}, dtype), random({2, 1, 2, 2}, dtype)}, {.kernel_size = {2, 2}, .stride = {2, 2}})
        .check([dtype](const Tensors& in, const Tensors& out) {
          const Tensor wide = run(ops::conv_transpose, {in[0].cast(DType::F64), in[1].cast(DType::F64)},
                                  {.kernel_size = {2, 2}, .stride = {2, 2}})[0];
          EXPECT_TRUE(near(out[0].cast(DType::F64), wide, tolerance_of(dtype)));
        });
  // A bias per channel, also where no tap reaches.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64})
    add({random({1, 4, 6, 5}, dtype), random({4, 3, 1, 2}, dtype), random({6}, dtype)},
        {.kernel_size = {1, 2}, .stride = {3, 2}, .groups = 2})
        .check([dtype](const Tensors& in, const Tensors& out) {
          const Tensor plain = run(ops::conv_transpose, {in[0].cast(DType::F64), in[1].cast(DType::F64)},
                                   {.kernel_size = {1, 2}, .stride = {3, 2}, .groups = 2})[0];
          const int64_t plane = plain.sizes()[2] * plain.sizes()[3];
          std::vector<double> y = plain.to_doubles();
          for (size_t i = 0; i < y.size(); ++i) y[i] += in[2].at(static_cast<int64_t>(i) / plane % 6);
          EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, plain.sizes(), y), tolerance_of(dtype)));
        });
  add_error({random({1, 2, 3}), random({2, 3, 2}), random({2})}, {.kernel_size = {2}}, "Bias shape ([2]) is not [3]");
  add({Tensor(DType::F32, {1, 0, 2, 2}), Tensor(DType::F32, {0, 3, 2, 2})}, {.kernel_size = {2, 2}})
      .expect({Tensor(DType::F32, {1, 3, 3, 3})}, kExact);
  add_error({random({1, 2, 3, 3}), random({2, 1, 2})}, {.kernel_size = {2}}, "Input rank (4)");
  add_error({random({1, 2, 3, 3}), random({3, 1, 2, 2})}, {.kernel_size = {2, 2}}, "(2 and 3) differ");
  add_error({random({1, 2, 3, 3}), random({2, 1, 2, 2})}, {.kernel_size = {2, 2}, .groups = 3}, "does not divide");
  add_error({random({1, 2, 1, 1}), random({2, 1, 2, 2})}, {.kernel_size = {2, 2}, .padding = {2, 2}},
            "Output size (-2) along spatial axis 0 is negative");
  add_error({random({1, 2, 3, 3}), random({2, 1, 2, 2})}, {.kernel_size = {2, 2}, .output_padding = {-1}},
            "output_padding ([-1])");
}

OP_CASES(im2col) {
  add({Tensor::i32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})}, {.kernel_size = {2, 2}})
      .expect({Tensor::i32({2, 4}, {1, 2, 4, 5, 2, 3, 5, 6})}, kExact);
  add({Tensor::i32({1, 2, 1, 2}, {1, 2, 3, 4})}, {.kernel_size = {1, 2}, .stride = {1, 2}, .padding = {0, 1}})
      .expect({Tensor::i32({2, 4}, {0, 1, 0, 3, 2, 0, 4, 0})}, kExact);
  // Conv is im2col times the weight.
  for (const Geometry& g : {Geometry{{3, 2}, {2, 1}, {1, 2}, {1, 2}}, Geometry{{1, 1}, {3, 2}}, Geometry{{2, 3}},
                            Geometry{{3, 2}, {1, 2}, {0, 2, 1, 0}}})
    add({random({2, 3, 7, 5}, DType::F64)}, {g.kernel, g.stride, g.padding, g.dilation})
        .check([g](const Tensors& in, const Tensors& out) {
          Rng other(7);
          const int64_t cout = 4, k = out[0].sizes()[1], rows = out[0].sizes()[0];
          const Tensor w = other.tensor({cout, 3, g.kernel[0], g.kernel[1]}, DType::F64);
          const Tensor y = conv_by_padding(in[0], w, g);
          const int64_t windows = y.sizes()[2] * y.sizes()[3];
          ASSERT_EQ(rows, 2 * windows);
          ASSERT_EQ(k, 3 * g.kernel[0] * g.kernel[1]);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cout; ++c) {
              double sum = 0;
              for (int64_t i = 0; i < k; ++i) sum += out[0].at(r * k + i) * w.at(c * k + i);
              EXPECT_NEAR(sum, y.at((r / windows * cout + c) * windows + r % windows), 1e-12);
            }
        });
  for (const DType dtype : {DType::F16, DType::U8, DType::I64, DType::Bool, DType::C64})
    add({random({1, 2, 3, 3}, dtype)}, {.kernel_size = {1, 1}}).check([](const Tensors& in, const Tensors& out) {
      const size_t size = size_of(in[0].dtype());  // a 1x1 window is a transpose of C and space, whatever the dtype
      for (size_t c = 0; c < 2; ++c)
        for (size_t p = 0; p < 9; ++p)
          for (size_t b = 0; b < size; ++b)
            ASSERT_EQ(out[0].bytes()[(p * 2 + c) * size + b], in[0].bytes()[(c * 9 + p) * size + b]);
    });
  add({Tensor(DType::F32, {0, 2, 4, 4})}, {.kernel_size = {2, 2}}).expect({Tensor(DType::F32, {0, 8})});
  add_error({random({1, 2, 3, 3})}, {.kernel_size = {4, 2}}, "Window (4) is larger than the padded input (3)");
  add_error({random({1, 2, 3, 3})}, {.kernel_size = {2}}, "does not have 2 entries");
  add_error({random({2, 3, 3})}, {.kernel_size = {2, 2}}, "Input rank (3)");
}

OP_CASES(conv2d_backward_input) {
  const auto check = [&](std::vector<int64_t> x, std::vector<int64_t> w, const Geometry& g) {
    const Tensor input = random(std::move(x), DType::F64), weight = random(std::move(w), DType::F64);
    const Tensor dy = random(conv_by_padding(input, weight, g).sizes(), DType::F64);
    add({dy, weight}, {g.kernel, g.stride, g.padding, g.dilation, g.groups,
                       std::vector<Dim>(input.sizes().begin(), input.sizes().end())})
        .check([g, input](const Tensors& in, const Tensors& out) {
          EXPECT_TRUE(matches_finite_differences(
              [&](const Tensor& at) {
                return run(ops::conv, {at, in[1]}, conv_attrs(g))[0];
              },
              input, in[0], out[0]));
        });
  };
  check({2, 3, 5, 6}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 0}, {1, 2}});
  check({1, 4, 6, 5}, {6, 2, 3, 2}, {{3, 2}, {2, 3}, {1, 0}, {1, 1}, 2});  // the last rows reach no window
  check({1, 3, 4, 4}, {3, 1, 2, 2}, {{2, 2}, {3, 3}, {1}, {}, 3});
  add({random({1, 2, 2, 2}, DType::F16), random({2, 1, 2, 2}, DType::F16)},
      {.kernel_size = {2, 2}, .input_shape = {1, 1, 3, 3}});
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    add({random({2, 40, 7, 6}, dtype), random({40, 24, 3, 3}, dtype)},
        {.kernel_size = {3, 3}, .padding = {1, 1}, .input_shape = {2, 24, 7, 6}});
  add({random({2, 18, 7, 8}), random({18, 5, 3, 3})},
      {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .groups = 2, .input_shape = {2, 10, 14, 15}});
  add_error({random({1, 2, 2, 2}), random({2, 1, 2, 2})}, {.kernel_size = {2, 2}, .input_shape = {1, 1, 4, 3}},
            "Gradient shape ([1, 2, 2, 2]) is not [1, 2, 3, 2]");
  add_error({random({1, 2, 2, 2}), random({2, 1, 2, 2})}, {.kernel_size = {2, 2}},
            "input_shape ([]) does not have 4 entries");
  add_error({random({1, 2, 2}), random({2, 1, 2})}, {.kernel_size = {2}, .input_shape = {1, 1, 4, 3}},
            "does not have 2 entries");
}

OP_CASES(conv2d_backward_weight) {
  const auto check = [&](std::vector<int64_t> x, std::vector<int64_t> w, const Geometry& g) {
    const Tensor input = random(std::move(x), DType::F64), weight = random(std::move(w), DType::F64);
    const Tensor dy = random(conv_by_padding(input, weight, g).sizes(), DType::F64);
    add({input, dy}, {g.kernel, g.stride, g.padding, g.dilation, g.groups,
                      std::vector<Dim>(weight.sizes().begin(), weight.sizes().end())})
        .check([g, weight](const Tensors& in, const Tensors& out) {
          EXPECT_TRUE(matches_finite_differences(
              [&](const Tensor& at) {
                return run(ops::conv, {in[0], at}, conv_attrs(g))[0];
              },
              weight, in[1], out[0]));
        });
  };
  check({2, 3, 5, 6}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 0}, {1, 2}});
  check({2, 4, 6, 5}, {6, 2, 3, 2}, {{3, 2}, {2, 3}, {1, 0}, {1, 1}, 2});
  check({1, 3, 4, 4}, {3, 1, 2, 2}, {{2, 2}, {}, {2, 2}, {2, 2}, 3});
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    add({random({2, 9, 12, 13}, dtype), random({2, 70, 6, 7}, dtype)},  // beyond a tile, in parts
        {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .weight_shape = {70, 9, 3, 3}});
    add({random({1, 4, 3, 5}, dtype), random({1, 6, 3, 5}, dtype)},
        {.kernel_size = {1, 1}, .groups = 2, .weight_shape = {6, 2, 1, 1}});
  }
  add({Tensor(DType::F32, {0, 1, 3, 3}), Tensor(DType::F32, {0, 2, 2, 2})},
      {.kernel_size = {2, 2}, .weight_shape = {2, 1, 2, 2}})
      .expect({Tensor(DType::F32, {2, 1, 2, 2})}, kExact);  // an empty batch: zeros
  add_error({random({1, 1, 3, 3}), random({1, 2, 2, 3})}, {.kernel_size = {2, 2}, .weight_shape = {2, 1, 2, 2}},
            "Gradient shape ([1, 2, 2, 3]) is not [1, 2, 2, 2]");
  add_error({random({1, 1, 3, 3}), random({1, 2, 2, 2})}, {.kernel_size = {2, 2}},
            "weight_shape ([]) does not have 4 entries");
}

TEST(ConvTypes, SymbolicSizesBindToTheStaticOnes) {
  const Dim batch = Dim::symbol(symbols::kBatch), length = Dim::symbol(symbols::kSeq);
  const auto build = [&](const Dim& n, const Dim& l) {
    Graph graph;
    const Value x = graph.input("x", {{n, 4, l, 9}, DType::F32}), w = graph.param("w", {{6, 2, 3, 2}, DType::F32});
    const ops::ConvAttrs a = {.kernel_size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .groups = 2};
    graph.output(ops::conv(x, w, a), "conv");
    graph.output(ops::im2col(x, {a.kernel_size, a.stride, a.padding, a.dilation}), "im2col");
    graph.output(ops::pool_mean(x, {.kernel_size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true}),
                 "pool");
    graph.output(ops::conv_transpose(x, graph.param("wt", {{4, 1, 3, 2}, DType::F32}),
                                     {.kernel_size = {3, 2}, .stride = {2, 3}}),
                 "t");
    return graph;
  };
  for (const int64_t l : {1, 2, 7, 8}) {
    const Graph bound = bind(build(batch, length), {{symbols::kBatch, 5}, {symbols::kSeq, l}});
    const Graph direct = build(5, l);
    for (size_t i = 0; i < direct.outputs().size(); ++i)
      EXPECT_EQ(bound.type(bound.outputs()[i].value), direct.type(direct.outputs()[i].value))
          << direct.outputs()[i].name;
  }
  const Graph big = build(batch, 7);
  EXPECT_EQ(big.type(big.outputs()[1].value).shape, (Shape{Dim::symbol(symbols::kBatch, 12), 24}));  // ?0*12 rows
  // A window that does not fit is found when the size is known.
  Graph graph;
  graph.output(ops::conv(graph.input("x", {{1, 1, length}, DType::F32}), graph.param("w", {{1, 1, 4}, DType::F32}),
                         {.kernel_size = {4}}),
               "y");
  EXPECT_THROW(bind(graph, {{symbols::kSeq, 3}}), Error);
}

}  // namespace rlx::test
