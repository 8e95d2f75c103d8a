#include "rlx/ops/quantize.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/channels.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// Entry c of a list with one entry for all channels, or one for each.
template <class T>
T pick(const std::vector<T>& list, int64_t c, T none) {
  if (list.empty()) return none;
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(c)];
}

// The sum of at most 2^40 int8 products is exact in 64 bits; its product with mult is rounded to double first.
int8_t requantize(int64_t sum, float mult, int64_t out_zp) {
  const double value = std::nearbyint(static_cast<double>(sum) * static_cast<double>(mult));
  return static_cast<int8_t>(std::clamp(value + static_cast<double>(out_zp), -128.0, 127.0));
}

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t missing) {
  return i < list.size() ? list[i] : missing;
}

}  // namespace

void quantize(const Call& call) {
  const auto& attrs = call.attrs<ops::QuantizeAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  const Reader x = call.reader(0);
  int8_t* q = call.output_as<int8_t>(0);
  for (int64_t i = 0; i < call.input(0).elements(); ++i) {
    const int64_t c = channels.of(i);
    const auto zero = static_cast<double>(pick<int64_t>(attrs.zero_points, c, 0));
    const double code = std::nearbyint(x[i] / static_cast<double>(pick(attrs.scales, c, 1.0f)));
    q[i] = static_cast<int8_t>(std::clamp(std::isnan(code) ? zero : code + zero, -128.0, 127.0));
  }
}

void dequantize(const Call& call) {
  const auto& attrs = call.attrs<ops::QuantizeAttrs>();
  const Channels channels(call.input(0).sizes, attrs.axis);
  const int8_t* q = call.input_as<int8_t>(0);
  const Writer y = call.writer(0);
  for (int64_t i = 0; i < call.input(0).elements(); ++i) {
    const int64_t c = channels.of(i);
    y.set(i, static_cast<double>(q[i] - pick<int64_t>(attrs.zero_points, c, 0)) *
                 static_cast<double>(pick(attrs.scales, c, 1.0f)));
  }
}

void q_matmul(const Call& call) {
  const auto& attrs = call.attrs<ops::QMatmulAttrs>();
  const int64_t m = call.input(0).dim(0), k = call.input(0).dim(1), n = call.input(1).dim(1);
  const int8_t *x = call.input_as<int8_t>(0), *w = call.input_as<int8_t>(1);
  const int32_t* bias = call.input_as<int32_t>(2);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = bias[j];
      for (int64_t c = 0; c < k; ++c) sum += (x[i * k + c] - attrs.x_zp) * (w[c * n + j] - attrs.w_zp);
      call.output_as<int8_t>(0)[i * n + j] = requantize(sum, attrs.mult, attrs.out_zp);
    }
}

void q_conv2d(const Call& call) {
  const auto& attrs = call.attrs<ops::QConv2dAttrs>();
  const auto [n, c_in, height, width] =
      std::tuple{call.input(0).dim(0), call.input(0).dim(1), call.input(0).dim(2), call.input(0).dim(3)};
  const auto [c_out, c_group, kh, kw] =
      std::tuple{call.input(1).dim(0), call.input(1).dim(1), call.input(1).dim(2), call.input(1).dim(3)};
  const int64_t out_h = call.output(0).dim(2), out_w = call.output(0).dim(3);
  const int64_t sh = entry(attrs.stride, 0, 1), sw = entry(attrs.stride, 1, 1);
  const int64_t ph = entry(attrs.padding, 0, 0), pw = entry(attrs.padding, 1, 0);
  const int64_t dh = entry(attrs.dilation, 0, 1), dw = entry(attrs.dilation, 1, 1);
  const int8_t *x = call.input_as<int8_t>(0), *w = call.input_as<int8_t>(1);
  const int32_t* bias = call.input_as<int32_t>(2);
  int8_t* y = call.output_as<int8_t>(0);
  for (int64_t b = 0; b < n; ++b)
    for (int64_t co = 0; co < c_out; ++co)
      for (int64_t oh = 0; oh < out_h; ++oh)
        for (int64_t ow = 0; ow < out_w; ++ow) {
          const int64_t first = co / (c_out / attrs.groups) * c_group;
          int64_t sum = bias[co];
          for (int64_t ci = 0; ci < c_group; ++ci)
            for (int64_t i = 0; i < kh; ++i)
              for (int64_t j = 0; j < kw; ++j) {
                const int64_t h = oh * sh + i * dh - ph, v = ow * sw + j * dw - pw;
                if (h < 0 || h >= height || v < 0 || v >= width) continue;  // x_zp - x_zp = 0
                sum += (x[((b * c_in + first + ci) * height + h) * width + v] - attrs.x_zp) *
                       (w[((co * c_group + ci) * kh + i) * kw + j] - attrs.w_zp);
              }
          y[((b * c_out + co) * out_h + oh) * out_w + ow] = requantize(sum, attrs.mult, attrs.out_zp);
        }
}

}  // namespace rlx::reference
