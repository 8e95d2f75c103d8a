#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr double kInf = INFINITY;

Tensor f64(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from_doubles(DType::F64, {n}, values);
}
Tensor bools(std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::Bool, {static_cast<int64_t>(values.size())}, values);
}

// Everything special, and sizes of several blocks with a tail: for backends to agree on.
template <class Builder>
void many_values(Builder& b, double low, double high) {
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    b.add({b.random({3, 701}, low, high, d)});
    std::vector<double> v;
    for (const double x : {0.0, 1e-40, 1e-7, 0.25, 0.5, 0.75, 0.999, 1.0, 1.5, 2.5, 3.0, 10.0, 25.0, 88.5, 90.0, kInf})
      v.insert(v.end(), {x, -x});
    v.push_back(NAN);
    b.add({Tensor::from_doubles(d, {static_cast<int64_t>(v.size())}, v)});
  }
  b.add({b.random({40'001}, low, high)});
  b.add({b.random({0, 4})});
  b.add({b.random({}, low, high)});
}

// Every element against another formula: in f64 closely, in the other float types after rounding to them.
template <class Builder>
void formula(Builder& b, double low, double high, double (*f)(double)) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    b.add({b.random({37}, low, high, d)}).check([f, d](const Tensors& in, const Tensors& out) {
      ASSERT_EQ(out[0].type(), in[0].type());
      const double eps = d == DType::F64 ? 1e-11 : d == DType::F32 ? 1e-6 : d == DType::F16 ? 1e-3 : 8e-3;
      for (int64_t i = 0; i < out[0].num_elements(); ++i) {
        const double e = f(in[0].at(i));
        EXPECT_NEAR(out[0].at(i), e, eps * (std::fabs(e) + 0.01)) << "at x = " << in[0].at(i);
      }
    });
  many_values(b, low, high);
  for (const DType d : {DType::I32, DType::U8, DType::Bool, DType::C64})
    b.add_error({b.random({2}, d)}, {}, str("is not defined for ", d));
}

// Simpson's rule on the bell curve.
double erf_by_sum(double x) {
  const int n = 4000;
  const double h = x / n;
  double sum = 0;
  for (int i = 0; i <= n; ++i) sum += (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * std::exp(-(i * h) * (i * h));
  return sum * h / 3 * 2 / std::sqrt(M_PI);
}

}  // namespace

OP_CASES(erf) {
  // Abramowitz and Stegun, table 7.1.
  add({f64({0, 0.5, -1, 2, kInf, -kInf, NAN})})
      .expect({f64({0, 0.5204998778130465, -0.8427007929497149, 0.9953222650189527, 1, -1, NAN})}, {.rel = 1e-15});
  formula(*this, -3, 3, erf_by_sum);
}

OP_CASES(floor) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({f64({1.5, -1.5, 0.25, -0.25, 2, -3, 0.99609375, kInf, -kInf, NAN}).cast(d)})
        .expect({f64({1, -2, 0, -1, 2, -3, 0, kInf, -kInf, NAN}).cast(d)}, kExact);
  add({f64({-0.0, 0.0, 0.3, 2251799813685249.5, -2251799813685249.5})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::signbit(out[0].at(0)));
    EXPECT_FALSE(std::signbit(out[0].at(1)));
    EXPECT_FALSE(std::signbit(out[0].at(2)));
    EXPECT_EQ(out[0].at(3), 2251799813685249);
    EXPECT_EQ(out[0].at(4), -2251799813685250);
  });
  add({Tensor::f32({4}, {8388607.5f, -8388607.5f, 0.99999994f, 3e38f})})
      .expect({Tensor::f32({4}, {8388607, -8388608, 0, 3e38f})}, kExact);
  many_values(*this, -9, 9);
  add_error({random({2}, DType::I32)}, {}, "Op 'floor' is not defined for i32.");
}

OP_CASES(ceil) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({f64({1.5, -1.5, 0.25, -0.25, 2, -3, 127.5, kInf, -kInf, NAN}).cast(d)})
        .expect({f64({2, -1, 1, -0.0, 2, -3, 128, kInf, -kInf, NAN}).cast(d)}, kExact);
  add({f64({-0.0, 0.0, -0.3})}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::signbit(out[0].at(0)));
    EXPECT_FALSE(std::signbit(out[0].at(1)));
    EXPECT_TRUE(std::signbit(out[0].at(2)));
  });
  many_values(*this, -9, 9);
  add_error({random({2}, DType::Bool)}, {}, "Op 'ceil' is not defined for bool.");
}

