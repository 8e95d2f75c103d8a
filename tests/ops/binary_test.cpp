#include <bit>
#include <cmath>

#include "elementwise_cases.h"
#include "support/op_cases.h"

namespace rlx::test {

// Known values on floats, wrapping integers and complex numbers; broadcasting against an element-by-element formula.
static OpCase& broadcast_case(OpCase& c, double (*f)(double, double)) {
  return c.check([f](const Tensors& in, const Tensors& out) {
    ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 3, 4}));
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j)
        for (int64_t k = 0; k < 4; ++k)
          EXPECT_NEAR(out[0].at((i * 3 + j) * 4 + k), f(in[0].at(i * 4 + k), in[1].at(j)), 1e-6);
  });
}

OP_CASES(add) {
  add({Tensor::f32({2}, {1, 2}), Tensor::f32({2}, {0.5, -2})}).expect({Tensor::f32({2}, {1.5, 0})}, kExact);
  add({Tensor::i32({2}, {2147483647, 1}), Tensor::i32({}, {1})})
      .expect({Tensor::i32({2}, {-2147483647 - 1, 2})}, kExact);
  add({Tensor::i64({1}, {(int64_t{1} << 60) + 1}), Tensor::i64({1}, {1})})
      .expect({Tensor::i64({1}, {(int64_t{1} << 60) + 2})});
  broadcast_case(add({random({2, 1, 4}), random({3, 1})}), [](double a, double b) { return a + b; });
  for (const DType d : {DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8, DType::C64})
    add({random({3, 5}, d), random({5}, d)});
  add({random({0, 3}), random({3})}).expect({Tensor(DType::F32, {0, 3})});
  add_error({random({2, 3}), random({2})}, {}, "Sizes 3 and 2 do not broadcast");
  add_error({random({2}), random({2}, DType::F16)}, {}, "Operand dtypes (f32, f16) differ");
  add_error({random({2}, DType::Bool), random({2}, DType::Bool)}, {}, "has no arithmetic");
  add_broadcast_pairs(*this,
                      {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32});
}

OP_CASES(sub) {
  add({Tensor::f32({2}, {1, 2}), Tensor::f32({2}, {0.5, -2})}).expect({Tensor::f32({2}, {0.5, 4})}, kExact);
  add({integers({1}, 0, 0, DType::U8), integers({1}, 1, 1, DType::U8)})
      .expect({integers({1}, 255, 255, DType::U8)}, kExact);
  broadcast_case(add({random({2, 1, 4}), random({3, 1})}), [](double a, double b) { return a - b; });
  add_broadcast_pairs(*this,
                      {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32});
}

OP_CASES(mul) {
  add({Tensor::f32({2}, {3, 2}), Tensor::f32({2}, {0.5, -2})}).expect({Tensor::f32({2}, {1.5, -4})}, kExact);
  broadcast_case(add({random({2, 1, 4}), random({3, 1})}), [](double a, double b) { return a * b; });
  using C = std::complex<float>;
  const C a[] = {{1, 2}}, b[] = {{3, -1}}, product[] = {{5, 5}};
  add({Tensor::of<C>(DType::C64, {1}, a), Tensor::of<C>(DType::C64, {1}, b)})
      .expect({Tensor::of<C>(DType::C64, {1}, product)});
  add_broadcast_pairs(*this,
                      {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32});
}

// Integers of every dtype, several blocks of them, the ends of their ranges; 0 among the divisors throws.
template <class Builder>
static void divisions(Builder& b) {
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64}) {
    const auto divisors = [&](std::vector<int64_t> sizes) {
      Tensor t = b.integers(std::move(sizes), 1, 60, d);
      return is_signed(d) && b.rng.chance(0.5) ? run(ops::neg, {t})[0] : t;
    };
    for (const auto& [x, y] : broadcast_pairs()) b.add({b.random(x, d), divisors(y)});
    b.add_error({b.integers({3}, 1, 9, d), b.integers({}, 0, 0, d)}, {}, "An integer is divided by 0.");
    Tensor one_zero = divisors({1000});
    std::fill_n(one_zero.mutable_bytes().begin() + static_cast<int64_t>(777 * size_of(d)), size_of(d), std::byte{0});
    b.add_error({b.random({1000}, d), one_zero}, {}, "An integer is divided by 0.");
  }
  b.add({Tensor::i32({6}, {INT32_MIN, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN + 1}),
         Tensor::i32({6}, {-1, INT32_MAX, INT32_MIN, INT32_MIN, INT32_MAX - 1, INT32_MAX})});
  b.add({Tensor::i64({4}, {INT64_MIN, INT64_MIN, INT64_MAX, INT64_MIN}),
         Tensor::i64({4}, {-1, INT64_MAX, INT64_MIN, INT64_MIN})});
}

