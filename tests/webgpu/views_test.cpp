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

}  // namespace rlx::test
