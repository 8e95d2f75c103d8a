#include <cmath>
#include <set>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr float kInf = INFINITY;

// Order, membership and ties of a topk along an axis, said without sorting.
void expect_topk(const Tensor& x, const Tensors& out, const ops::TopkAttrs& attrs) {
  const auto axis = static_cast<size_t>(normalize_axis(attrs.axis, x.rank()));
  const std::span<const int64_t> sizes(x.sizes());
  const int64_t outer = product(sizes.first(axis)), cols = sizes[axis], inner = product(sizes.subspan(axis + 1));
  // Does element a come before element b? NaN is larger than everything.
  const auto before = [&](double a, int64_t ia, double b, int64_t ib) {
    const double ka = std::isnan(a) ? 1e300 : a, kb = std::isnan(b) ? 1e300 : b;
    return ka != kb ? (attrs.largest ? ka > kb : ka < kb) : ia < ib;
  };
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t c = 0; c < attrs.k; ++c) {
        const int64_t at = (o * attrs.k + c) * inner + i, index = static_cast<int64_t>(out[1].at(at));
        ASSERT_TRUE(index >= 0 && index < cols);
        const double value = x.at((o * cols + index) * inner + i);
        EXPECT_TRUE(out[0].at(at) == value || (std::isnan(value) && std::isnan(out[0].at(at))));
        int64_t rank = 0;  // how many elements come before it
        for (int64_t j = 0; j < cols; ++j) rank += before(x.at((o * cols + j) * inner + i), j, value, index);
        EXPECT_EQ(rank, c);
      }
}

}  // namespace

OP_CASES(topk) {
  add({Tensor::f32({2, 4}, {1, 4, 2, 4, -1, -kInf, -3, 0})}, {.k = 2})
      .expect({Tensor::f32({2, 2}, {4, 4, 0, -1}), Tensor::i32({2, 2}, {1, 3, 3, 0})}, kExact);
  add({Tensor::f32({4}, {1, 4, 2, 4})}, {.k = 3, .largest = false, .index_dtype = DType::I64})
      .expect({Tensor::f32({3}, {1, 2, 4}), Tensor::i64({3}, {0, 2, 1})}, kExact);
  add({Tensor::f32({4}, {1, NAN, kInf, NAN})}, {.k = 4})
      .expect({Tensor::f32({4}, {NAN, NAN, kInf, 1}), Tensor::i32({4}, {1, 3, 2, 0})}, kExact);
  add({Tensor::f32({4}, {1, NAN, -kInf, NAN})}, {.k = 4, .largest = false})
      .expect({Tensor::f32({4}, {-kInf, 1, NAN, NAN}), Tensor::i32({4}, {2, 0, 1, 3})}, kExact);
  // Only -inf remains: no index is repeated.
  add({Tensor::f32({3}, {-kInf, 5, -kInf})}, {.k = 3})
      .expect({Tensor::f32({3}, {5, -kInf, -kInf}), Tensor::i32({3}, {1, 0, 2})}, kExact);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8, DType::I32, DType::I64,
                        DType::U32, DType::U16, DType::U64})
    for (const bool largest : {true, false})
      for (const int64_t axis : {0, 1, -1}) {
        const ops::TopkAttrs attrs{.k = 3, .axis = axis, .largest = largest};
        add({integers({5, 7, 4}, 0, 4, d)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
          expect_topk(in[0], out, attrs);
        });
      }
  // Long rows with many equal elements; few and many of them taken; NaN, infinities and both zeros among them.
  for (const bool largest : {true, false})
    for (const int64_t k : {1, 40, 700, 5000}) {
      add({random({3, 5000})}, {.k = k, .largest = largest});
      add({integers({2, 5000}, -9, 9, DType::F16)}, {.k = k, .largest = largest});
      add({integers({5000, 3}, 0, 900, DType::F32)},
          {.k = k, .axis = 0, .largest = largest, .index_dtype = DType::I64});
    }
  // So many that rows are sorted whole, also where they need no entries behind them.
  for (const bool largest : {true, false}) {
    add({random({2, 7000})}, {.k = 7000, .largest = largest});
    add({integers({2, 7000}, -9, 9, DType::F16)}, {.k = 6500, .largest = largest});
    add({integers({8192, 2}, 0, 900, DType::I32)}, {.k = 8192, .axis = 0, .largest = largest});
    add({integers({2, 7000}, 0, 255, DType::U8)}, {.k = 7000, .largest = largest, .index_dtype = DType::I64});
  }
  std::vector<float> special(3000);
  for (size_t i = 0; i < special.size(); ++i) {
    const float kValues[] = {NAN, 0.0f, -0.0f, kInf, -kInf, 1.0f, -1.0f, -NAN, 1e-40f};
    special[i] = kValues[i * 7 % 9];
  }
  for (const bool largest : {true, false})
    for (const int64_t k : {5, 900}) add({Tensor::f32({3000}, special)}, {.k = k, .largest = largest});
  std::vector<float> more = special;
  for (int i = 0; i < 2; ++i) more.insert(more.end(), special.begin(), special.end());
  more.resize(8000);
  for (const bool largest : {true, false}) add({Tensor::f32({8000}, more)}, {.k = 8000, .largest = largest});
  // Integers of every width, rows of several kernels, with the ends of their ranges.
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32})
    for (const bool largest : {true, false})
      for (const int64_t n : {300, 600, 1500, 3000}) {
        const bool narrow = size_of(d) < 4;
        const int64_t top = (int64_t{1} << (8 * size_of(d) - (is_signed(d) ? 1 : 0))) - 1;
        add({integers({2, n}, narrow && is_signed(d) ? -top - 1 : 0, narrow ? top : 1000, d)},
            {.k = n / 3, .largest = largest});
      }
  add({Tensor::i32({4}, {INT32_MIN, 7, INT32_MAX, -1})}, {.k = 4});
  add({Tensor::i32({4}, {INT32_MIN, 7, INT32_MAX, -1})}, {.k = 4, .largest = false});
  add({Tensor::i64({3}, {int64_t{1} << 60, (int64_t{1} << 60) + 1, 0})}, {.k = 1})
      .expect({Tensor::i64({1}, {(int64_t{1} << 60) + 1}), Tensor::i32({1}, {1})});
  add({random({3, 5})}, {.k = 0}).expect({Tensor(DType::F32, {3, 0}), Tensor(DType::I32, {3, 0})});
  add({random({0, 5})}, {.k = 2}).expect({Tensor(DType::F32, {0, 2}), Tensor(DType::I32, {0, 2})});
  add_error({random({3, 5})}, {.k = 6}, "K (6) is not between 0 and the size (5) of axis 1");
  add_error({random({3, 5})}, {.k = -1}, "K (-1) is not between 0");
  add_error({random({3, 5})}, {.axis = 2}, "Axis (2) is out of range");
  add_error({random({3, 5})}, {.index_dtype = DType::F32}, "Index dtype (f32) is not i32 or i64");
  add_error({random({3, 5}, DType::Bool)}, {}, "Operand dtype (bool) has no order");
  add_error({random({3, 5}, DType::C64)}, {}, "Operand dtype (c64) has no order");
}

