#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

using C = std::complex<float>;
static constexpr double kInf = INFINITY;

static Tensor f64(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from_doubles(DType::F64, {n}, values);
}
static Tensor c64(std::vector<C> values) {
  return Tensor::of<C>(DType::C64, {static_cast<int64_t>(values.size())}, values);
}

// Every element against another formula: in f64 closely, in the other float types after rounding to them.
template <class Builder>
static void formula(Builder& b, double low, double high, double (*f)(double)) {
  for (const DType d : {DType::F64, DType::F32, DType::F16, DType::BF16})
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{37}, {2, 1, 3}, {}})
      b.add({b.random(sizes, low, high, d)}).check([f, d](const Tensors& in, const Tensors& out) {
        ASSERT_EQ(out[0].type(), in[0].type());
        const double eps = d == DType::F64 ? 1e-12 : d == DType::F32 ? 1e-6 : d == DType::F16 ? 1e-3 : 8e-3;
        for (int64_t i = 0; i < out[0].num_elements(); ++i) {
          const double e = f(in[0].at(i));
          EXPECT_NEAR(out[0].at(i), e, eps * (std::fabs(e) + 0.01)) << "at x = " << in[0].at(i);
        }
      });
  b.add({b.random({0, 4})}).expect({Tensor(DType::F32, {0, 4})});
  // Several blocks and a tail, enough for several threads, and everything that is special: for backends to agree on.
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) b.add({b.random({3, 701}, low, high, d)});
  b.add({b.random({40'001}, low, high)});
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    std::vector<double> v;
    for (const double x : {0.0, 1e-40, 1e-7, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.0, 10.0, 25.0, 50.0, 88.5, 90.0, kInf})
      v.insert(v.end(), {x, -x});
    v.push_back(NAN);
    b.add({Tensor::from_doubles(d, {static_cast<int64_t>(v.size())}, v)});
  }
}

// What only floats have.
template <class Builder>
static void float_only(Builder& b) {
  for (const DType d : {DType::I32, DType::U8, DType::Bool, DType::C64})
    b.add_error({b.random({2}, d)}, {}, str("is not defined for ", d));
}

// tanh by its power series where it is small, by exponentials elsewhere.
static double tanh_formula(double x) { return std::expm1(2 * x) / (std::expm1(2 * x) + 2); }

// Simpson's rule on the normal density: 0.5 (1 + erf(x / sqrt 2)) without erf.
static double normal_cdf(double x) {
  const int n = 2000;
  const double h = x / n;
  double sum = 0;
  for (int i = 0; i <= n; ++i) sum += (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * std::exp(-(i * h) * (i * h) / 2);
  return 0.5 + sum * h / 3 / std::sqrt(2 * M_PI);
}

template <class Builder>
static void signed_integers(Builder& b) {
  for (const DType d : {DType::I8, DType::I16, DType::I32, DType::I64}) b.add({b.random({5, 301}, d)});
  b.add({Tensor::i32({4}, {INT32_MIN, INT32_MAX, 0, -1})});
}

OP_CASES(relu) {
  add({f64({-2, -0.0, 0, 3, kInf, -kInf, NAN})}).expect({f64({0, -0.0, 0, 3, kInf, 0, NAN})}, kExact);
  add({Tensor::i64({4}, {(int64_t{1} << 62) + 1, -5, 0, INT64_MIN})})
      .expect({Tensor::i64({4}, {(int64_t{1} << 62) + 1, 0, 0, 0})}, kExact);
  add({integers({3}, -7, -7, DType::I8)}).expect({integers({3}, 0, 0, DType::I8)}, kExact);
  signed_integers(*this);
  formula(*this, -3, 3, [](double x) { return (x + std::fabs(x)) / 2; });
  for (const DType d : {DType::U8, DType::Bool, DType::C64}) add_error({random({2}, d)}, {}, "is not defined for");
}

OP_CASES(sigmoid) {
  add({f64({0, std::log(3.0), -std::log(3.0), 1e4, -1e4, kInf, -kInf, NAN})})
      .expect({f64({0.5, 0.75, 0.25, 1, 0, 1, 0, NAN})}, {.rel = 1e-15});
  formula(*this, -9, 9, [](double x) { return 0.5 + 0.5 * tanh_formula(x / 2); });
  float_only(*this);
}

OP_CASES(tanh) {
  add({f64({0, 0.5 * std::log(3.0), 1e6, -kInf, NAN})}).expect({f64({0, 0.5, 1, -1, NAN})}, {.rel = 1e-15});
  formula(*this, -5, 5, tanh_formula);
  float_only(*this);
}

OP_CASES(exp) {
  add({f64({0, 1, M_LN2, -kInf, 1e4, NAN})}).expect({f64({1, M_E, 2, 0, kInf, NAN})}, {.rel = 1e-15});
  add({Tensor::f32({2}, {88, 89})}).expect({Tensor::f32({2}, {1.6516363e38f, INFINITY})}, kRounding);
  formula(*this, -4, 4, [](double x) { return std::pow(M_E, x); });
  // e^(i pi) = -1; e^(a + ib) = e^a (cos b + i sin b)
  add({c64({{0, 0}, {1, 0}, {0, static_cast<float>(M_PI)}, {0.5f, -2}})})
      .expect(
          {c64({{1, 0}, {2.718281828f, 0}, {-1, 0}, {1.6487212707f * -0.4161468365f, 1.6487212707f * -0.9092974268f}})},
          {.abs = 5e-7});
  add_error({random({2}, DType::I32)}, {}, "Op 'exp' is not defined for i32.");
}

OP_CASES(log) {
  add({f64({1, M_E, 8, 0, -1, kInf, NAN})}).expect({f64({0, 1, 3 * M_LN2, -kInf, NAN, kInf, NAN})}, {.abs = 1e-15});
  formula(*this, 0.1, 9, [](double x) { return std::log2(x) * M_LN2; });
  add({c64({{1, 0}, {-1, 0}, {0, 2}, {3, -4}})})
      .expect({c64({{0, 0},
                    {0, static_cast<float>(M_PI)},
                    {static_cast<float>(M_LN2), static_cast<float>(M_PI_2)},
                    {std::log(5.0f), -std::atan2(4.0f, 3.0f)}})},
              {.abs = 1e-6});
  add({random({9}, DType::C64)}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_TRUE(near(run(ops::exp, out)[0], in[0], {.rel = 1e-5, .abs = 1e-6}));  // principal: log is a right inverse
  });
  add_error({random({2}, DType::I64)}, {}, "is not defined for i64");
}

OP_CASES(sqrt) {
  add({f64({0, 4, 2, -1, kInf, NAN})}).expect({f64({0, 2, M_SQRT2, NAN, kInf, NAN})}, kExact);
  formula(*this, 0, 9, [](double x) { return std::pow(x, 0.5); });
  add({c64({{4, 0}, {-4, 0.0f}, {-4, -0.0f}, {3, 4}, {3, -4}, {0, 2}, {0, 0}})})
      .expect({c64({{2, 0}, {0, 2}, {0, 2}, {2, 1}, {2, -1}, {1, 1}, {0, 0}})}, kRounding);
  add({random({31}, DType::C64)}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_TRUE(near(run(ops::mul, {out[0], out[0]})[0], in[0], {.abs = 2e-6}));
    for (const C& root : out[0].values<C>()) EXPECT_GE(root.real(), 0);
  });
  add_error({random({2}, DType::U32)}, {}, "is not defined for u32");
}

OP_CASES(rsqrt) {
  add({f64({4, 0, -1, kInf, NAN})}).expect({f64({0.5, kInf, NAN, 0, NAN})}, kExact);
  formula(*this, 0.1, 9, [](double x) { return std::pow(x, -0.5); });
  float_only(*this);
}

OP_CASES(neg) {
  add({f64({1, -2, kInf, NAN})}).expect({f64({-1, 2, -kInf, NAN})}, kExact);
  add({Tensor::i64({2}, {(int64_t{1} << 60) + 1, INT64_MIN})})
      .expect({Tensor::i64({2}, {-(int64_t{1} << 60) - 1, INT64_MIN})}, kExact);
  add({integers({1}, -128, -128, DType::I8)}).expect({integers({1}, -128, -128, DType::I8)}, kExact);  // wraps
  add({c64({{1, -2}})}).expect({c64({{-1, 2}})}, kExact);
  signed_integers(*this);
  formula(*this, -3, 3, [](double x) { return 0 - x; });
  for (const DType d : {DType::U8, DType::U32, DType::Bool}) add_error({random({2}, d)}, {}, "is not defined for");
}

OP_CASES(abs) {
  add({f64({1, -2, -0.0, -kInf, NAN})}).expect({f64({1, 2, 0, kInf, NAN})}, kExact);
  add({Tensor::i64({3}, {-(int64_t{1} << 60) - 1, 7, INT64_MIN})})
      .expect({Tensor::i64({3}, {(int64_t{1} << 60) + 1, 7, INT64_MIN})}, kExact);
  add({integers({1}, -128, -128, DType::I8)}).expect({integers({1}, -128, -128, DType::I8)}, kExact);
  signed_integers(*this);
  formula(*this, -3, 3, [](double x) { return std::sqrt(x * x); });
  for (const DType d : {DType::U8, DType::Bool, DType::C64}) add_error({random({2}, d)}, {}, "is not defined for");
}

OP_CASES(gelu) {
  // The tanh form is off by up to 5e-4: these values tell the two apart.
  add({f64({0, 1, -1, 2, 40, -40, kInf, NAN})})
      .expect({f64({0, 0.8413447460685429, -0.15865525393145707, 1.9544997361036416, 40, 0, kInf, NAN})},
              {.rel = 1e-14, .abs = 1e-300});
  formula(*this, -4, 4, [](double x) { return x * normal_cdf(x); });
  float_only(*this);
}

OP_CASES(silu) {
  add({f64({0, std::log(3.0), 1e4, -1e4, kInf, NAN})})
      .expect({f64({0, 0.75 * std::log(3.0), 1e4, 0, kInf, NAN})}, {.rel = 1e-15});
  formula(*this, -9, 9, [](double x) { return x * (0.5 + 0.5 * tanh_formula(x / 2)); });
  float_only(*this);
}

OP_CASES(gelu_approx) {
  // PyTorch, gelu(x, approximate="tanh").
  add({f64({0, 1, -1, 40, -40, NAN})})
      .expect({f64({0, 0.8411919906082768, -0.15880800939172324, 40, 0, NAN})}, {.rel = 1e-13});
  formula(*this, -4, 4,
          [](double x) { return 0.5 * x * (1 + tanh_formula(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3)))); });
  float_only(*this);
}

