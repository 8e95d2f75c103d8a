// Results that are too large for the caches are written in another way: each must be, bit for bit, the results of its
// halves, which are not.
#include <algorithm>

#include "backends/cpu/simd/stream.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

// Rows `first` to `first + n` of the first axis.
Tensor rows_of(const Tensor& t, int64_t first, int64_t n) {
  std::vector<int64_t> sizes = t.sizes();
  const auto row = t.bytes().size() / static_cast<size_t>(sizes[0]);
  sizes[0] = n;
  Tensor part(t.dtype(), sizes);
  std::copy_n(t.bytes().data() + row * static_cast<size_t>(first), row * static_cast<size_t>(n),
              part.mutable_bytes().data());
  return part;
}

// `inputs`: those with the rows of the first one are halved with it, the others are parameters.
template <class A>
void expect_halves(const Op<A>& op, const Tensors& inputs, A attrs = {}) {
  SCOPED_TRACE(str(op.name, " of ", inputs[0].type()));
  const CompileOptions options{.device = "cpu", .threads = 2};
  const int64_t rows = inputs[0].sizes()[0], half = rows / 2;
  const Tensor whole = run_op_on(options, op, inputs, Attrs(attrs), 0)[0];
  ASSERT_GE(static_cast<int64_t>(whole.bytes().size()), cpu::kStreamBytes);
  for (const int64_t first : {int64_t{0}, half}) {
    Tensors parts;
    for (const Tensor& t : inputs) parts.push_back(t.sizes()[0] == rows ? rows_of(t, first, half) : t);
    const Tensor part = run_op_on(options, op, parts, Attrs(attrs), 0)[0];
    ASSERT_LT(static_cast<int64_t>(part.bytes().size()), cpu::kStreamBytes);
    EXPECT_TRUE(rows_of(whole, first, half) == part) << "rows from " << first << " on";
  }
}

}  // namespace

TEST(LargeRows, AreThoseOfTheirHalves) {
  Rng rng(7);
  for (const DType d : {DType::F32, DType::BF16}) {
    const int64_t rows = d == DType::F32 ? 2100 : 4200;
    const Tensor x = rng.tensor({rows, 1027}, d), r = rng.tensor({rows, 1027}, d), p = rng.tensor({1027}, d);
    expect_halves(ops::softmax, {x});
    expect_halves(ops::layer_norm, {x, p, p});
    expect_halves(ops::rms_norm, {x, p});
    expect_halves(ops::fused_residual_ln, {x, r, p, p});
    expect_halves(ops::fused_residual_rms_norm, {x, r, p, p}, {.has_bias = true});
    expect_halves(ops::layer_norm_backward, {x, p, r});
    expect_halves(ops::cumsum, {x});
    expect_halves(ops::cumsum, {x}, {.reverse = true});
    const Tensor image = x.reshaped({rows, 13, 79, 1}), c = rng.tensor({13}, d);
    expect_halves(ops::softmax, {image}, {.axis = 1});
    expect_halves(ops::layer_norm2d, {image, c, c});
    expect_halves(ops::group_norm, {image, c, c});
    expect_halves(ops::cumsum, {image}, {.axis = 1});
    const Tensor narrow = x.reshaped({rows * 79, 13});
    expect_halves(ops::softmax, {narrow});
    expect_halves(ops::layer_norm, {narrow, c, c});
  }
  // Rows that begin with a cache line.
  for (const DType d : {DType::F16, DType::BF16}) {
    const Tensor x = rng.tensor({4100, 1056}, d), p = rng.tensor({1056}, d);
    expect_halves(ops::softmax, {x});
    expect_halves(ops::layer_norm, {x, p, p});
    expect_halves(ops::rms_norm, {x, p});
  }
}

}  // namespace rlx::test