// To the last bit on every device, which no GPU's own division is: of any exponents, denormals, whole multiples of what
// they are divided by, and next to a power of two.
template <class Builder>
static void exact_quotients(Builder& b) {
  const auto of_bits = [](int64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); };
  std::vector<float> x, y;
  const auto pair = [&](float numerator, float divisor) {
    if (!std::isfinite(numerator) || !std::isfinite(divisor) || divisor == 0) return;
    x.push_back(numerator);
    y.push_back(divisor);
  };
  for (int i = 0; i < 4000; ++i) {
    const float any = of_bits(b.rng.integer(0, UINT32_MAX)), other = of_bits(b.rng.integer(0, UINT32_MAX));
    const float one = of_bits(b.rng.integer(0x3f800000, 0x3fffffff)),
                two = of_bits(b.rng.integer(0x3f800000, 0x3fffffff));
    const float tiny = of_bits(b.rng.integer(1, 0x7fffff)), whole = static_cast<float>(b.rng.integer(1, 255));
    pair(any, other);
    pair(one, two);
    pair(one * whole, one);
    pair(one, std::nextafter(one, i % 2 == 0 ? 0.0f : 4.0f));
    pair(tiny, two);
    pair(one, tiny);
    pair(std::ldexp(one, -70), std::ldexp(-two, static_cast<int>(b.rng.integer(50, 82))));  // a denormal, or nearly
  }
  std::vector<float> quotients;
  for (size_t i = 0; i < x.size(); ++i) quotients.push_back(x[i] / y[i]);
  const auto n = static_cast<int64_t>(x.size());
  b.add({Tensor::f32({n}, x), Tensor::f32({n}, y)}).expect({Tensor::f32({n}, quotients)}, kExact);
}

OP_CASES(div) {
  add({Tensor::f32({4}, {3, 1, -1, 0}), Tensor::f32({4}, {2, 0, 0, 0})})
      .expect({Tensor::f32({4}, {1.5, INFINITY, -INFINITY, NAN})}, kExact);
  add({Tensor::i32({4}, {7, -7, 7, -2147483647 - 1}), Tensor::i32({4}, {2, 2, -2, -1})})
      .expect({Tensor::i32({4}, {3, -3, -3, -2147483647 - 1})}, kExact);  // toward zero; the last one wraps
  broadcast_case(add({random({2, 1, 4}), random({3, 1}, 1, 2)}), [](double a, double b) { return a / b; });
  using C = std::complex<float>;
  const C a[] = {{5, 5}}, b[] = {{3, -1}}, quotient[] = {{1, 2}};
  add({Tensor::of<C>(DType::C64, {1}, a), Tensor::of<C>(DType::C64, {1}, b)})
      .expect({Tensor::of<C>(DType::C64, {1}, quotient)});
  divisions(*this);
  exact_quotients(*this);
  add_broadcast_pairs(*this, {DType::F16, DType::BF16});
}

OP_CASES(max) {
  add({Tensor::f32({4}, {1, -2, NAN, 0}), Tensor::f32({4}, {0, 3, 1, NAN})})
      .expect({Tensor::f32({4}, {1, 3, NAN, NAN})}, kExact);
  broadcast_case(add({random({2, 1, 4}), random({3, 1})}), [](double a, double b) { return std::fmax(a, b); });
  add({random({3, 5}, DType::I64), random({5}, DType::I64)});
  add_error({random({2}, DType::C64), random({2}, DType::C64)}, {}, "not defined for c64");
  add_broadcast_pairs(*this,
                      {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32});
}

OP_CASES(min) {
  add({Tensor::f32({4}, {1, -2, NAN, 0}), Tensor::f32({4}, {0, 3, 1, NAN})})
      .expect({Tensor::f32({4}, {0, -2, NAN, NAN})}, kExact);
  broadcast_case(add({random({2, 1, 4}), random({3, 1})}), [](double a, double b) { return std::fmin(a, b); });
  add_broadcast_pairs(*this,
                      {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32});
}

OP_CASES(pow) {
  add({Tensor::f32({5}, {2, -2, -2, 0, 4}), Tensor::f32({5}, {3, 3, 0.5, 0, 0.5})})
      .expect({Tensor::f32({5}, {8, -8, NAN, 1, 2})}, kRounding);
  add({Tensor::f32({12}, {0, -0.0f, -0.0f, INFINITY, -INFINITY, -INFINITY, -1, 1, NAN, NAN, 2, -8}),
       Tensor::f32({12}, {-1, -3, 3, -2, 3, 2.5f, INFINITY, NAN, 0, 1, -INFINITY, 1.0f / 3})})
      .expect({Tensor::f32({12}, {INFINITY, -INFINITY, -0.0f, 0, -INFINITY, INFINITY, 1, 1, 1, NAN, 0, NAN})}, kExact);
  add({Tensor::i32({4}, {2, -3, 5, -1}), Tensor::i32({4}, {10, 3, 0, -3})})
      .expect({Tensor::i32({4}, {1024, -27, 1, -1})}, kExact);
  // Large exponents ask for more digits of a logarithm than an f32 has.
  add({Tensor::f32({7}, {0.999f, 1.0001f, 0.99999f, 1.0000001f, 0.5f, 1e-40f, 1e-40f}),
       Tensor::f32({7}, {1000, 123456, -1e6f, 5e7f, 100.3f, -0.25f, 0.5f})})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 7; ++i) {
          const double expected = std::pow(in[0].at(i), in[1].at(i));
          EXPECT_NEAR(out[0].at(i), expected, 1e-6 * expected);
        }
      });
  broadcast_case(add({random({2, 1, 4}, 0.5, 2), random({3, 1})}), [](double a, double b) { return std::pow(a, b); });
  add_broadcast_pairs(*this, {DType::F16, DType::BF16}, 0.5, 3);
}