OP_CASES(sign) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({f64({3, -0.5, 0, -0.0, kInf, -kInf, NAN}).cast(d)}).expect({f64({1, -1, 0, 0, 1, -1, NAN}).cast(d)}, kExact);
  add({f64({-0.0})}).check([](const Tensors&, const Tensors& out) { EXPECT_FALSE(std::signbit(out[0].at(0))); });
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64})
    add({f64({3, -7, 0, 100, -128}).cast(d)}).expect({f64({1, -1, 0, 1, -1}).cast(d)}, kExact);
  add({Tensor::i64({3}, {INT64_MIN, INT64_MAX, 0})}).expect({Tensor::i64({3}, {-1, 1, 0})});
  for (const DType d : {DType::U8, DType::U16, DType::U32, DType::U64})
    add({f64({3, 0, 200}).cast(d)}).expect({f64({1, 0, 1}).cast(d)}, kExact);
  add({Tensor::of<uint64_t>(DType::U64, {1}, std::vector<uint64_t>{UINT64_MAX})})
      .expect({Tensor::of<uint64_t>(DType::U64, {1}, std::vector<uint64_t>{1})});
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U16}) add({random({5, 301}, d)});
  many_values(*this, -3, 3);
  for (const DType d : {DType::Bool, DType::C64}) add_error({random({2}, d)}, {}, str("is not defined for ", d));
}

OP_CASES(asin) {
  add({f64({0, 0.5, -1, 1.5, -kInf, NAN})}).expect({f64({0, M_PI / 6, -M_PI_2, NAN, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -0.99, 0.99, [](double x) { return 2 * std::atan(x / (1 + std::sqrt(1 - x * x))); });
}

OP_CASES(acos) {
  add({f64({0, 0.5, -1, 1, 1.5, kInf, NAN})}).expect({f64({M_PI_2, M_PI / 3, M_PI, 0, NAN, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -0.99, 0.99, [](double x) { return 2 * std::atan(std::sqrt((1 - x) / (1 + x))); });
}

OP_CASES(sinh) {
  add({f64({0, M_LN2, -M_LN2, 1000, -kInf, NAN})}).expect({f64({0, 0.75, -0.75, kInf, -kInf, NAN})}, {.rel = 1e-15});
  formula(*this, -4, 4, [](double x) { return (std::expm1(x) + std::expm1(x) / (std::expm1(x) + 1)) / 2; });
}

OP_CASES(cosh) {
  add({f64({0, M_LN2, -M_LN2, 1000, -kInf, NAN})}).expect({f64({1, 1.25, 1.25, kInf, kInf, NAN})}, {.rel = 1e-15});
  formula(*this, -4, 4, [](double x) { return (std::exp(x) + std::exp(-x)) / 2; });
}

OP_CASES(asinh) {
  add({f64({0, 0.75, -0.75, kInf, -kInf, NAN})}).expect({f64({0, M_LN2, -M_LN2, kInf, -kInf, NAN})}, {.rel = 1e-15});
  formula(*this, -4, 4, [](double x) {
    const double a = std::fabs(x), y = std::log1p(a + a * a / (1 + std::sqrt(1 + a * a)));
    return std::copysign(y, x);
  });
}

OP_CASES(acosh) {
  add({f64({1, 1.25, 0.5, -3, kInf, NAN})}).expect({f64({0, M_LN2, NAN, NAN, kInf, NAN})}, {.rel = 1e-15});
  formula(*this, 1.1, 9, [](double x) { return std::log(x + std::sqrt(x * x - 1)); });
}

OP_CASES(atanh) {
  add({f64({0, 0.5, 1, -1, 2, NAN})}).expect({f64({0, 0.5 * std::log(3.0), kInf, -kInf, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -0.99, 0.99, [](double x) { return (std::log1p(x) - std::log1p(-x)) / 2; });
}

OP_CASES(is_nan) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    add({f64({1, NAN, kInf, -NAN, 0, -kInf}).cast(d)}).expect({bools({0, 1, 0, 1, 0, 0})}, kExact);
  many_values(*this, -3, 3);
  add_error({random({2}, DType::I32)}, {}, "Op 'is_nan' is not defined for i32.");
}

OP_CASES(is_inf) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    const Tensor x = f64({1, NAN, kInf, 0, -kInf, 60000}).cast(d);
    add({x}).expect({bools({0, 0, 1, 0, 1, 0})}, kExact);
    add({x}, {.detect_negative = false}).expect({bools({0, 0, 1, 0, 0, 0})}, kExact);
    add({x}, {.detect_positive = false}).expect({bools({0, 0, 0, 0, 1, 0})}, kExact);
    add({x}, {.detect_positive = false, .detect_negative = false}).expect({bools({0, 0, 0, 0, 0, 0})}, kExact);
  }
  many_values(*this, -3, 3);
  add_error({random({2}, DType::U8)}, {}, "Op 'is_inf' is not defined for u8.");
}

}  // namespace rlx::test
