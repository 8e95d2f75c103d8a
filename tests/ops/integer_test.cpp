#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// onnxruntime's results (fixtures/make_onnx_quantize.py); null: no such fixture.
const Tensor* fixture(const std::string& name) {
  static const std::map<std::string, Tensor> all = read_npz(RLX_FIXTURES "/onnx_quantize.npz");
  const auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

Tensor bytes(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  return Tensor::from_doubles(dtype, std::move(sizes), values);
}

int64_t low(DType dtype) { return dtype == DType::I8 ? -128 : 0; }
int64_t high(DType dtype) { return dtype == DType::I8 ? 127 : 255; }

// Zero points of a are repeated over every K, those of b as well: then it is a plain product of integers.
Tensor wide(const Tensor& t, const Tensor* zero, bool rows) {
  Tensor out = t.cast(DType::I64);
  if (zero == nullptr) return out;
  const auto& sizes = t.sizes();
  const int64_t last = sizes[sizes.size() - 1], before = sizes[sizes.size() - 2];
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t row = i / last % before, column = i % last, matrix = i / last / before;
    const int64_t own = rows ? row : column, count = rows ? before : last;
    const int64_t at = zero->num_elements() == 1 ? 0 : zero->sizes().size() == 1 ? own : matrix * count + own;
    out.mutable_values<int64_t>()[static_cast<size_t>(i)] -= static_cast<int64_t>(zero->at(at));
  }
  return out;
}

}  // namespace

OP_CASES(matmul_integer) {
  // [1 2; 3 4] with zero point 1 times [5; 250] with zero point 2.
  add({bytes(DType::I8, {2, 2}, {1, 2, 3, 4}), bytes(DType::U8, {2, 1}, {5, 250}), bytes(DType::I8, {}, {1}),
       bytes(DType::U8, {}, {2})})
      .expect({Tensor::i32({2, 1}, {248, 2 * 3 + 3 * 248})}, kExact);
  // Sums wrap: 2^18 products of 128 * 128 are 2^32.
  add({integers({1, 1 << 18}, -128, -128, DType::I8), integers({1 << 18, 1}, -128, -128, DType::I8)})
      .expect({Tensor::i32({1, 1}, {0})}, kExact);
  add({bytes(DType::U8, {2, 0}, {}), bytes(DType::I8, {0, 3}, {}), bytes(DType::U8, {}, {7}),
       bytes(DType::I8, {}, {9})})
      .expect({Tensor(DType::I32, {2, 3})}, kExact);
  for (int i = 0; fixture(str("matmul", i, "_x")) != nullptr; ++i)
    add({*fixture(str("matmul", i, "_x")), *fixture(str("matmul", i, "_w")), *fixture(str("matmul", i, "_xz")),
         *fixture(str("matmul", i, "_wz"))})
        .expect({*fixture(str("matmul", i, "_y"))}, kExact);
  // Every kind of bytes and zero points, against the product of wide integers; sizes around the kernels' blocks.
  struct Case {
    std::vector<int64_t> a, b, a_zero, b_zero;
    int operands;
  };
  const Case shapes[] = {
      {{5, 7}, {7, 3}, {}, {}, 2},
      {{5, 7}, {7, 3}, {}, {}, 3},
      {{5, 8}, {8, 3}, {1}, {1}, 4},
      {{1, 64}, {64, 33}, {}, {33}, 4},
      {{37, 67}, {67, 50}, {37}, {50}, 4},
      {{70, 132}, {132, 16}, {70, 1}, {1, 16}, 4},
      {{2, 3, 9, 10}, {10, 20}, {2, 3, 9, 1}, {20}, 4},
      {{2, 1, 9, 10}, {3, 10, 20}, {9}, {3, 1, 20}, 4},
      {{3, 4, 12}, {3, 12, 5}, {3, 4, 1}, {3, 1, 5}, 4},
      {{2, 40000}, {40000, 3}, {2}, {3}, 4},
  };
  for (const Case& c : shapes)
    for (const DType a : {DType::I8, DType::U8})
      for (const DType b : {DType::I8, DType::U8}) {
        Tensors in = {integers(c.a, low(a), high(a), a), integers(c.b, low(b), high(b), b)};
        if (c.operands > 2) in.push_back(integers(c.a_zero, low(a), high(a), a));
        if (c.operands > 3) in.push_back(integers(c.b_zero, low(b), high(b), b));
        add(in).check([](const Tensors& operands, const Tensors& out) {
          const auto zero = [&](size_t i) { return operands.size() > i ? &operands[i] : nullptr; };
          const Tensor y = run(ops::matmul, {wide(operands[0], zero(2), true), wide(operands[1], zero(3), false)})[0];
          EXPECT_TRUE(near(out[0], y.cast(DType::I32), kExact));
        });
      }
  const Tensor a = integers({2, 3}, 0, 9, DType::I8), b = integers({3, 4}, 0, 9, DType::U8);
  const Tensor az = bytes(DType::I8, {}, {1}), bz = bytes(DType::U8, {}, {1});
  add_error({random({2, 3}), b}, {}, "Operand a dtype (f32) is not i8 or u8");
  add_error({a, integers({3, 4}, 0, 9, DType::I16)}, {}, "Operand b dtype (i16) is not i8 or u8");
  add_error({a, integers({4, 4}, 0, 9, DType::U8)}, {}, "Contracted sizes (3 and 4) differ");
  add_error({a, b, bz}, {}, "Zero point dtype (u8) is not i8");
  add_error({a, b, integers({3}, 0, 9, DType::I8)}, {}, "Zero point shape ([3]) is not [2]");
  add_error({a, b, az, integers({3}, 0, 9, DType::U8)}, {}, "Zero point shape ([3]) is not [4]");
  add_error({a, b, az, integers({4, 1}, 0, 9, DType::U8)}, {}, "Zero point shape ([4, 1]) is not [1, 4]");
}

