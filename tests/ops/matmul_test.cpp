#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

// The product by the definition, an element at a time and k from the end: c[m, n] = sum of a[m, k] b[k, n].
static double product_at(const Tensor& a, int64_t a_matrix, const Tensor& b, int64_t b_matrix, int64_t m, int64_t n) {
  const int64_t rows = a.sizes()[a.sizes().size() - 2], ks = a.sizes().back(), cols = b.sizes().back();
  double sum = 0;
  for (int64_t k = ks - 1; k >= 0; --k)
    sum += a.at((a_matrix * rows + m) * ks + k) * b.at((b_matrix * ks + k) * cols + n);
  return sum;
}

static void expect_element(const Tensor& y, int64_t index, double expected) {
  const DType d = y.dtype();
  const double eps = d == DType::F64 ? 1e-12 : d == DType::F32 ? 1e-6 : d == DType::F16 ? 1e-3 : 8e-3;
  EXPECT_NEAR(y.at(index), expected, eps * (1 + std::fabs(expected)));
}

OP_CASES(matmul) {
  add({Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::f32({3, 2}, {7, 8, 9, 10, 11, 12})})
      .expect({Tensor::f32({2, 2}, {58, 64, 139, 154})}, kExact);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64})
    for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, {5, 7, 3}, {1, 33, 4}, {17, 2, 1}, {3, 1, 9}})
      add({random({m, k}, d), random({k, n}, d)}).check([](const Tensors& in, const Tensors& out) {
        const int64_t rows = in[0].sizes()[0], cols = in[1].sizes()[1];
        ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{rows, cols}));
        for (int64_t i = 0; i < rows * cols; ++i)
          expect_element(out[0], i, product_at(in[0], 0, in[1], 0, i / cols, i % cols));
      });
  // Full NumPy batch broadcasting: shared, equal, missing and mid-axis batch dims, on either side.
  using S = std::vector<int64_t>;
  for (const auto& [batch_a, batch_b] : {std::pair{S{4}, S{}},
                                         {S{}, S{4}},
                                         {S{2, 3}, S{2, 3}},
                                         {S{2, 1}, S{3}},
                                         {S{2, 1, 4}, S{1, 3, 1}},
                                         {S{1}, S{5}},
                                         {S{3}, S{2, 3}}}) {
    S sa = batch_a, sb = batch_b;
    sa.insert(sa.end(), {2, 3});
    sb.insert(sb.end(), {3, 2});
    add({random(sa, DType::F64), random(sb, DType::F64)}).check([](const Tensors& in, const Tensors& out) {
      const S& y = out[0].sizes();
      const size_t batch = y.size() - 2;
      // Flat matrix index of an operand for a batch index of the result, by division.
      const auto matrix = [&](const Tensor& t, int64_t b) {
        const size_t own = t.sizes().size() - 2;
        int64_t index = 0, stride = 1;
        for (size_t d = 0; d < batch; ++d) {
          const size_t axis = batch - 1 - d;
          const int64_t i = b % y[axis];
          b /= y[axis];
          if (d >= own) continue;
          const int64_t size = t.sizes()[own - 1 - d];
          index += (size == 1 ? 0 : i) * stride;
          stride *= size;
        }
        return index;
      };
      for (int64_t i = 0; i < out[0].num_elements(); ++i)
        expect_element(out[0], i,
                       product_at(in[0], matrix(in[0], i / 4), in[1], matrix(in[1], i / 4), i % 4 / 2, i % 2));
    });
  }
  // The same in dtypes that a GPU has, in few rows and in tiles; judged by the oracle.
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::U8})
    for (const auto& [batch_a, batch_b] : {std::pair{S{}, S{4}},
                                           {S{2, 1}, S{3}},
                                           {S{1}, S{5}},
                                           {S{3}, S{2, 3}},
                                           {S{2, 1, 4}, S{1, 3, 1}},
                                           {S{2, 1, 2, 1}, S{1, 3, 1, 2}}})
      for (const int64_t m : {2, 11}) {
        S sa = batch_a, sb = batch_b;
        sa.insert(sa.end(), {m, 6});
        sb.insert(sb.end(), {6, m + 2});
        const bool floats = is_float(d);
        add({floats ? random(sa, d) : integers(sa, 0, 20, d), floats ? random(sb, d) : integers(sb, 0, 20, d)});
      }
  // So many columns, or matrices, that a workgroup of the kernel for few rows takes more of them.
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    add({random({1, 8}, d), random({8, 33000}, d)});
    add({random({3, 5}, d), random({5, 33001}, d)});
    add({random({2, 4}, d), random({4, 32770}, d)});
    add({random({260, 2, 9}, d), random({260, 9, 40}, d)});
  }
  // Beyond one tile of each kernel of a GPU, with odd tails, and long k; five batch axes that do not merge.
  for (const auto& [m, k, n] :
       {std::tuple{1, 300, 264}, {8, 1030, 36}, {5, 66, 70}, {13, 70, 68}, {30, 65, 130}, {70, 50, 67}, {66, 600, 4}})
    add({random({m, k}), random({k, n})});
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    add({random({2, 33, 24}, d), random({24, 12}, d)});
    add({random({3, 2, 9}, d), random({3, 9, 7}, d)});
  }
  add({random({2, 1, 2, 3, 4}), random({1, 3, 2, 4, 5})});
  add({random({2, 1, 2, 1, 2, 2, 3}), random({1, 2, 1, 2, 1, 3, 2})});
  add({random({70000, 1, 2}), random({70000, 2, 1})});
  for (const DType d : {DType::I32, DType::U32, DType::I8, DType::U8, DType::I16, DType::U16})
    add({integers({2, 19, 35}, 0, 100, d), integers({35, 18}, 0, 100, d)});
  add({integers({2, 3, 4}, -9, 9), integers({2, 4, 5}, -9, 9)});
  add({random({2, 0}), random({0, 3})}).expect({Tensor(DType::F32, {2, 3})}, kExact);  // K = 0: zeros
  add({Tensor(DType::I32, {2, 1, 0}), Tensor(DType::I32, {0, 3})}).expect({Tensor(DType::I32, {2, 1, 3})}, kExact);
  add({random({0, 4}), random({4, 3})}).expect({Tensor(DType::F32, {0, 3})}, kExact);
  add({random({0, 2, 4}), random({1, 4, 3})}).expect({Tensor(DType::F32, {0, 2, 3})}, kExact);
  // Integers are exact over all of 64 bits, and wrap.
  const int64_t big = (int64_t{1} << 53) + 1;
  add({Tensor::i64({1, 2}, {big, 1}), Tensor::i64({2, 1}, {1, 1})}).expect({Tensor::i64({1, 1}, {big + 1})}, kExact);
  add({Tensor::i64({1, 1}, {INT64_MAX}), Tensor::i64({1, 1}, {2})}).expect({Tensor::i64({1, 1}, {-2})}, kExact);
  add({integers({1, 2}, 100, 100, DType::I8), integers({2, 1}, 2, 2, DType::I8)})
      .expect({integers({1, 1}, -112, -112, DType::I8)}, kExact);  // 400 - 512
  add({integers({3, 4}, 0, 9, DType::U8), integers({4, 2}, 0, 7, DType::U8)})
      .check([](const Tensors& in, const Tensors& out) {
        for (int64_t i = 0; i < 6; ++i)
          EXPECT_EQ(out[0].at(i), std::fmod(product_at(in[0], 0, in[1], 0, i / 2, i % 2), 256));
      });
  // A NaN or an infinity times 0 is not skipped.
  add({Tensor::f32({1, 2}, {0, 1}), Tensor::f32({2, 2}, {NAN, 1, INFINITY, 2})})
      .expect({Tensor::f32({1, 2}, {NAN, 2})}, kExact);
  add_error({random({2, 3}), random({4, 2})}, {}, "Contracted sizes (3 and 4) differ.");
  add_error({random({3}), random({3, 2})}, {}, "Operand rank (1) is less than 2.");
  add_error({random({2, 3}), random({3})}, {}, "Operand rank (1) is less than 2.");
  add_error({random({2, 2, 3}), random({3, 3, 2})}, {}, "Sizes 2 and 3 do not broadcast");
  add_error({random({2, 3}), random({3, 2}, DType::F16)}, {}, "Operand dtypes (f32, f16) differ");
  add_error({random({1, 1}, DType::Bool), random({1, 1}, DType::Bool)}, {}, "Matrices of dtype bool have no product.");
  add_error({random({1, 1}, DType::C64), random({1, 1}, DType::C64)}, {}, "Matrices of dtype c64 have no product.");
}