OP_CASES(round) {
  add({f64({0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.51, -2.51, 1e300, kInf, NAN})})
      .expect({f64({0, 2, 2, -0.0, -2, 0, 3, -3, 1e300, kInf, NAN})}, kExact);
  add({Tensor::f32({2}, {0.49999997f, 8388607.5f})}).expect({Tensor::f32({2}, {0, 8388608})}, kExact);
  formula(*this, -9, 9, [](double x) { return x - std::remainder(x, 1.0); });  // remainder ties to even
  float_only(*this);
}

OP_CASES(sin) {
  add({f64({0, M_PI / 6, M_PI_2, kInf, NAN})}).expect({f64({0, 0.5, 1, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -9, 9, [](double x) { return 2 * std::sin(x / 2) * std::cos(x / 2); });
  float_only(*this);
}

OP_CASES(cos) {
  add({f64({0, M_PI / 3, M_PI, kInf, NAN})}).expect({f64({1, 0.5, -1, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -9, 9, [](double x) { return 1 - 2 * std::sin(x / 2) * std::sin(x / 2); });
  float_only(*this);
}

OP_CASES(tan) {
  add({f64({0, M_PI_4, -M_PI_4, kInf, NAN})}).expect({f64({0, 1, -1, NAN, NAN})}, {.rel = 1e-15});
  formula(*this, -1.4, 1.4, [](double x) { return std::sin(x) / std::cos(x); });
  float_only(*this);
}

OP_CASES(atan) {
  add({f64({0, 1, -1, kInf, -kInf, NAN})}).expect({f64({0, M_PI_4, -M_PI_4, M_PI_2, -M_PI_2, NAN})}, {.rel = 1e-15});
  formula(*this, -9, 9, [](double x) { return std::asin(x / std::sqrt(1 + x * x)); });
  float_only(*this);
}

TEST(Activation, KindsNumberTheOpsAsTheSpecificationDoes) {
  using enum ops::ActivationKind;
  EXPECT_EQ(ops::spec_id(kRelu), 0);
  EXPECT_EQ(ops::spec_id(kGelu), 9);
  EXPECT_EQ(ops::spec_id(kAtan), 16);
  for (int32_t k = 1; k <= 17; ++k) {
    const auto kind = static_cast<ops::ActivationKind>(k);
    EXPECT_EQ(ops::activation_op(kind).name, name_of(kind));
  }
  EXPECT_THROW(ops::activation_op(kNone), Error);
}

TEST(Activation, AnEpilogueWithoutActivationIsTheValueItself) {
  Graph g;
  const Value x = g.input("x", {{2}, DType::F32});
  EXPECT_EQ(ops::activate(x, ops::ActivationKind::kNone).id(), x.id());
  EXPECT_EQ(g.node_of(ops::activate(x, ops::ActivationKind::kGelu).id()).op, &ops::gelu);
  EXPECT_EQ(g.node_of((-x).id()).op, &ops::neg);
}

}  // namespace rlx::test
