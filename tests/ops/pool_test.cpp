#include <array>
#include <cmath>

#include "support/op_cases.h"
#include "window_fixture.h"

namespace rlx::test {

namespace {

// PyTorch's output size: round up, then drop the window that would start in the right padding.
int64_t torch_windows(int64_t in, int64_t k, int64_t s, int64_t p, int64_t end, int64_t d, bool ceil_mode) {
  const int64_t span = in + p + end - d * (k - 1) - 1;
  int64_t out = (span + (ceil_mode ? s - 1 : 0)) / s + 1;
  if (ceil_mode && (out - 1) * s >= in + p) --out;
  return out;
}

enum class Fold { kMax, kMin, kSum, kMean, kProd };

// Every element of the padded plane asks which windows it is a tap of: the loops are the kernel's inside out.
std::vector<double> pool_by_scatter(const Tensor& x, const ops::PoolAttrs& a, Fold fold, std::vector<int64_t>& sizes) {
  const size_t rank = a.kernel_size.size(), lead = 3 - rank;
  std::array<int64_t, 3> in = {1, 1, 1}, k = {1, 1, 1}, s = {1, 1, 1}, p = {0, 0, 0}, d = {1, 1, 1}, out = {1, 1, 1};
  std::array<int64_t, 3> end = {0, 0, 0};
  sizes = {x.sizes()[0], x.sizes()[1]};
  for (size_t i = 0; i < rank; ++i) {
    const size_t t = lead + i;
    in[t] = x.sizes()[i + 2];
    k[t] = a.kernel_size[i];
    if (i < a.stride.size()) s[t] = a.stride[i];
    if (i < a.padding.size()) p[t] = end[t] = a.padding[i];
    if (a.padding.size() == 2 * rank) end[t] = a.padding[rank + i];
    if (i < a.dilation.size()) d[t] = a.dilation[i];
    out[t] = torch_windows(in[t], k[t], s[t], p[t], end[t], d[t], a.ceil_mode);
    sizes.push_back(out[t]);
  }
  // The window whose tap lies at padded position q, for tap t; -1: none.
  const auto window = [&](size_t axis, int64_t q, int64_t t) -> int64_t {
    const int64_t start = q - t * d[axis];
    return start < 0 || start % s[axis] != 0 || start / s[axis] >= out[axis] ? -1 : start / s[axis];
  };
  const double identity = fold == Fold::kMax ? -INFINITY : fold == Fold::kMin ? INFINITY : fold == Fold::kProd ? 1 : 0;
  std::vector<double> y(static_cast<size_t>(product(sizes)), identity), counts(y.size(), 0.0);
  for (int64_t plane = 0; plane < sizes[0] * sizes[1]; ++plane)
    for (int64_t z = 0; z < in[0] + p[0] + end[0]; ++z)
      for (int64_t v = 0; v < in[1] + p[1] + end[1]; ++v)
        for (int64_t u = 0; u < in[2] + p[2] + end[2]; ++u) {
          const int64_t iz = z - p[0], iv = v - p[1], iu = u - p[2];
          const bool inside = iz >= 0 && iz < in[0] && iv >= 0 && iv < in[1] && iu >= 0 && iu < in[2];
          const double value = inside ? x.at(((plane * in[0] + iz) * in[1] + iv) * in[2] + iu) : identity;
          for (int64_t t = 0; t < k[0] * k[1] * k[2]; ++t) {
            const int64_t oz = window(0, z, t / (k[1] * k[2])), ov = window(1, v, t / k[2] % k[1]),
                          ou = window(2, u, t % k[2]);
            if (oz < 0 || ov < 0 || ou < 0) continue;
            const auto o = static_cast<size_t>(((plane * out[0] + oz) * out[1] + ov) * out[2] + ou);
            if (inside || a.count_include_pad) counts[o] += 1;
            switch (fold) {
              case Fold::kMax: y[o] = std::fmax(y[o], value); break;
              case Fold::kMin: y[o] = std::fmin(y[o], value); break;
              case Fold::kProd: y[o] *= value; break;
              default: y[o] += value;
            }
          }
        }
  if (fold == Fold::kMean)
    for (size_t i = 0; i < y.size(); ++i) y[i] /= counts[i];
  return y;
}

struct PoolCases {
  std::vector<int64_t> x;
  ops::PoolAttrs attrs;
};
std::vector<PoolCases> geometries() {
  return {
      {{2, 3, 9}, {.kernel_size = {3}}},
      {{2, 1, 9}, {.kernel_size = {3}, .stride = {2}, .padding = {1}, .dilation = {2}}},
      {{1, 2, 7, 6}, {.kernel_size = {3, 2}, .stride = {2, 2}, .padding = {1, 1}}},
      {{1, 2, 7, 6}, {.kernel_size = {3, 2}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false}},
      {{1, 2, 6, 8}, {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 0}, .ceil_mode = true}},
      {{1, 2, 6, 8},
       {.kernel_size = {2, 3}, .stride = {3, 4}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false}},
      {{1, 1, 5, 5},
       {.kernel_size = {2, 2}, .stride = {4, 4}, .padding = {1, 1}, .ceil_mode = true}},  // the rule drops one
      {{1, 1, 5, 6}, {.kernel_size = {2, 2}, .stride = {2}, .ceil_mode = true}},
      {{2, 2, 4, 5, 3}, {.kernel_size = {2, 3, 2}, .stride = {2, 1, 1}, .padding = {1, 1, 0}, .dilation = {1, 2, 1}}},
      {{1, 1, 4, 4}, {.kernel_size = {4, 4}}},
      // Other paddings at the ends than at the beginnings.
      {{2, 1, 9}, {.kernel_size = {3}, .stride = {2}, .padding = {0, 2}}},
      {{1, 2, 7, 6}, {.kernel_size = {3, 2}, .stride = {2, 2}, .padding = {0, 1, 2, 0}, .ceil_mode = true}},
      {{1, 2, 7, 6},
       {.kernel_size = {3, 2},
        .stride = {2, 3},
        .padding = {2, 0, 0, 1},
        .dilation = {1, 2},
        .count_include_pad = false}},
      {{1, 1, 5, 5}, {.kernel_size = {2, 2}, .stride = {4, 4}, .padding = {0, 1, 2, 0}, .ceil_mode = true}},
      {{1, 2, 4, 5, 6},
       {.kernel_size = {2, 3, 2}, .stride = {2, 1, 3}, .padding = {0, 1, 1, 1, 2, 0}, .ceil_mode = true}},
      {{1, 1, 3}, {.kernel_size = {4}, .stride = {2}, .ceil_mode = true}},  // the only window hangs over
  };
}

// Cases that every kind shares.
template <class Builder>
void add_shared(Builder& b, Fold fold) {
  for (const PoolCases& g : geometries())
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
      b.add({b.random(g.x, dtype)}, g.attrs).check([g, fold, dtype](const Tensors& in, const Tensors& out) {
        std::vector<int64_t> sizes;
        const std::vector<double> y = pool_by_scatter(in[0], g.attrs, fold, sizes);
        EXPECT_TRUE(near(out[0], Tensor::from_doubles(dtype, sizes, y),
                         dtype == DType::F16    ? kHalf
                         : dtype == DType::BF16 ? kBFloat
                                                : kAccumulation));
      });
  // Beyond a vector and a batch of rows, whole planes, strides of every path: no judge, backends are compared.
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    b.add({b.random({2, 3, 19, 45}, 0.5, 1.5, dtype)}, {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    b.add({b.random({2, 9, 7, 7}, 0.9, 1.1, dtype)}, {.kernel_size = {7, 7}});
    b.add({b.random({1, 2, 5, 9, 37}, 0.5, 1.5, dtype)},
          {.kernel_size = {2, 3, 5}, .stride = {1, 2, 3}, .padding = {1, 1, 2}, .dilation = {1, 1, 2}});
  }
  b.add({b.random({1, 3, 40, 70}, 0.5, 1.5)},
        {.kernel_size = {2, 2}, .stride = {2, 2}, .ceil_mode = true, .count_include_pad = false});
  for (const DType dtype : {DType::I8, DType::U8, DType::I32}) {
    if (fold == Fold::kMean) continue;
    b.add({b.integers({2, 3, 19, 45}, 0, 120, dtype)}, {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    b.add({b.integers({1, 3, 7, 7}, 0, 120, dtype)}, {.kernel_size = {7, 7}});
    b.add({b.integers({1, 2, 3, 4}, 0, 120, dtype)}, {.kernel_size = {2, 2}, .padding = {5, 6}});
  }
  b.add({b.random({1, 3, 40, 71}, 0.5, 1.5)},
        {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {0, 0, 1, 1}, .ceil_mode = true});
  b.add({b.random({1, 3, 200}, 0.5, 1.5)}, {.kernel_size = {5}, .padding = {2}, .count_include_pad = false});
  b.add({b.random({1, 2, 50, 20}, 0.95, 1.05)}, {.kernel_size = {40, 3}, .stride = {5, 1}});  // many rows at once
  b.add({b.random({2, 3, 14, 15}, 0.99, 1.01)}, {.kernel_size = {14, 15}});  // a GPU's workgroup per window
  b.add({b.random({1, 2, 20, 30}, 0.99, 1.01)},
        {.kernel_size = {12, 13}, .stride = {5, 6}, .padding = {6, 3}, .ceil_mode = true, .count_include_pad = false});
  b.add({b.random({1, 2, 3, 4})}, {.kernel_size = {2, 2}, .padding = {5, 6}});  // windows wholly in the padding
  b.add({Tensor::f32({1, 1, 2, 20},
                     [] {
                       std::vector<float> v(40, 1.0f);
                       v[3] = NAN;
                       v[17] = INFINITY;
                       v[38] = -INFINITY;
                       return v;
                     }())},
        {.kernel_size = {2, 3}});
  b.add({Tensor(DType::F32, {0, 2, 4})}, {.kernel_size = {2}}).expect({Tensor(DType::F32, {0, 2, 3})});
  b.add_error({b.random({1, 1, 2})}, {.kernel_size = {3}}, "Window (3) is larger than the padded input (2)");
  b.add_error({b.random({1, 1, 2})}, {.kernel_size = {3}, .ceil_mode = true},
              "Window (3) is larger than the padded input (2)");
  b.add_error({b.random({1, 1, 2})}, {}, "does not have 1, 2 or 3 entries");
  b.add_error({b.random({1, 1, 2})}, {.kernel_size = {2}, .padding = {1, 1, 1}}, "has neither 1 entries nor 2");
  b.add_error({b.random({1, 2})}, {.kernel_size = {2}}, "Input rank (2)");
  b.add_error({b.random({1, 1, 2}, DType::C64)}, {.kernel_size = {2}}, "c64");
}

}  // namespace

OP_CASES(pool_max) {
  add({Tensor::f32({1, 1, 5}, {1, 5, 2, -3, 4})}, {.kernel_size = {2}, .stride = {2}, .ceil_mode = true})
      .expect({Tensor::f32({1, 1, 3}, {5, 2, 4})}, kExact);
  add({Tensor::f32({1, 1, 3}, {-1, -2, -3})}, {.kernel_size = {2}, .padding = {1}})  // padding never wins
      .expect({Tensor::f32({1, 1, 4}, {-1, -1, -2, -3})}, kExact);
  add({Tensor::f32({1, 1, 1}, {7})}, {.kernel_size = {1}, .padding = {1}})  // a window of padding only
      .expect({Tensor::f32({1, 1, 3}, {-INFINITY, 7, -INFINITY})}, kExact);
  add({Tensor::f32({1, 1, 4}, {1, NAN, 3, 4})}, {.kernel_size = {2}})
      .expect({Tensor::f32({1, 1, 3}, {NAN, NAN, 4})}, kExact);
  add({Tensor::i64({1, 1, 2}, {(int64_t{1} << 60) + 1, int64_t{1} << 60})}, {.kernel_size = {2}})
      .expect({Tensor::i64({1, 1, 1}, {(int64_t{1} << 60) + 1})});
  add({integers({1, 1, 1}, -5, -5, DType::I8)}, {.kernel_size = {1}, .padding = {1}})
      .expect({Tensor::from_doubles(DType::I8, {1, 1, 3}, std::vector<double>{-128, -5, -128})}, kExact);
  add({integers({1, 1, 1}, 5, 5, DType::U8)}, {.kernel_size = {1}, .padding = {1}})
      .expect({Tensor::from_doubles(DType::U8, {1, 1, 3}, std::vector<double>{0, 5, 0})}, kExact);
  for (const WindowFixture& f : window_fixtures("maxpool"))
    add({f.x}, {f.kernel, f.stride, f.padding, f.dilation, f.more[0] != 0}).expect({f.y}, kExact);
  add_shared(*this, Fold::kMax);
}

OP_CASES(pool_max_indices) {
  // The first of equal maxima; the second image and channel begin where the first end.
  add({Tensor::f32({1, 2, 4}, {3, 3, 1, 3, 0, 5, 6, 5})}, {.kernel_size = {2}})
      .expect({Tensor::i64({1, 2, 3}, {0, 1, 3, 5, 6, 6})}, kExact);
  add({Tensor::f32({1, 1, 2, 3}, {1, 2, 3, 4, 9, 6})}, {.kernel_size = {2, 2}})
      .expect({Tensor::i64({1, 1, 1, 2}, {4, 4})}, kExact);
  add({Tensor::f32({1, 1, 2, 3}, {1, 2, 3, 4, 9, 6})}, {.kernel_size = {2, 2}, .column_major = true})
      .expect({Tensor::i64({1, 1, 1, 2}, {3, 3})}, kExact);
  add({Tensor::f32({1, 1, 4}, {1, NAN, NAN, 4})}, {.kernel_size = {3}})
      .expect({Tensor::i64({1, 1, 2}, {1, 1})}, kExact);
  add({Tensor::f32({1, 1, 1}, {-INFINITY})}, {.kernel_size = {1}, .padding = {1}})  // padding has no index
      .expect({Tensor::i64({1, 1, 3}, {-1, 0, -1})}, kExact);
  add({Tensor::of<uint64_t>(DType::U64, {1, 1, 2}, std::vector<uint64_t>{1, uint64_t{1} << 63})}, {.kernel_size = {2}})
      .expect({Tensor::i64({1, 1, 1}, {1})}, kExact);
  for (const WindowFixture& f : window_fixtures("maxpool"))
    add({f.x}, {f.kernel, f.stride, f.padding, f.dilation, f.more[0] != 0, f.more[1] != 0}).expect({f.indices}, kExact);
  // The elements at the indices are those of pool_max.
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I64})
    add({integers({2, 3, 7, 6}, 0, 20, dtype)},
        {.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0, 0, 1}, .dilation = {1, 2}, .ceil_mode = true})
        .check([](const Tensors& in, const Tensors& out) {
          const Tensor y = run(ops::pool_max, {in[0]},
                               {.kernel_size = {3, 2},
                                .stride = {2, 1},
                                .padding = {1, 0, 0, 1},
                                .dilation = {1, 2},
                                .ceil_mode = true})[0];
          ASSERT_EQ(out[0].sizes(), y.sizes());
          for (int64_t i = 0; i < y.num_elements(); ++i)
            EXPECT_EQ(in[0].at(static_cast<int64_t>(out[0].at(i))), y.at(i));
        });
  add({Tensor(DType::F32, {0, 2, 4})}, {.kernel_size = {2}}).expect({Tensor(DType::I64, {0, 2, 3})});
  add_error({random({1, 1, 2})}, {.kernel_size = {3}}, "Window (3) is larger than the padded input (2)");
  add_error({random({1, 1, 2}, DType::Bool)}, {.kernel_size = {2}}, "bool");
}