OP_CASES(grouped_matmul) {
  for (const DType index : {DType::I32, DType::I64})
    for (const DType d : {DType::F32, DType::F16, DType::F64, DType::I32})
      add({random({6, 5}, d), random({3, 5, 4}, d), integers({6}, 0, 2, index)})
          .check([](const Tensors& in, const Tensors& out) {
            ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{6, 4}));
            for (int64_t i = 0; i < 24; ++i)
              expect_element(out[0], i,
                             product_at(in[0], 0, in[1], static_cast<int64_t>(in[2].at(i / 4)), i / 4, i % 4));
          });
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I8})
    for (const auto& [rows, k, n] : {std::tuple{1, 520, 12}, {40, 36, 20}, {33, 9, 70}})
      add({random({rows, k}, d), random({5, k, n}, d), integers({rows}, 0, 4)});
  // Every row its own expert: a diagonal of one big product.
  add({Tensor::f32({2, 1}, {2, 3}), Tensor::f32({2, 1, 2}, {1, 10, 100, 1000}), Tensor::i32({2}, {1, 0})})
      .expect({Tensor::f32({2, 2}, {200, 2000, 3, 30})}, kExact);
  add({random({2, 0}), random({3, 0, 4}), Tensor::i32({2}, {0, 2})}).expect({Tensor(DType::F32, {2, 4})}, kExact);
  add({random({0, 5}), random({3, 5, 4}), Tensor::i32({0}, {})}).expect({Tensor(DType::F32, {0, 4})}, kExact);
  add_error({random({1, 2}), random({3, 2, 4}), Tensor::i32({1}, {3})}, {},
            "Expert index (3) of row 0 is not one of the 3 experts.");
  add_error({random({1, 2}), random({3, 2, 4}), Tensor::i32({1}, {-1})}, {}, "Expert index (-1) of row 0");
  add_error({random({1, 2}), random({0, 2, 4}), Tensor::i32({1}, {0})}, {}, "is not one of the 0 experts");
  add_error({random({1, 1, 2}), random({3, 2, 4}), Tensor::i32({1}, {0})}, {}, "Operand x rank (3) is not 2.");
  add_error({random({1, 2}), random({2, 4}), Tensor::i32({1}, {0})}, {}, "Operand w rank (2) is not 3.");
  add_error({random({1, 2}), random({3, 3, 4}), Tensor::i32({1}, {0})}, {}, "Contracted sizes (2 and 3) differ.");
  add_error({random({2, 2}), random({3, 2, 4}), Tensor::i32({1}, {0})}, {},
            "Operand expert_idx shape ([1]) is not [2].");
  add_error({random({1, 2}), random({3, 2, 4}), random({1})}, {}, "Operand expert_idx dtype (f32) is not i32 or i64.");
}

TEST(Matmul, InfersSymbolicSizes) {
  Graph g;
  const Dim s = Dim::symbol(0), t = Dim::symbol(1);
  const Value x = g.input("x", {{s, t, 8}, DType::F32});
  EXPECT_EQ(ops::matmul(x, g.param("w", {{8, 3}, DType::F32})).shape(), (Shape{s, t, 3}));
  EXPECT_EQ(ops::matmul(x, g.param("v", {{s, 8, 3}, DType::F32})).shape(), (Shape{s, t, 3}));
  // A number against a symbol is settled when the symbol is bound; two symbols are an error.
  const Value k = g.input("k", {{2, s}, DType::F32});
  EXPECT_EQ(ops::matmul(k, g.param("u", {{5, 3}, DType::F32})).shape(), (Shape{2, 3}));
  EXPECT_THROW(ops::matmul(k, g.param("r", {{t, 3}, DType::F32})), Error);
}

}  // namespace rlx::test
