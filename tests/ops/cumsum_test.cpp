#include <complex>

#include "support/op_cases.h"

namespace rlx::test {

// The definition as a double loop: every result is a sum of its own.
static Tensor plain_cumsum(const Tensor& x, const ops::CumsumAttrs& attrs) {
  const auto axis = static_cast<size_t>(normalize_axis(attrs.axis, x.rank()));
  const std::span<const int64_t> sizes(x.sizes());
  const int64_t cols = sizes[axis], inner = product(sizes.subspan(axis + 1));
  std::vector<double> y(static_cast<size_t>(x.num_elements()), 0);
  for (int64_t i = 0; i < x.num_elements(); ++i)
    for (int64_t j = 0; j < x.num_elements(); ++j) {
      const int64_t ci = i / inner % cols, cj = j / inner % cols;
      if (i - ci * inner != j - cj * inner) continue;  // another row
      const bool before = attrs.reverse ? cj > ci : cj < ci;
      if (before || (cj == ci && !attrs.exclusive)) y[static_cast<size_t>(i)] += x.at(j);
    }
  return Tensor::from_doubles(x.dtype(), x.sizes(), y);
}

// Rows and columns below, at and beyond what a fast kernel takes together, both ways.
template <class Builder>
static void of_many_sizes(Builder& b) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64}) {
        const auto add = [&](std::vector<int64_t> sizes, int64_t axis) {
          const bool ints = d == DType::I32 || d == DType::I64;
          b.add({ints ? b.integers(sizes, -1000, 1000, d) : b.random(sizes, d)},
                {.axis = axis, .exclusive = exclusive, .reverse = reverse});
        };
        add({3, 7}, 1);
        add({2, 5003}, 1);
        add({2, 37, 300}, 1);
        add({20, 9, 3}, 1);
        if (d == DType::F32 || d == DType::I32) add({200001}, 0);
      }
  b.add({Tensor::f32({2, 4}, {1, INFINITY, 2, -INFINITY, 1, NAN, 2, 3})});
}

OP_CASES(cumsum) {
  const Tensor x = Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6});
  add({x}).expect({Tensor::f32({2, 3}, {1, 3, 6, 4, 9, 15})}, kExact);
  add({x}, {.axis = 0}).expect({Tensor::f32({2, 3}, {1, 2, 3, 5, 7, 9})}, kExact);
  add({x}, {.exclusive = true}).expect({Tensor::f32({2, 3}, {0, 1, 3, 0, 4, 9})}, kExact);
  add({x}, {.reverse = true}).expect({Tensor::f32({2, 3}, {6, 5, 3, 15, 11, 6})}, kExact);
  add({x}, {.exclusive = true, .reverse = true}).expect({Tensor::f32({2, 3}, {5, 3, 0, 11, 6, 0})}, kExact);
  for (const int64_t axis : {0, 1, -1})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true})
        for (const DType d : {DType::F64, DType::I32}) {
          const ops::CumsumAttrs attrs{.axis = axis, .exclusive = exclusive, .reverse = reverse};
          add({random({3, 5, 2}, d)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
            EXPECT_TRUE(near(out[0], plain_cumsum(in[0], attrs), {.abs = 1e-12}));
          });
        }
  add({Tensor::i32({2}, {2147483647, 1})}).expect({Tensor::i32({2}, {2147483647, -2147483647 - 1})}, kExact);
  using C = std::complex<float>;
  const C z[] = {{1, 2}, {3, -1}}, sums[] = {{1, 2}, {4, 1}};
  add({Tensor::of<C>(DType::C64, {2}, z)}).expect({Tensor::of<C>(DType::C64, {2}, sums)}, kExact);
  for (const DType d : {DType::F16, DType::BF16, DType::U8, DType::I64}) add({random({3, 9}, d)});
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::U16, DType::U32})  // sums that wrap, in chunks too
    for (const bool reverse : {false, true}) {
      add({integers({3, 9000}, 0, 100, d)}, {.exclusive = reverse, .reverse = reverse});
      add({integers({2, 700, 3}, 0, 100, d)}, {.axis = 1, .reverse = reverse});
    }
  of_many_sizes(*this);
  add({Tensor(DType::F32, {2, 0})}).expect({Tensor(DType::F32, {2, 0})});
  add_error({x}, {.axis = 2}, "Axis (2) is out of range");
  add_error({random({2}, DType::Bool)}, {}, "has no arithmetic");
}