OP_CASES(pool_min) {
  add({Tensor::f32({1, 1, 3}, {1, 2, 3})}, {.kernel_size = {2}, .padding = {1}})
      .expect({Tensor::f32({1, 1, 4}, {1, 1, 2, 3})}, kExact);
  add({Tensor::f32({1, 1, 3}, {1, NAN, 3})}, {.kernel_size = {2}}).expect({Tensor::f32({1, 1, 2}, {NAN, NAN})}, kExact);
  add({integers({1, 1, 1}, 5, 5, DType::U32)}, {.kernel_size = {1}, .padding = {1}})
      .expect({Tensor::from_doubles(DType::U32, {1, 1, 3}, std::vector<double>{4294967295.0, 5, 4294967295.0})},
              kExact);
  add_shared(*this, Fold::kMin);
}

OP_CASES(pool_sum) {
  add({Tensor::i32({1, 1, 3}, {2147483647, 1, 5})}, {.kernel_size = {2}})
      .expect({Tensor::i32({1, 1, 2}, {-2147483647 - 1, 6})}, kExact);
  add_shared(*this, Fold::kSum);
}

OP_CASES(pool_prod) {
  add({Tensor::i32({1, 1, 3}, {2, -3, 5})}, {.kernel_size = {2}, .padding = {1}})
      .expect({Tensor::i32({1, 1, 4}, {2, -6, -15, 5})}, kExact);
  add_shared(*this, Fold::kProd);
}

