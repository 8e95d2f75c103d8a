#include <cmath>
#include <complex>
#include <limits>
#include <set>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

// Another loop order than the kernel's: for each result element, all operand elements that agree with it off the axes.
Tensor by_result(const Tensor& x, const ops::ReduceAttrs& attrs, double identity, double (*f)(double, double)) {
  std::set<int64_t> axes;
  for (const int64_t a : attrs.axes) axes.insert(normalize_axis(a, x.rank()));
  std::vector<int64_t> kept, shape;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t size = axes.contains(d) ? 1 : x.sizes()[static_cast<size_t>(d)];
    kept.push_back(size);
    if (!axes.contains(d) || attrs.keep_dim) shape.push_back(size);
  }
  std::vector<double> values(static_cast<size_t>(product(kept)), identity);
  for (size_t r = 0; r < values.size(); ++r)
    for (int64_t i = x.num_elements(); i-- > 0;) {
      int64_t rest = i, at = 0, stride = 1;
      for (int64_t d = x.rank(); d-- > 0;) {
        const int64_t size = x.sizes()[static_cast<size_t>(d)];
        if (!axes.contains(d)) at += rest % size * stride, stride *= size;
        rest /= size;
      }
      if (at == static_cast<int64_t>(r)) values[r] = f(values[r], x.at(i));
    }
  return Tensor::from_doubles(x.dtype(), shape, values);
}

const ops::ReduceAttrs kAxes[] = {{.axes = {0}},
                                  {.axes = {1}},
                                  {.axes = {-1}},
                                  {.axes = {2, 0}},
                                  {.axes = {-3, -1}, .keep_dim = true},
                                  {.axes = {1, 2}},
                                  {.axes = {0, 1, 2}},
                                  {.axes = {0, 1, 2}, .keep_dim = true}};

template <class Builder>
void against_formula(Builder& b, double identity, double (*f)(double, double), double low = -2) {
  for (const ops::ReduceAttrs& attrs : kAxes)
    b.add({b.random({3, 4, 5}, low, 2)}, attrs).check([=](const Tensors& in, const Tensors& out) {
      EXPECT_TRUE(near(out[0], by_result(in[0], attrs, identity, f), kAccumulation));
    });
  b.add({b.random({0, 4})}, {.axes = {1}}).expect({Tensor(DType::F32, {0})});
  b.add({Tensor::f32({}, {3})}, {}).expect({Tensor::f32({}, {3})}, kExact);
  b.add({Tensor::f32({2, 1}, {3, -0.0f})}, {}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_EQ(out[0], in[0]);  // no axes: a copy, -0 included
  });
  b.add({Tensor::f32({2, 2}, {1, NAN, 2, 3})}, {.axes = {1}}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::isnan(out[0].at(0)));
    EXPECT_FALSE(std::isnan(out[0].at(1)));
  });
  b.add({Tensor::f32({2, 2}, {NAN, 1, 2, 3})}, {.axes = {1}}).check([](const Tensors&, const Tensors& out) {
    EXPECT_TRUE(std::isnan(out[0].at(0)));
  });
  b.add_error({b.random({2, 3})}, {.axes = {2}}, "Axis (2) is out of range for rank (2)");
  b.add_error({b.random({2, 3})}, {.axes = {1, -1}}, "Axes [1, -1] name axis (1) twice");
  b.add_error({b.random({2, 3}, DType::Bool)}, {.axes = {0}}, "has no arithmetic");
}