OP_CASES(conv_integer) {
  // Padding has the value of the zero point: only the pixel itself, 5 - 1 = 4, counts.
  add({bytes(DType::U8, {1, 1, 1, 1}, {5}), bytes(DType::I8, {1, 1, 3, 3}, {1, 1, 1, 1, 2, 1, 1, 1, 1}),
       bytes(DType::U8, {}, {1})},
      {.kernel_size = {3, 3}, .padding = {1, 1}})
      .expect({Tensor::i32({1, 1, 1, 1}, {8})}, kExact);
  for (int i = 0; fixture(str("conv", i, "_x")) != nullptr; ++i) {
    const auto list = fixture(str("conv", i, "_a"))->values<int64_t>();
    const auto rank = static_cast<ptrdiff_t>(list.size() - 1) / 5;
    const auto part = [&](ptrdiff_t from, ptrdiff_t n) {
      return std::vector<int64_t>(list.begin() + from * rank, list.begin() + (from + n) * rank);
    };
    add({*fixture(str("conv", i, "_x")), *fixture(str("conv", i, "_w")), *fixture(str("conv", i, "_xz")),
         *fixture(str("conv", i, "_wz"))},
        {part(0, 1), part(1, 1), part(2, 2), part(4, 1), list.back()})
        .expect({*fixture(str("conv", i, "_y"))}, kExact);
  }
  // Against the conv of the differences in f64, which is exact.
  struct Case {
    std::vector<int64_t> x, w;
    ops::ConvAttrs attrs;
    int operands;
    bool per_channel;
  };
  const Case shapes[] = {
      {{2, 3, 7, 5}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 2}, {1, 2}, 1}, 2, false},
      {{2, 3, 7, 5}, {4, 3, 3, 2}, {{3, 2}, {2, 1}, {1, 2}, {1, 2}, 1}, 3, false},
      {{2, 4, 9}, {6, 2, 3}, {{3}, {2}, {0, 2}, {}, 2}, 4, true},
      {{1, 6, 13, 41}, {34, 6, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {}, 1}, 4, true},
      {{1, 6, 13, 41}, {34, 6, 3, 3}, {{3, 3}, {2, 2}, {0, 0, 1, 1}, {}, 1}, 4, false},
      {{2, 19, 7, 9}, {20, 19, 1, 1}, {{1, 1}, {}, {}, {}, 1}, 4, true},
      {{1, 36, 9, 40}, {36, 1, 5, 1}, {{5, 1}, {1, 3}, {2, 0}, {2, 1}, 36}, 4, true},
      {{1, 3, 4, 5, 6}, {5, 3, 2, 3, 2}, {{2, 3, 2}, {1, 2, 1}, {1, 0, 0, 0, 3, 1}, {2, 1, 1}, 1}, 4, true},
      {{1, 1, 3, 3}, {1, 1, 3, 3}, {{3, 3}, {1, 1}, {4, 4}, {}, 1}, 4, false},
  };
  for (const Case& c : shapes)
    for (const DType x : {DType::I8, DType::U8})
      for (const DType w : {DType::I8, DType::U8}) {
        Tensors in = {integers(c.x, low(x), high(x), x), integers(c.w, low(w), high(w), w)};
        if (c.operands > 2) in.push_back(integers({}, low(x), high(x), x));
        if (c.operands > 3)
          in.push_back(
              integers(c.per_channel ? std::vector<int64_t>{c.w[0]} : std::vector<int64_t>{1}, low(w), high(w), w));
        add(in, c.attrs).check([c](const Tensors& operands, const Tensors& out) {
          Tensor x64 = operands[0].cast(DType::F64), w64 = operands[1].cast(DType::F64);
          if (operands.size() > 2)
            for (double& v : x64.mutable_values<double>()) v -= operands[2].at(0);
          if (operands.size() > 3)
            for (int64_t i = 0; i < w64.num_elements(); ++i)
              w64.mutable_values<double>()[static_cast<size_t>(i)] -=
                  operands[3].at(c.per_channel ? i / (w64.num_elements() / c.w[0]) : 0);
          EXPECT_TRUE(near(out[0], run(ops::conv, {x64, w64}, c.attrs)[0].cast(DType::I32), kExact));
        });
      }
  const Tensor x = integers({1, 2, 5}, 0, 9, DType::U8), w = integers({3, 2, 2}, 0, 9, DType::I8);
  const Tensor xz = bytes(DType::U8, {}, {1});
  add_error({random({1, 2, 5}), w}, {.kernel_size = {2}}, "Operand x dtype (f32) is not i8 or u8");
  add_error({x, random({3, 2, 2})}, {.kernel_size = {2}}, "Weight dtype (f32) is not i8 or u8");
  add_error({x, w, bytes(DType::I8, {}, {1})}, {.kernel_size = {2}}, "Zero point dtype (i8) is not u8");
  add_error({x, w, integers({2}, 0, 9, DType::U8)}, {.kernel_size = {2}}, "Zero point shape ([2]) of x");
  add_error({x, w, xz, integers({2}, 0, 9, DType::I8)}, {.kernel_size = {2}}, "Zero point shape ([2]) is not [3]");
  add_error({x, w}, {.kernel_size = {3}}, "does not end in kernel_size");
}

}  // namespace rlx::test