OP_CASES(pool_mean) {
  add({Tensor::f32({1, 1, 3}, {2, 4, 6})}, {.kernel_size = {2}, .stride = {2}, .padding = {1}})
      .expect({Tensor::f32({1, 1, 2}, {1, 5})}, kExact);
  add({Tensor::f32({1, 1, 3}, {2, 4, 6})},
      {.kernel_size = {2}, .stride = {2}, .padding = {1}, .count_include_pad = false})
      .expect({Tensor::f32({1, 1, 2}, {2, 5})}, kExact);
  // torch.nn.functional.avg_pool1d(ceil_mode=True): what hangs over the padded input is not counted.
  add({Tensor::f32({1, 1, 4}, {2, 4, 6, 8})}, {.kernel_size = {3}, .stride = {2}, .ceil_mode = true})
      .expect({Tensor::f32({1, 1, 2}, {4, 7})}, kExact);
  add({Tensor::f32({1, 1, 1}, {3})}, {.kernel_size = {1}, .padding = {1}, .count_include_pad = false})
      .expect({Tensor::f32({1, 1, 3}, {NAN, 3, NAN})}, kExact);  // the mean of no element
  for (const WindowFixture& f : window_fixtures("averagepool"))
    add({f.x}, {f.kernel, f.stride, f.padding, f.dilation, f.more[0] != 0, f.more[1] != 0}).expect({f.y}, kRounding);
  add_shared(*this, Fold::kMean);
  add_error({random({1, 1, 2}, DType::I32)}, {.kernel_size = {2}}, "not a float type");
}