// Sizes that reach every path of a fast kernel: short and long rows, blocks of one result, strips of columns, several
// kept and reduced runs, odd ends; where a NaN is, and all dtypes.
template <class Builder>
void of_many_sizes(Builder& b, double low, double high) {
  struct Sized {
    std::vector<int64_t> sizes, axes;
  };
  const Sized kSized[] = {{{300, 3}, {1}},         {{9, 131}, {1}},          {{70000}, {0}},
                          {{3, 40000}, {1}},       {{150, 257}, {1}},        {{1000, 7}, {0}},
                          {{600, 70}, {0}},        {{3, 700}, {0}},          {{5, 33, 600}, {1}},
                          {{2, 5, 3, 70}, {1, 3}}, {{7, 5, 9, 11}, {0, 2}},  {{2, 3, 70, 5, 2}, {0, 2, 4}},
                          {{1, 40, 1, 50}, {1}},   {{130, 2, 2, 3}, {1, 3}}, {{520, 3, 5}, {0, 2}},
                          {{3, 5, 40, 9}, {0, 2}}, {{4, 3, 33, 70}, {0, 2}}};
  for (const Sized& s : kSized) b.add({b.random(s.sizes, low, high)}, {.axes = s.axes});
  // Axes of size 1 between others, and apart from them.
  const Sized kOnes[] = {{{7, 1, 13}, {0, 2}}, {{5, 1, 4, 6}, {0, 2, 3}}, {{1, 6, 5, 7}, {0, 2, 3}},
                         {{6, 5, 1}, {0, 2}},  {{1, 6, 1, 5}, {0, 2}},    {{3, 1, 4, 1, 5, 1}, {0, 2, 5}}};
  for (const Sized& s : kOnes)
    for (const bool keep_dim : {false, true})
      b.add({b.random(s.sizes, low, high)}, {.axes = s.axes, .keep_dim = keep_dim});
  for (const DType d : {DType::F16, DType::BF16}) {
    b.add({b.random({9, 1300}, low, high, d)}, {.axes = {1}});
    b.add({b.random({2, 5000}, low, high, d)}, {.axes = {1}});
    b.add({b.random({40, 530}, low, high, d)}, {.axes = {0}});
    b.add({b.random({6, 7, 20}, low, high, d)}, {.axes = {0, 2}});
  }
  for (const DType d : {DType::I32, DType::I64}) {
    b.add({b.integers({9, 131}, -90, 90, d)}, {.axes = {1}});
    b.add({b.integers({600, 35}, -90, 90, d)}, {.axes = {0}});
    b.add({b.integers({40000}, -90, 90, d)}, {.axes = {0}});
  }
  for (const int64_t at : {0, 5, 70, 299}) {
    std::vector<float> values(300, 1.0f);
    values[static_cast<size_t>(at)] = NAN;
    for (const int64_t axis : {0, 1}) b.add({Tensor::f32({20, 15}, values)}, {.axes = {axis}});
    b.add({Tensor::f32({300}, values)}, {.axes = {0}});
    values[static_cast<size_t>(at)] = INFINITY;
    b.add({Tensor::f32({20, 15}, values)}, {.axes = {0}});
    values[17] = -INFINITY;
    b.add({Tensor::f32({300}, values)}, {.axes = {0}});
  }
}

using C = std::complex<float>;
Tensor complex(std::vector<int64_t> sizes, std::vector<C> values) {
  return Tensor::of<C>(DType::C64, std::move(sizes), values);
}
Tensor u8(std::vector<int64_t> sizes, std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::U8, std::move(sizes), values);
}
Tensor u64(std::vector<int64_t> sizes, std::vector<uint64_t> values) {
  return Tensor::of<uint64_t>(DType::U64, std::move(sizes), values);
}
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min(), kMax64 = std::numeric_limits<int64_t>::max();
constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min(), kMax32 = std::numeric_limits<int32_t>::max();

}  // namespace

OP_CASES(reduce_sum) {
  against_formula(*this, 0, [](double a, double b) { return a + b; });
  add({Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {.axes = {0}}).expect({Tensor::f32({3}, {5, 7, 9})}, kExact);
  add({Tensor(DType::F32, {2, 0})}, {.axes = {1}}).expect({Tensor::f32({2}, {0, 0})}, kExact);
  add({Tensor::i32({2}, {kMax32, 1})}, {.axes = {0}}).expect({Tensor::i32({}, {kMin32})}, kExact);
  add({Tensor::i64({2}, {(int64_t{1} << 60) + 1, 1})}, {.axes = {0}})
      .expect({Tensor::i64({}, {(int64_t{1} << 60) + 2})});
  add({u8({3}, {200, 50, 10})}, {.axes = {0}}).expect({u8({}, {4})}, kExact);
  add({complex({2, 2}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}})}, {.axes = {0}})
      .expect({complex({2}, {{6, 8}, {10, 12}})}, kExact);
  // 1e8 + 1 + … in f32 would lose every 1.
  std::vector<float> many(1001, 1.0f);
  many[0] = 1e8f;
  add({Tensor::f32({1001}, many)}, {.axes = {0}}).expect({Tensor::f32({}, {100001000.0f})}, kExact);
  for (const DType d : {DType::F16, DType::BF16, DType::F64, DType::I8, DType::I16, DType::U32})
    add({random({7, 9}, d)}, {.axes = {0}});
  of_many_sizes(*this, -2, 2);
}