// NumPy's values: np.mod and np.fmod of the same operands.
static const std::vector<double> kDividends = {7, -7, 7, -7, 5.5, -5.5, 0, -0.0, -0.0, 3, -3, INFINITY, 1, NAN, 6, -6};
static const std::vector<double> kDivisors = {3, 3, -3, -3, 2, -2, 3, 3, -3, INFINITY, INFINITY, 2, 0, 1, 3, 3};
static Tensor floats(DType dtype, const std::vector<double>& values) {
  return Tensor::from_doubles(dtype, {static_cast<int64_t>(values.size())}, values);
}

OP_CASES(mod) {
  const std::vector<double> expected = {1, 2, -2, -1, 1.5, -1.5, 0, 0, -0.0, 3, INFINITY, NAN, NAN, NAN, 0, 0};
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({floats(d, kDividends), floats(d, kDivisors)}).expect({floats(d, expected)}, kExact);
  add({floats(DType::F64, {6, -6, 0}), floats(DType::F64, {-3, 3, -1})}).check([](const Tensors&, const Tensors& out) {
    for (const int64_t i : {0, 1, 2}) EXPECT_EQ(std::signbit(out[0].at(i)), i != 1) << "a zero has the sign of b";
  });
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64})
    add({floats(d, {7, -7, 7, -7, 6, -6, 0, -128, 127}), floats(d, {3, 3, -3, -3, -3, 3, 5, -1, -128})})
        .expect({floats(d, {1, 2, -2, -1, 0, 0, 0, 0, -1})}, kExact);
  for (const DType d : {DType::U8, DType::U16, DType::U32, DType::U64})
    add({floats(d, {7, 200, 3}), floats(d, {3, 7, 200})}).expect({floats(d, {1, 4, 3})}, kExact);
  const std::vector<uint64_t> a = {UINT64_MAX, UINT64_MAX, 5}, b = {10, UINT64_MAX - 1, UINT64_MAX}, r = {5, 1, 5};
  add({Tensor::of<uint64_t>(DType::U64, {3}, a), Tensor::of<uint64_t>(DType::U64, {3}, b)})
      .expect({Tensor::of<uint64_t>(DType::U64, {3}, r)});
  broadcast_case(add({random({2, 1, 4}, -9, 9), random({3, 1}, 1, 2)}),
                 [](double x, double y) { return x - y * std::floor(x / y); });
  divisions(*this);
  add_broadcast_pairs(*this, {DType::F16, DType::BF16, DType::F64}, 1, 9);
  add_error({random({2}, DType::Bool), random({2}, DType::Bool)}, {}, "has no arithmetic");
  add_error({random({2}, DType::C64), random({2}, DType::C64)}, {}, "Op 'mod' is not defined for c64.");
}

OP_CASES(fmod) {
  const std::vector<double> expected = {1, -1, 1, -1, 1.5, -1.5, 0, -0.0, -0.0, 3, -3, NAN, NAN, NAN, 0, -0.0};
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({floats(d, kDividends), floats(d, kDivisors)}).expect({floats(d, expected)}, kExact);
  add({floats(DType::F64, {6, -6, -0.0}), floats(DType::F64, {-3, 3, 1})})
      .check([](const Tensors&, const Tensors& out) {
        for (const int64_t i : {0, 1, 2}) EXPECT_EQ(std::signbit(out[0].at(i)), i != 0) << "a zero has the sign of a";
      });
  add({Tensor::f32({2}, {1e30f, -1e10f}), Tensor::f32({2}, {11, 7})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_EQ(out[0].at(0), 4) << "1e30f is 1000000015047466219876688855040";
    EXPECT_EQ(out[0].at(1), -4) << "10000000000 = 7 * 1428571428 + 4";
  });
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64})
    add({floats(d, {7, -7, 7, -7, 6, -6, 0, -128, 127}), floats(d, {3, 3, -3, -3, -3, 3, 5, -1, -128})})
        .expect({floats(d, {1, -1, 1, -1, 0, 0, 0, 0, 127})}, kExact);
  for (const DType d : {DType::U8, DType::U16, DType::U32, DType::U64})
    add({floats(d, {7, 200, 3}), floats(d, {3, 7, 200})}).expect({floats(d, {1, 4, 3})}, kExact);
  broadcast_case(add({random({2, 1, 4}, -9, 9), random({3, 1}, 1, 2)}),
                 [](double x, double y) { return x - y * std::trunc(x / y); });
  divisions(*this);
  add_broadcast_pairs(*this, {DType::F16, DType::BF16, DType::F64}, 1, 9);
  add_error({random({2}, DType::C64), random({2}, DType::C64)}, {}, "Op 'fmod' is not defined for c64.");
}

}  // namespace rlx::test