OP_CASES(max_pool2d_backward) {
  // Ties go to the first maximum, overlaps add up.
  add({Tensor::f32({1, 1, 1, 4}, {3, 3, 1, 3}), Tensor::f32({1, 1, 1, 3}, {1, 10, 100})}, {.kernel_size = {1, 2}})
      .expect({Tensor::f32({1, 1, 1, 4}, {1, 10, 0, 100})}, kExact);
  add({Tensor::f32({1, 1, 2, 2}, {5, 5, 5, 5}), Tensor::f32({1, 1, 1, 1}, {7})}, {.kernel_size = {2, 2}})
      .expect({Tensor::f32({1, 1, 2, 2}, {7, 0, 0, 0})}, kExact);
  add({Tensor::f32({1, 1, 1, 1}, {5}), Tensor::f32({1, 1, 1, 3}, {7, 8, 9})},
      {.kernel_size = {1, 1}, .padding = {0, 1}})
      .expect({Tensor::f32({1, 1, 1, 1}, {8})}, kExact);  // windows of padding contribute nothing
  add({Tensor::f32({1, 1, 1, 2}, {-INFINITY, -INFINITY}), Tensor::f32({1, 1, 1, 1}, {4})}, {.kernel_size = {1, 2}})
      .expect({Tensor::f32({1, 1, 1, 2}, {4, 0})}, kExact);
  add({Tensor::f32({1, 1, 1, 3}, {9, NAN, 1}), Tensor::f32({1, 1, 1, 1}, {4})}, {.kernel_size = {1, 3}})
      .expect({Tensor::f32({1, 1, 1, 3}, {0, 4, 0})}, kExact);  // NaN is what the forward result is made of
  for (const PoolCases& g : geometries()) {
    if (g.attrs.kernel_size.size() != 2) continue;
    std::vector<int64_t> sizes;
    const Tensor x = random(g.x, DType::F64);
    pool_by_scatter(x, g.attrs, Fold::kMax, sizes);
    const auto& a = g.attrs;
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      add({random(g.x, dtype), random(sizes, dtype)}, {a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode});
    add({x, random(sizes, DType::F64)}, {a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode})
        .check([g](const Tensors& in, const Tensors& out) {
          EXPECT_TRUE(matches_finite_differences([&](const Tensor& at) { return run(ops::pool_max, {at}, g.attrs)[0]; },
                                                 in[0], in[1], out[0]));
        });
  }
  add_error({random({1, 1, 4, 4}), random({1, 1, 3, 4})}, {.kernel_size = {2, 2}},
            "Gradient shape ([1, 1, 3, 4]) is not [1, 1, 3, 3]");
  add_error({random({1, 1, 4}), random({1, 1, 3})}, {.kernel_size = {2}}, "does not have 2 entries");
  add_error({random({1, 1, 4, 4}, DType::I32), random({1, 1, 3, 3}, DType::I32)}, {.kernel_size = {2, 2}},
            "not a float");
}

}  // namespace rlx::test