OP_CASES(reduce_mean) {
  for (const ops::ReduceAttrs& attrs : kAxes)
    add({random({3, 4, 5}, DType::F64)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
      const Tensor sum = run(ops::reduce_sum, {in[0]}, attrs)[0];
      const double count = static_cast<double>(in[0].num_elements() / out[0].num_elements());
      for (int64_t i = 0; i < sum.num_elements(); ++i) EXPECT_DOUBLE_EQ(out[0].at(i) * count, sum.at(i));
    });
  add({Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {.axes = {1}}).expect({Tensor::f32({2}, {2, 5})}, kExact);
  add({Tensor(DType::F32, {2, 0})}, {.axes = {1}}).expect({Tensor::f32({2}, {NAN, NAN})});
  add({Tensor::i32({2, 2}, {-3, 0, 3, 0})}, {.axes = {1}}).expect({Tensor::i32({2}, {-1, 1})}, kExact);
  add({Tensor::i32({2}, {kMax32, kMax32})}, {.axes = {0}}).expect({Tensor::i32({}, {kMax32})}, kExact);
  const int64_t top = std::numeric_limits<int64_t>::max();
  add({Tensor::i64({3}, {top, top, top})}, {.axes = {0}}).expect({Tensor::i64({}, {top})});
  add({complex({2}, {{1, 2}, {3, -4}})}, {.axes = {0}}).expect({complex({}, {{2, -1}})}, kExact);
  of_many_sizes(*this, -2, 2);
  add_error({Tensor(DType::I32, {2, 0})}, {.axes = {1}}, "The mean of 0 integers is not defined");
}

OP_CASES(reduce_max) {
  against_formula(*this, -INFINITY, [](double a, double b) { return std::fmax(a, b); });
  add({Tensor(DType::F32, {2, 0})}, {.axes = {1}}).expect({Tensor::f32({2}, {-INFINITY, -INFINITY})}, kExact);
  add({Tensor(DType::I32, {1, 0})}, {.axes = {1}}).expect({Tensor::i32({1}, {kMin32})}, kExact);
  add({Tensor(DType::U8, {1, 0})}, {.axes = {1}}).expect({u8({1}, {0})}, kExact);
  add({Tensor(DType::I64, {2, 0})}, {.axes = {1}}).expect({Tensor::i64({2}, {kMin64, kMin64})});
  add({Tensor(DType::U64, {1, 0})}, {.axes = {1}}).expect({u64({1}, {0})});
  add({Tensor::i64({3}, {(int64_t{1} << 60), (int64_t{1} << 60) + 1, -5})}, {.axes = {0}})
      .expect({Tensor::i64({}, {(int64_t{1} << 60) + 1})});
  add({Tensor::f32({3}, {-INFINITY, -3, -7})}, {.axes = {0}}).expect({Tensor::f32({}, {-3})}, kExact);
  for (const DType d : {DType::F16, DType::BF16, DType::I8, DType::U8}) add({random({7, 9}, d)}, {.axes = {1}});
  of_many_sizes(*this, -2, 2);
  add_error({random({2}, DType::C64)}, {.axes = {0}}, "Op 'reduce_max' is not defined for c64");
}

OP_CASES(reduce_min) {
  against_formula(*this, INFINITY, [](double a, double b) { return std::fmin(a, b); });
  add({Tensor(DType::F32, {2, 0})}, {.axes = {1}}).expect({Tensor::f32({2}, {INFINITY, INFINITY})}, kExact);
  add({Tensor(DType::I32, {1, 0})}, {.axes = {1}}).expect({Tensor::i32({1}, {kMax32})}, kExact);
  add({Tensor(DType::U8, {1, 0})}, {.axes = {1}}).expect({u8({1}, {255})}, kExact);
  add({Tensor(DType::I64, {0, 2})}, {.axes = {0}}).expect({Tensor::i64({2}, {kMax64, kMax64})});
  add({Tensor(DType::U64, {1, 0})}, {.axes = {1}}).expect({u64({1}, {UINT64_MAX})});
  add({u8({3}, {200, 50, 90})}, {.axes = {0}}).expect({u8({}, {50})}, kExact);
  of_many_sizes(*this, -2, 2);
  add_error({random({2}, DType::C64)}, {.axes = {0}}, "not defined for c64");
}

OP_CASES(reduce_prod) {
  against_formula(
      *this, 1, [](double a, double b) { return a * b; }, 0.5);
  add({Tensor(DType::F32, {2, 0})}, {.axes = {1}}).expect({Tensor::f32({2}, {1, 1})}, kExact);
  add({Tensor::i32({2, 2}, {3, -4, 65536, 65536})}, {.axes = {1}}).expect({Tensor::i32({2}, {-12, 0})}, kExact);
  add({complex({2}, {{1, 2}, {3, -1}})}, {.axes = {0}}).expect({complex({}, {{5, 5}})}, kExact);
  // A product may leave the range of f32 and come back.
  add({Tensor::f32({4}, {1e30f, 1e30f, 1e-30f, 1e-30f})}, {.axes = {0}}).expect({Tensor::f32({}, {1})}, kRounding);
  of_many_sizes(*this, 0.99, 1.01);
}

TEST(Reduce, EachKindNamesItsOp) {
  for (int32_t k = 0; k < 5; ++k) {
    const auto kind = static_cast<ops::ReduceKind>(k);
    EXPECT_EQ(ops::reduce_op(kind).name, "reduce_" + std::string(name_of(kind)));
  }
}

}  // namespace rlx::test
