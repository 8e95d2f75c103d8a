#include <cmath>

#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// ONNX's node cases (fixtures/make_onnx_quantize.py); null: no such fixture.
const Tensor* fixture(const std::string& name) {
  static const std::map<std::string, Tensor> all = read_npz(RLX_FIXTURES "/onnx_quantize.npz");
  const auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

Tensors fixture_operands(const std::string& key) {
  Tensors in = {*fixture(key + "_x"), *fixture(key + "_s")};
  if (const Tensor* zero = fixture(key + "_z")) in.push_back(*zero);
  return in;
}

Tensor codes(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

double smallest(DType t) {
  return t == DType::I8 ? -128 : t == DType::I16 ? -32768 : t == DType::I32 ? -2147483648.0 : 0;
}
double largest(DType t) {
  return t == DType::I8 ? 127 : t == DType::U8 ? 255 : t == DType::I16 ? 32767 : t == DType::U16 ? 65535 : 2147483647.0;
}

// The scale of every element, found by walking the indices of x.
template <class A>
std::vector<int64_t> scale_indices(const Tensor& x, const Tensor& scale, const A& attrs) {
  const std::vector<int64_t>& sizes = x.sizes();
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  std::vector<int64_t> index(sizes.size(), 0), out;
  for (int64_t e = 0; e < x.num_elements(); ++e) {
    int64_t at = 0;
    if (attrs.block_size > 0)
      for (int64_t d = 0; d < rank; ++d) {
        const auto i = static_cast<size_t>(d);
        at = at * scale.sizes()[i] + (d == axis ? index[i] / attrs.block_size : index[i]);
      }
    else if (scale.num_elements() > 1)
      at = index[static_cast<size_t>(axis)];
    out.push_back(at);
    for (int64_t d = rank - 1; d >= 0 && ++index[static_cast<size_t>(d)] == sizes[static_cast<size_t>(d)]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
  return out;
}

struct Granularity {
  std::vector<int64_t> x, scale;
  int64_t axis, block_size;
};
std::vector<Granularity> granularities() {
  return {
      {{3, 1100}, {}, 1, 0},        {{3, 1100}, {1}, 0, 0},       {{7, 83}, {7}, 0, 0},     {{41, 2, 7}, {7}, -1, 0},
      {{2, 5, 33}, {5}, 1, 0},      {{4, 2049}, {2049}, 1, 0},    {{3, 70}, {3, 3}, 1, 32}, {{70, 19}, {3, 19}, 0, 32},
      {{2, 9, 5}, {2, 3, 5}, 1, 4}, {{2, 1, 5}, {2, 1, 5}, 1, 4}, {{33}, {3}, 0, 16},       {{6}, {6}, 0, 1},
  };
}

}  // namespace

OP_CASES(quantize_linear) {
  // Ties go to even, the range saturates, NaN becomes the zero point.
  add({Tensor::f32({8}, {0.5, 1.5, 2.5, -0.5, 1000, -1000, INFINITY, NAN}), Tensor::f32({}, {1}),
       codes(DType::U8, {}, {3})},
      {.to = DType::U8})
      .expect({codes(DType::U8, {8}, {3, 5, 5, 3, 255, 0, 255, 3})}, kExact);
  add({Tensor::f32({4}, {-9, -1, 6, 9}), Tensor::f32({}, {1})}, {.low = -8, .high = 7})
      .expect({codes(DType::I8, {4}, {-8, -1, 6, 7})}, kExact);
  add({Tensor::f32({3}, {1, -1, 0}), Tensor::f32({}, {0})}).expect({codes(DType::I8, {3}, {127, -128, 0})}, kExact);
  // The quotient is an f32: 0.1f * 2.5 / 0.1f is 2.5 there, a tie, and just above it exactly.
  add({Tensor::f32({1}, {0.25f}), Tensor::f32({}, {0.1f})}).expect({codes(DType::I8, {1}, {2})}, kExact);
  // Scales that GPUs take for 0, or whose reciprocals they do.
  add({Tensor::f32({4}, {1e-39f, 2.5e-39f, -7.6e-39f, 3e38f}), Tensor::f32({}, {1e-39f})});
  add({Tensor::f32({4}, {1e38f, 3e38f, -1.1e38f, 0}), Tensor::f32({}, {2e38f})});
  // Codes of 32 bits are exact, also where the quotient has them and a zero point of the other sign brings it back.
  const std::vector<float> far = {1207430784, -1207430784, 3e9f,          -3e9f,         2147483648.0f, -2147483648.0f,
                                  4e9f,       -4e9f,       4294967040.0f, 2147483648.0f, 5e9f,          -2147483648.0f};
  const auto n = static_cast<int64_t>(far.size());
  add({Tensor::of<float>(DType::F32, {n}, far), Tensor::of<float>(DType::F32, {n}, std::vector<float>(far.size(), 1)),
       codes(DType::I32, {n},
             {-18, 18, -2000000001, 2000000001, -1, 1, -1, 1, -2147483648.0, -2147483648.0, -2147483648.0, 0})},
      {.axis = 0, .to = DType::I32})
      .expect({codes(DType::I32, {n},
                     {1207430766, -1207430766, 999999999, -999999999, 2147483647, -2147483647, 2147483647,
                      -2147483648.0, 2147483392, 0, 2147483647, -2147483648.0})},
              kExact);
  for (int i = 0; fixture(str("quantize", i, "_x")) != nullptr; ++i) {
    const auto a = fixture(str("quantize", i, "_a"))->values<int64_t>();
    const Tensor& y = *fixture(str("quantize", i, "_y"));
    add(fixture_operands(str("quantize", i)),
        {.axis = a[0], .block_size = a[1], .to = y.dtype(), .low = a[2], .high = a[3]})
        .expect({y}, kExact);
  }
  for (const Granularity& g : granularities())
    for (const auto& [x, to] : {std::pair{DType::F32, DType::I8},
                                {DType::F16, DType::U8},
                                {DType::BF16, DType::I16},
                                {DType::F32, DType::I16},
                                {DType::F32, DType::I32},
                                {DType::F32, DType::U16}}) {
      const ops::QuantizeLinearAttrs attrs{.axis = g.axis, .block_size = g.block_size, .to = to};
      add({random(g.x, -90, 90, x), random(g.scale, 0.01, 2, x), integers(g.scale, 0, 100, to)}, attrs)
          .check([attrs](const Tensors& in, const Tensors& out) {
            const auto at = scale_indices(in[0], in[1], attrs);
            for (int64_t e = 0; e < in[0].num_elements(); ++e) {
              const int64_t s = at[static_cast<size_t>(e)];
              const float quotient = static_cast<float>(in[0].at(e)) / static_cast<float>(in[1].at(s));
              const double code = std::rint(static_cast<double>(quotient)) + in[2].at(s);
              ASSERT_EQ(out[0].at(e), std::fmin(std::fmax(code, smallest(attrs.to)), largest(attrs.to))) << e;
            }
          });
    }
  add({random({3, 40}, -90, 90), random({3}, 0.01, 2, DType::F16)}, {.axis = 0, .to = DType::U8, .high = 15});
  add({random({0, 3}), Tensor::f32({}, {1})}).expect({Tensor(DType::I8, {0, 3})});
  const Tensor x = random({2, 3}), one = Tensor::f32({}, {1});
  add_error({integers({2}, 0, 1), one}, {}, "Operand dtype (i32) is not f32, f16 or bf16");
  add_error({x, integers({}, 0, 1)}, {}, "Scale dtype (i32) is not f32");
  add_error({x, random({2})}, {}, "Scale shape ([2]) is not [3]");
  add_error({x, random({2, 3})}, {}, "Scale rank (2) is not 1");
  add_error({x, random({2, 3})}, {.block_size = 2}, "Scale shape ([2, 3]) is not [2, 2]");
  add_error({x, random({3})}, {.axis = 2}, "Axis (2) is out of range");
  add_error({x, one}, {.block_size = -1}, "block_size (-1) is negative");
  add_error({x, one, codes(DType::U8, {}, {0})}, {}, "Zero point dtype (u8) is not i8");
  add_error({x, one, codes(DType::I8, {3}, {0, 0, 0})}, {}, "Zero point shape ([3]) is not []");
  add_error({x, one}, {.to = DType::F32}, "Code dtype (f32)");
  add_error({x, one}, {.low = 5, .high = 4}, "The range of codes (5 to 4)");
  add_error({x, one}, {.to = DType::U8, .low = -1}, "The range of codes (-1 to 255) is empty or more than u8 holds");
}

OP_CASES(dequantize_linear) {
  add({codes(DType::I8, {4}, {-128, 127, 0, 3}), Tensor::f32({}, {0.5}), codes(DType::I8, {}, {3})})
      .expect({Tensor::f32({4}, {-65.5, 62, -1.5, 0})}, kExact);
  add({codes(DType::U8, {2, 2}, {1, 2, 3, 255}), Tensor::f32({2}, {1, 10})})
      .expect({Tensor::f32({2, 2}, {1, 20, 3, 2550})}, kExact);
  // A difference of more than 32 bits.
  add({Tensor::i32({1}, {2147483647}), Tensor::f32({}, {1}), Tensor::i32({}, {-2147483647})})
      .expect({Tensor::f32({1}, {4294967294.0f})}, kExact);
  for (int i = 0; fixture(str("dequantize", i, "_x")) != nullptr; ++i) {
    const auto a = fixture(str("dequantize", i, "_a"))->values<int64_t>();
    add(fixture_operands(str("dequantize", i)), {.axis = a[0], .block_size = a[1]})
        .expect({*fixture(str("dequantize", i, "_y"))}, kRounding);
  }
  for (const Granularity& g : granularities())
    for (const auto& [from, scale, to] : {std::tuple{DType::I8, DType::F32, DType::F32},
                                          {DType::U8, DType::F16, DType::F32},
                                          {DType::U16, DType::F32, DType::F32},
                                          {DType::I16, DType::F32, DType::F16},
                                          {DType::I32, DType::BF16, DType::BF16}}) {
      const ops::DequantizeLinearAttrs attrs{.axis = g.axis, .block_size = g.block_size, .to = to};
      add({integers(g.x, 0, 127, from), random(g.scale, 0.01, 2, scale), integers(g.scale, 0, 100, from)}, attrs)
          .check([attrs](const Tensors& in, const Tensors& out) {
            const auto at = scale_indices(in[0], in[1], attrs);
            std::vector<double> y;
            for (int64_t e = 0; e < in[0].num_elements(); ++e) {
              const int64_t s = at[static_cast<size_t>(e)];
              y.push_back((in[0].at(e) - in[2].at(s)) * in[1].at(s));
            }
            EXPECT_TRUE(near(out[0], Tensor::from_doubles(*attrs.to, in[0].sizes(), y), kRounding));
          });
    }
  const Tensor q = integers({2, 3}, 0, 9, DType::I8), one = Tensor::f32({}, {1});
  add_error({random({2, 3}), one}, {}, "Code dtype (f32) is not i8, u8, i16, u16 or i32");
  add_error({q, random({2})}, {}, "Scale shape ([2]) is not [3]");
  add_error({q, one, Tensor::i32({}, {0})}, {}, "Zero point dtype (i32) is not i8");
  add_error({q, one}, {.to = DType::I32}, "Result dtype (i32) is not f32, f16 or bf16");
}

}  // namespace rlx::test