OP_CASES(cumprod) {
  const Tensor x = Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6});
  add({x}).expect({Tensor::f32({2, 3}, {1, 2, 6, 4, 20, 120})}, kExact);
  add({x}, {.axis = 0}).expect({Tensor::f32({2, 3}, {1, 2, 3, 4, 10, 18})}, kExact);
  add({x}, {.exclusive = true}).expect({Tensor::f32({2, 3}, {1, 1, 2, 1, 4, 20})}, kExact);
  add({x}, {.reverse = true}).expect({Tensor::f32({2, 3}, {6, 6, 3, 120, 30, 6})}, kExact);
  add({x}, {.exclusive = true, .reverse = true}).expect({Tensor::f32({2, 3}, {6, 3, 1, 30, 6, 1})}, kExact);
  // Its logarithm is the running sum of logarithms.
  for (const int64_t axis : {0, 1, -1})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        const ops::CumsumAttrs attrs{.axis = axis, .exclusive = exclusive, .reverse = reverse};
        add({random({3, 5, 2}, 0.5, 2, DType::F64)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
          const Tensor sums = run(ops::cumsum, {run(ops::log, {in[0]})[0]}, attrs)[0];
          EXPECT_TRUE(near(run(ops::log, {out[0]})[0], sums, {.abs = 1e-12}));
        });
      }
  add({Tensor::i32({3}, {65536, 65536, 7})}).expect({Tensor::i32({3}, {65536, 0, 0})}, kExact);
  const std::vector<uint64_t> u = {UINT64_MAX, 3, 2}, products = {UINT64_MAX, UINT64_MAX - 2, UINT64_MAX - 5};
  add({Tensor::of<uint64_t>(DType::U64, {3}, u)}).expect({Tensor::of<uint64_t>(DType::U64, {3}, products)});
  add({Tensor::f32({4}, {2, INFINITY, 0, 3})}).expect({Tensor::f32({4}, {2, INFINITY, NAN, NAN})}, kExact);
  using C = std::complex<float>;
  const C z[] = {{1, 2}, {3, -1}}, p[] = {{1, 2}, {5, 5}};
  add({Tensor::of<C>(DType::C64, {2}, z)}).expect({Tensor::of<C>(DType::C64, {2}, p)}, kExact);
  for (const DType d : {DType::F16, DType::BF16, DType::U8, DType::I64}) add({random({3, 9}, d)});
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::U16, DType::U32, DType::I32})
    for (const bool reverse : {false, true})
      add({integers({3, 300}, 1, 5, d)}, {.exclusive = true, .reverse = reverse});
  add({Tensor(DType::F32, {2, 0})}).expect({Tensor(DType::F32, {2, 0})});
  add_error({x}, {.axis = 2}, "Axis (2) is out of range");
  add_error({random({2}, DType::Bool)}, {}, "has no arithmetic");
}

OP_CASES(cumsum_backward) {
  add({Tensor::f32({3}, {1, 2, 3})}).expect({Tensor::f32({3}, {6, 5, 3})}, kExact);
  add({Tensor::f32({3}, {1, 2, 3})}, {.exclusive = true}).expect({Tensor::f32({3}, {5, 3, 0})}, kExact);
  of_many_sizes(*this);
  for (const int64_t axis : {0, -1})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        const ops::CumsumAttrs attrs{.axis = axis, .exclusive = exclusive, .reverse = reverse};
        add({random({3, 4}, DType::F64)}, attrs).check([attrs](const Tensors& in, const Tensors& out) {
          const Tensor x(DType::F64, {3, 4});
          EXPECT_TRUE(matches_finite_differences([&](const Tensor& at) { return run(ops::cumsum, {at}, attrs)[0]; }, x,
                                                 in[0], out[0]));
        });
      }
}

}  // namespace rlx::test
