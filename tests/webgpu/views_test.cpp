// Values that lie in the bytes of others.
#include "as_oracle.h"

namespace rlx::test {

using ViewsOnWebGpu = WebGpu;

// F64 is stored on the host alone, so that its bits are copied and not seen where the GPU has them.
TEST_F(ViewsOnWebGpu, BitsOfF64AreCopied) {
  Maker m;
  m.out(ops::bitcast(ops::neg(m.in({3, 5}, DType::C64)), {.to = DType::F64}));
  m.out(ops::neg(ops::bitcast(m.in({7}, DType::F64), {.to = DType::C64})));
  expect_as_oracle(m.g, {.tolerance = kExact, .host_steps = 2});
}

// The plan's own checks (verify_plan) know that such a view ends with its value, not with a word.
TEST_F(ViewsOnWebGpu, StartAndEndWithinAWord) {
  Maker m;
  for (const DType d : {DType::F16, DType::BF16, DType::I8, DType::U16, DType::Bool})
    for (const int64_t start : {1, 2, 3}) {
      const Value part = ops::narrow(m.in({69}, d), {.axis = 0, .start = start, .len = 69 - start});
      m.out(is_float(d) ? ops::neg(part) : ops::bit_not(part));
      if (is_float(d))
        m.out(ops::softmax(ops::narrow(ops::neg(m.in({69}, d)), {.axis = 0, .start = start, .len = 60})));
    }
  expect_as_oracle(m.g, {.tolerance = kBFloat});
}

// Nor does a binding of less than a vector at a value's end reach the next one, which may be what the dispatch writes.
TEST_F(ViewsOnWebGpu, ShortPartsEndWithTheirValue) {
  Maker m;
  const auto end = [&](DType d, int64_t start, int64_t len) {
    return ops::narrow(m.weight({start + len}, d), {.axis = 0, .start = start, .len = len});
  };
  m.out(ops::gt(m.weight({33, 3}), end(DType::F32, 5, 3)));
  const Value at = m.weight({6}, DType::I32);
  m.out(ops::gather_nd(m.weight({63}), ops::narrow(at, {.axis = 0, .start = 5, .len = 1})));
  m.out(ops::cast(end(DType::F32, 13, 3), {.to = DType::I32}));
  expect_as_oracle(m.g, {.given = {{Maker::name(at), Tensor::i32({6}, {0, 1, 2, 3, 4, 62})}},
                         .tolerance = kExact,
                         .options = webgpu_options()});
}

// Less than the 16 bytes that a binding has at least, in a value that its buffer has no room behind.
TEST_F(ViewsOnWebGpu, MayEndWithTheirBuffer) {
  for (const DType d : {DType::F32, DType::F16})
    for (const int64_t len : {1, 2, 3}) {
      Maker m;
      const int64_t size = 256 / static_cast<int64_t>(size_of(d));
      const Value part = ops::narrow(m.in({size}, d), {.axis = 0, .start = size - len, .len = len});
      m.out(ops::reduce_sum(part, {.axes = {0}}));
      m.out(ops::neg(part));
      expect_as_oracle(m.g, {.tolerance = kHalf, .options = webgpu_options()});  // with poison a guard follows
    }
}

// A dispatch sees a buffer that it writes through one binding, of one type: what it reads as another is a copy.
TEST_F(ViewsOnWebGpu, PartsOfOneValueAreReadAsDifferentTypes) {
  Maker m;
  const Value order = ops::topk(m.in({256}), {.k = 256}).result(1);
  m.out(ops::gather(order, order, {.axis = 0}));
  const Value p = ops::softmax(m.in({18}, DType::F16));
  const auto part = [&](int64_t start, int64_t len) { return ops::narrow(p, {.axis = 0, .start = start, .len = len}); };
  m.out(ops::group_norm(ops::reshape(part(0, 12), {.new_shape = {1, 3, 2, 2}}), part(12, 3), part(15, 3)));
  const Value i = ops::cumsum(m.in({32}, DType::I32));
  m.out(ops::cast(i, {.to = DType::F32}) - ops::cast(ops::bitcast(i, {.to = DType::U32}), {.to = DType::F32}));
  const Value rows = ops::cumsum(m.in({512}));
  const Value x = ops::reshape(ops::narrow(rows, {.axis = 0, .start = 8, .len = 384}), {.new_shape = {12, 32}});
  const Value scales = ops::reshape(ops::narrow(rows, {.axis = 0, .start = 380, .len = 16}), {.new_shape = {1, 16}});
  m.out(ops::dequant_matmul(Values{x, m.in({32, 16}, DType::I8), scales, m.in({1, 16})},
                            {.scheme = Scheme::kInt8Asym, .block = 32}));
  expect_as_oracle(m.g, {.tolerance = kHalf});
}

}  // namespace rlx::test
