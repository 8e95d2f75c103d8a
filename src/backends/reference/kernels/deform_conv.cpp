#include <cmath>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/col2im.h"

namespace rlx::reference {

namespace {

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t missing) {
  return i < list.size() ? list[i] : missing;
}

// x between its elements; zero beyond them.
double between(const Reader& x, int64_t plane, int64_t height, int64_t width, double h, double w) {
  if (!(h > -1 && h < static_cast<double>(height) && w > -1 && w < static_cast<double>(width))) return 0;
  const auto top = static_cast<int64_t>(std::floor(h)), left = static_cast<int64_t>(std::floor(w));
  const double dh = h - std::floor(h), dw = w - std::floor(w);
  const auto at = [&](int64_t row, int64_t col) {
    return row < 0 || row >= height || col < 0 || col >= width ? 0.0 : x[plane + row * width + col];
  };
  return (1 - dh) * ((1 - dw) * at(top, left) + dw * at(top, left + 1)) +
         dh * ((1 - dw) * at(top + 1, left) + dw * at(top + 1, left + 1));
}

}  // namespace

void deform_conv(const Call& call) {
  const auto& attrs = call.attrs<ops::DeformConvAttrs>();
  const View &x = call.input(0), &w = call.input(1), &y = call.output(0);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), kh = w.dim(2), kw = w.dim(3);
  const int64_t oh = y.dim(2), ow = y.dim(3), per_group = w.dim(1), outputs = y.dim(1) / attrs.groups;
  const int64_t per_offset = channels / attrs.offset_groups, taps = kh * kw;
  const Reader in = call.reader(0), weight = call.reader(1), offset = call.reader(2);
  const Reader bias = call.reader(attrs.bias ? 3 : 2), mask = call.reader(call.num_inputs() - 1);
  const Writer out = call.writer(0);
  int64_t to = 0;
  for (int64_t n = 0; n < y.dim(0); ++n)
    for (int64_t o = 0; o < y.dim(1); ++o)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = attrs.bias ? bias[o] : 0;
          for (int64_t c = 0; c < per_group; ++c)
            for (int64_t t = 0; t < taps; ++t) {
              const int64_t channel = o / outputs * per_group + c;
              const int64_t tap = (n * attrs.offset_groups + channel / per_offset) * taps + t;
              const double moved_h = offset[(2 * tap * oh + i) * ow + j],
                           moved_w = offset[((2 * tap + 1) * oh + i) * ow + j];
              const auto h = static_cast<double>(i * entry(attrs.stride, 0, 1) - entry(attrs.before, 0, 0) +
                                                 t / kw * entry(attrs.dilation, 0, 1));
              const auto v = static_cast<double>(j * entry(attrs.stride, 1, 1) - entry(attrs.before, 1, 0) +
                                                 t % kw * entry(attrs.dilation, 1, 1));
              const double value =
                  between(in, (n * channels + channel) * height * width, height, width, h + moved_h, v + moved_w);
              sum += weight[(o * per_group + c) * taps + t] * value * (attrs.mask ? mask[(tap * oh + i) * ow + j] : 1);
            }
          out.set(to++, sum);
        }
}

}  // namespace rlx::reference
