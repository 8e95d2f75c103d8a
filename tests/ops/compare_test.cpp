#include <cmath>

#include "elementwise_cases.h"
#include "support/op_cases.h"

namespace rlx::test {

using C = std::complex<float>;

static Tensor bools(std::vector<uint8_t> values) {
  return Tensor::of<uint8_t>(DType::Bool, {static_cast<int64_t>(values.size())}, values);
}

// Less, equal, greater, NaN on either side; 2^53 and 2^53 + 1 are one double but two integers; operands of all dtypes
// against C++'s own operator, broadcast in the middle.
template <class Builder>
static void compare_cases(Builder& b, std::vector<uint8_t> less_equal_greater, bool with_nan,
                          bool (*f)(double, double)) {
  const auto [l, e, g] = std::tuple(less_equal_greater[0], less_equal_greater[1], less_equal_greater[2]);
  const uint8_t n = with_nan;
  b.add({Tensor::f32({6}, {1, 2, 3, NAN, 1, NAN}), Tensor::f32({6}, {2, 2, 2, 1, NAN, NAN})})
      .expect({bools({l, e, g, n, n, n})}, kExact);
  b.add({Tensor::f32({3}, {-INFINITY, 0.0f, INFINITY}), Tensor::f32({3}, {0, -0.0f, 1})})
      .expect({bools({l, e, g})}, kExact);
  const int64_t big = int64_t{1} << 53;
  b.add({Tensor::i64({3}, {big, big + 1, big + 1}), Tensor::i64({3}, {big + 1, big + 1, big})})
      .expect({bools({l, e, g})}, kExact);
  b.add({Tensor::i64({2}, {INT64_MIN, INT64_MAX}), Tensor::i64({2}, {INT64_MAX, INT64_MIN})})
      .expect({bools({l, g})}, kExact);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::I16, DType::I32, DType::I64,
                        DType::U8, DType::U16, DType::U32, DType::U64})
    b.add({b.integers({2, 1, 4}, 0, 3, d), b.integers({3, 1}, 0, 3, d)})
        .check([f](const Tensors& in, const Tensors& out) {
          ASSERT_EQ(out[0].type(), (TensorType{{2, 3, 4}, DType::Bool}));
          for (int64_t i = 0; i < 2; ++i)
            for (int64_t j = 0; j < 3; ++j)
              for (int64_t k = 0; k < 4; ++k)
                EXPECT_EQ(out[0].at((i * 3 + j) * 4 + k) != 0, f(in[0].at(i * 4 + k), in[1].at(j)));
        });
  b.add({b.random({0, 3}), b.random({3})}).expect({Tensor(DType::Bool, {0, 3})});
  add_broadcast_pairs(b, {DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8});
  b.add_error({b.random({2}), b.random({2}, DType::F16)}, {}, "Operand dtypes (f32, f16) differ");
  b.add_error({b.random({2, 3}), b.random({2})}, {}, "Sizes 3 and 2 do not broadcast");
}

template <class Builder>
static void no_order(Builder& b) {
  for (const DType d : {DType::Bool, DType::C64})
    b.add_error({b.random({2}, d), b.random({2}, d)}, {}, str("is not defined for ", d));
}

template <class Builder>
static void on_bool_and_complex(Builder& b, bool equal) {
  const auto y = static_cast<uint8_t>(equal), n = static_cast<uint8_t>(!equal);
  // Any non-zero byte is true.
  b.add({bools({0, 1, 2, 0}), bools({0, 1, 1, 255})}).expect({bools({y, y, y, n})}, kExact);
  const C p[] = {{1, 2}, {1, 2}, {1, 2}, {NAN, 2}, {0, 0}}, q[] = {{1, 2}, {1, 3}, {0, 2}, {NAN, 2}, {-0.0f, 0}};
  b.add({Tensor::of<C>(DType::C64, {5}, p), Tensor::of<C>(DType::C64, {5}, q)})
      .expect({bools({y, n, n, n, y})}, kExact);
}

OP_CASES(eq) {
  compare_cases(*this, {0, 1, 0}, false, [](double a, double b) { return a == b; });
  on_bool_and_complex(*this, true);
}
OP_CASES(ne) {
  compare_cases(*this, {1, 0, 1}, true, [](double a, double b) { return a != b; });
  on_bool_and_complex(*this, false);
}
OP_CASES(lt) {
  compare_cases(*this, {1, 0, 0}, false, [](double a, double b) { return a < b; });
  no_order(*this);
}
OP_CASES(le) {
  compare_cases(*this, {1, 1, 0}, false, [](double a, double b) { return a <= b; });
  no_order(*this);
}
OP_CASES(gt) {
  compare_cases(*this, {0, 0, 1}, false, [](double a, double b) { return a > b; });
  no_order(*this);
}
OP_CASES(ge) {
  compare_cases(*this, {0, 1, 1}, false, [](double a, double b) { return a >= b; });
  no_order(*this);
}

TEST(Compare, KindsNumberTheOpsAsTheSpecificationDoes) {
  for (int32_t k = 0; k < 6; ++k) {
    const auto kind = static_cast<ops::CompareKind>(k);
    EXPECT_EQ(ops::compare_op(kind).name, name_of(kind));
  }
  EXPECT_EQ(static_cast<int>(ops::CompareKind::kGe), 5);
}

}  // namespace rlx::test
