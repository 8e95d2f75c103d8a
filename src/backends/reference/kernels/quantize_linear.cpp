#include "rlx/ops/quantize_linear.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "ops/linear_scales.h"

namespace rlx::reference {

// f(element, its scale's index)
template <class F>
static void for_each_element(const ops::LinearScales& s, const F& f) {
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t c = 0; c < s.cols; ++c)
      for (int64_t i = 0; i < s.inner; ++i) f((o * s.cols + c) * s.inner + i, s.of(o, c, i));
}

static int64_t zero_of(const Call& call, int64_t at) { return call.num_inputs() > 2 ? call.int_reader(2)[at] : 0; }

void quantize_linear(const Call& call) {
  const auto& attrs = call.attrs<ops::QuantizeLinearAttrs>();
  const ops::LinearScales scales(call.input(0).sizes, call.input(1).sizes, attrs.axis, attrs.block_size);
  const double low = static_cast<double>(attrs.low.value_or(smallest_int(attrs.to)));
  const double high = static_cast<double>(attrs.high.value_or(largest_int(attrs.to)));
  const Reader x = call.reader(0), scale = call.reader(1);
  const IntWriter q = call.int_writer(0);
  for_each_element(scales, [&](int64_t e, int64_t at) {
    // In f32, as every runtime of such models: a quotient next to a tie may become one.
    const float code = std::nearbyint(static_cast<float>(x[e]) / static_cast<float>(scale[at]));
    const auto zero = static_cast<double>(zero_of(call, at));
    const double shifted = std::isnan(code) ? zero : static_cast<double>(code) + zero;
    q.set(e, static_cast<int64_t>(std::clamp(shifted, low, high)));
  });
}

void dequantize_linear(const Call& call) {
  const auto& attrs = call.attrs<ops::DequantizeLinearAttrs>();
  const ops::LinearScales scales(call.input(0).sizes, call.input(1).sizes, attrs.axis, attrs.block_size);
  const IntReader q = call.int_reader(0);
  const Reader scale = call.reader(1);
  const Writer y = call.writer(0);
  for_each_element(scales,
                   [&](int64_t e, int64_t at) { y.set(e, static_cast<double>(q[e] - zero_of(call, at)) * scale[at]); });
}

}  // namespace rlx::reference