OP_CASES(argmax) {
  const Tensor x = Tensor::f32({2, 3}, {1, 5, 5, -2, -7, -2});
  add({x}).expect({Tensor::i32({2}, {1, 0})}, kExact);
  add({x}, {.keep_dim = true, .index_dtype = DType::I64}).expect({Tensor::i64({2, 1}, {1, 0})}, kExact);
  add({x}, {.axis = 0}).expect({Tensor::i32({3}, {0, 0, 0})}, kExact);
  add({x}, {.axis = -2, .keep_dim = true}).expect({Tensor::i32({1, 3}, {0, 0, 0})}, kExact);
  add({Tensor::f32({4}, {kInf, NAN, kInf, NAN})}).expect({Tensor::i32({}, {1})}, kExact);
  add({Tensor::f32({3}, {-kInf, -kInf, -kInf})}).expect({Tensor::i32({}, {0})}, kExact);
  for (const DType d :
       {DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8, DType::I16, DType::U16, DType::U32, DType::I64})
    add({integers({6, 9}, 0, 3, d)}).check([](const Tensors& in, const Tensors& out) {
      EXPECT_EQ(out[0], run(ops::topk, {in[0]}, {.k = 1})[1].reshaped({6}));
    });
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const int64_t axis : {0, 1, 2}) {
      add({integers({5, 37, 300}, -30, 30, d)}, {.axis = axis});
      add({random({7, 2, 9}, d)}, {.axis = axis, .index_dtype = DType::I64});
    }
  for (const int64_t at : {0, 7, 64, 99}) {
    std::vector<float> values(200, 1.0f);
    values[static_cast<size_t>(at)] = NAN, values[static_cast<size_t>(at) + 50] = NAN, values[150] = kInf;
    values[151] = -kInf;
    for (const int64_t axis : {0, 1}) add({Tensor::f32({2, 100}, values)}, {.axis = axis});
    add({Tensor::f32({200}, values)});
  }
  add({Tensor(DType::F32, {0, 3})}).expect({Tensor(DType::I32, {0})});
  add_error({Tensor(DType::F32, {3, 0})}, {}, "An axis of size 0 has no largest");
  add_error({x}, {.axis = 2}, "Axis (2) is out of range");
  add_error({x}, {.index_dtype = DType::U32}, "Index dtype (u32) is not i32 or i64");
  add_error({random({2}, DType::C64)}, {}, "has no order");
}

OP_CASES(argmin) {
  const Tensor x = Tensor::f32({2, 3}, {5, 1, 1, -2, -7, -2});
  add({x}).expect({Tensor::i32({2}, {1, 1})}, kExact);
  add({x}, {.axis = 0, .keep_dim = true}).expect({Tensor::i32({1, 3}, {1, 1, 1})}, kExact);
  add({Tensor::f32({4}, {-kInf, NAN, 1, NAN})}).expect({Tensor::i32({}, {1})}, kExact);  // as PyTorch: NaN wins
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const int64_t axis : {0, 1, 2}) {
      add({integers({5, 37, 300}, -30, 30, d)}, {.axis = axis});
      add({random({7, 2, 9}, d)}, {.axis = axis, .index_dtype = DType::I64});
    }
  for (const int64_t at : {0, 7, 64, 99}) {
    std::vector<float> values(200, 1.0f);
    values[static_cast<size_t>(at)] = NAN, values[static_cast<size_t>(at) + 50] = NAN, values[150] = kInf;
    values[151] = -kInf;
    for (const int64_t axis : {0, 1}) add({Tensor::f32({2, 100}, values)}, {.axis = axis});
    add({Tensor::f32({200}, values)});
  }
  for (const DType d : {DType::F16, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32})
    add({integers({6, 9}, 0, 3, d)}).check([](const Tensors& in, const Tensors& out) {
      EXPECT_EQ(out[0], run(ops::topk, {in[0]}, {.k = 1, .largest = false})[1].reshaped({6}));
    });
}

}  // namespace rlx::test
