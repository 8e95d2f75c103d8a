#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using C = std::complex<float>;

OP_CASES(cast) {
  const auto f64 = [](std::vector<double> v) {
    return Tensor::from_doubles(DType::F64, {static_cast<int64_t>(v.size())}, v);
  };
  const auto bits = [](DType d, std::vector<uint16_t> v) {
    return Tensor::of<uint16_t>(d, {static_cast<int64_t>(v.size())}, v);
  };
  // float to narrower float: nearest even, overflow to infinity, NaN stays
  add({f64({1, 1 + 0x1p-11, 1 + 0x3p-11, 65519.99, 65520, -1e9, 0x1p-24, 0x1p-25, 0x1.8p-25})}, {.to = DType::F16})
      .expect({bits(DType::F16, {0x3C00, 0x3C00, 0x3C02, 0x7BFF, 0x7C00, 0xFC00, 0x0001, 0x0000, 0x0001})}, kExact);
  add({Tensor::f32({5}, {1, 1 + 0x1p-8f, 1 + 0x3p-8f, 3.3961776e38f, -INFINITY})}, {.to = DType::BF16})
      .expect({bits(DType::BF16, {0x3F80, 0x3F80, 0x3F82, 0x7F80, 0xFF80})}, kExact);
  // Rounds once: by way of f32 this would tie to even and give 1.
  add({f64({1 + 0x1p-11 + 0x1p-40})}, {.to = DType::F16}).expect({bits(DType::F16, {0x3C01})}, kExact);
  add({f64({1 + 0x1p-24, 1e39, NAN})}, {.to = DType::F32}).expect({Tensor::f32({3}, {1, INFINITY, NAN})}, kExact);
  add({Tensor::f32({2}, {NAN, -INFINITY})}, {.to = DType::F16}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::isnan(out[0].at(0)));
    EXPECT_EQ(out[0].at(1), -INFINITY);
  });
  // float to wider float, int and Bool to float
  add({bits(DType::F16, {0x3555, 0x0001, 0x7C00})}, {.to = DType::F64})
      .expect({f64({0.333251953125, 0x1p-24, INFINITY})}, kExact);
  add({Tensor::i32({2}, {16777217, -3})}, {.to = DType::F32}).expect({Tensor::f32({2}, {16777216, -3})}, kExact);
  add({Tensor::i64({2}, {(int64_t{1} << 53) + 1, (int64_t{1} << 53) + 3})}, {.to = DType::F64})
      .expect({f64({0x1p53, 0x1p53 + 4})}, kExact);
  // float to int: truncate, saturate, NaN is 0
  const Tensor wild = f64({2.9, -2.9, 1e30, -1e30, NAN, INFINITY, 300, -1});
  add({wild}, {.to = DType::I32})
      .expect({Tensor::i32({8}, {2, -2, INT32_MAX, INT32_MIN, 0, INT32_MAX, 300, -1})}, kExact);
  add({wild}, {.to = DType::I64})
      .expect({Tensor::i64({8}, {2, -2, INT64_MAX, INT64_MIN, 0, INT64_MAX, 300, -1})}, kExact);
  const std::vector<uint8_t> u8 = {2, 0, 255, 0, 0, 255, 255, 0};
  add({wild}, {.to = DType::U8}).expect({Tensor::of<uint8_t>(DType::U8, {8}, u8)}, kExact);
  const std::vector<int8_t> i8 = {2, -2, 127, -128, 0, 127, 127, -1};
  add({wild}, {.to = DType::I8}).expect({Tensor::of<int8_t>(DType::I8, {8}, i8)}, kExact);
  const std::vector<uint32_t> u32 = {2, 0, UINT32_MAX, 0, 0, UINT32_MAX, 300, 0};
  add({wild}, {.to = DType::U32}).expect({Tensor::of<uint32_t>(DType::U32, {8}, u32)}, kExact);
  // anything to Bool, Bool to number
  const std::vector<uint8_t> truth = {1, 0, 0, 1, 1};
  add({Tensor::f32({5}, {0.1f, 0, -0.0f, NAN, -2})}, {.to = DType::Bool})
      .expect({Tensor::of<uint8_t>(DType::Bool, {5}, truth)}, kExact);
  add({Tensor::i32({5}, {256, 0, 0, -1, 1})}, {.to = DType::Bool})
      .expect({Tensor::of<uint8_t>(DType::Bool, {5}, truth)}, kExact);
  const std::vector<uint8_t> bytes = {0, 1, 255};
  const Tensor any_byte = Tensor::of<uint8_t>(DType::Bool, {3}, bytes);
  add({any_byte}).expect({Tensor::f32({3}, {0, 1, 1})}, kExact);
  add({any_byte}, {.to = DType::I64}).expect({Tensor::i64({3}, {0, 1, 1})}, kExact);
  // int to int keeps the low bits
  const std::vector<int8_t> low = {0, -1, 127, -128};
  add({Tensor::i32({4}, {256, 511, -129, 128})}, {.to = DType::I8})
      .expect({Tensor::of<int8_t>(DType::I8, {4}, low)}, kExact);
  const std::vector<uint32_t> minus_one = {UINT32_MAX};
  add({Tensor::i64({1}, {-1})}, {.to = DType::U32}).expect({Tensor::of<uint32_t>(DType::U32, {1}, minus_one)}, kExact);
  add({Tensor::of<uint32_t>(DType::U32, {1}, minus_one)}, {.to = DType::I64})
      .expect({Tensor::i64({1}, {4294967295})}, kExact);
  // complex
  const C z[] = {{1.5f, 2}, {0, 3}, {0, 0}};
  const std::vector<uint8_t> z_truth = {1, 1, 0};
  const Tensor zt = Tensor::of<C>(DType::C64, {3}, z);
  add({zt}).expect({Tensor::f32({3}, {1.5f, 0, 0})}, kExact);
  add({zt}, {.to = DType::I32}).expect({Tensor::i32({3}, {1, 0, 0})}, kExact);
  add({zt}, {.to = DType::Bool}).expect({Tensor::of<uint8_t>(DType::Bool, {3}, z_truth)}, kExact);
  const C real[] = {{2.5f, 0}, {-1, 0}};
  add({f64({2.5, -1})}, {.to = DType::C64}).expect({Tensor::of<C>(DType::C64, {2}, real)}, kExact);

  // Small integers survive every round trip; equal dtypes copy; shapes stay.
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) {
      const int64_t top = from == DType::Bool || to == DType::Bool ? 1 : 100;
      add({integers({2, 1, 3}, 0, top, from)}, {.to = to}).check([to](const Tensors& in, const Tensors& out) {
        ASSERT_EQ(out[0].type(), (TensorType{{2, 1, 3}, to}));
        EXPECT_EQ(out[0].to_doubles(), in[0].to_doubles());
      });
    }
  // Values of every size and every kind of float, from and to every dtype; several blocks and a tail.
  std::vector<double> floats, ints;
  for (const double x :
       {0.0,     1e-45, 1e-39,        1e-8,         6e-8,         5.9e-5,  6.2e-5,
        0.3,     0.5,   0.999,        1.0,          1.0009765625, 2.9,     126.7,
        127.5,   128.0, 255.4,        256.0,        300.0,        32767.5, 65519.0,
        65520.0, 1e9,   2147483583.0, 2147483648.0, 9.3e18,       3e38,    static_cast<double>(INFINITY)})
    floats.insert(floats.end(), {x, -x});
  floats.push_back(NAN);
  for (int i = 0; i < 1500; ++i) {
    floats.push_back(std::ldexp(rng.uniform(-1, 1), static_cast<int>(rng.integer(-30, 40))));
    ints.push_back(std::round(std::ldexp(rng.uniform(-1, 1), static_cast<int>(rng.integer(1, 63)))));
  }
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) {
      const std::vector<double>& v = is_float(from) ? floats : ints;
      add({Tensor::from_doubles(DType::F64, {static_cast<int64_t>(v.size())}, v).cast(from)}, {.to = to});
    }
  add({random({0, 3})}, {.to = DType::I8}).expect({Tensor(DType::I8, {0, 3})});
}

TEST(Cast, IsAViewOnlyOfItsOwnDtype) {
  SymbolTable symbols;
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) {
      const TensorType x{{2}, from};
      const Attrs attrs(ops::CastAttrs{.to = to});
      const auto view = ops::cast.view(InferCall(ops::cast, {&x, 1}, attrs, symbols));
      EXPECT_EQ(view.has_value(), from == to);
      EXPECT_EQ(view.value_or(ViewOf{}).offset_elems, 0);
    }
}

}  // namespace rlx::test
