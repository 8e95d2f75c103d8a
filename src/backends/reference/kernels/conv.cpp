#include "rlx/ops/conv.h"

#include <cstring>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/window.h"
#include "rlx/ops/conv_backward.h"

namespace rlx::reference {

// One number per channel, 0 where there is no bias.
static double bias_of(const Call& call, int64_t channel) {
  return call.num_inputs() > 2 ? call.reader(2)[channel] : 0.0;
}

void conv(const Call& call) {
  const auto& attrs = call.attrs<ops::ConvAttrs>();
  const WindowWalk walk(ops::window_of(attrs), call.input(0).sizes, call.output(0).sizes);
  const int64_t batch = call.output(0).dim(0), cout = call.output(0).dim(1), cin = call.input(0).dim(1);
  const int64_t cin_group = cin / attrs.groups, cout_group = cout / attrs.groups;
  const int64_t plane = walk.in_plane(), windows = walk.windows(), taps = walk.taps();
  const Reader x = call.reader(0), w = call.reader(1);
  const Writer y = call.writer(0);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t co = 0; co < cout; ++co) {
      const double bias = bias_of(call, co);
      for (int64_t o = 0; o < windows; ++o) {
        double sum = bias;
        for (int64_t ci = 0; ci < cin_group; ++ci) {
          const int64_t from = (n * cin + co / cout_group * cin_group + ci) * plane, row = (co * cin_group + ci) * taps;
          walk.for_each_tap(o, [&](int64_t tap, int64_t at) { sum += x[from + at] * w[row + tap]; });
        }
        y.set((n * cout + co) * windows + o, sum);
      }
    }
}

// Every element of x adds its window, times w, to y.
template <class Attrs>
static void transposed(const Call& call) {
  const auto& attrs = call.attrs<Attrs>();
  const WindowWalk walk(ops::window_of(attrs), call.output(0).sizes, call.input(0).sizes);
  const int64_t batch = call.output(0).dim(0), cout = call.output(0).dim(1), cin = call.input(0).dim(1);
  const int64_t cin_group = cin / attrs.groups, cout_group = cout / attrs.groups;
  const int64_t plane = walk.in_plane(), windows = walk.windows(), taps = walk.taps();
  const Reader x = call.reader(0), w = call.reader(1);
  const Writer y = call.writer(0);
  std::vector<double> sums(static_cast<size_t>(plane));
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t co = 0; co < cout; ++co) {
      std::fill(sums.begin(), sums.end(), bias_of(call, co));
      for (int64_t i = 0; i < cin_group; ++i) {
        const int64_t ci = co / cout_group * cin_group + i, row = (ci * cout_group + co % cout_group) * taps;
        for (int64_t o = 0; o < windows; ++o) {
          const double v = x[(n * cin + ci) * windows + o];
          walk.for_each_tap(o, [&](int64_t tap, int64_t at) { sums[static_cast<size_t>(at)] += v * w[row + tap]; });
        }
      }
      for (int64_t i = 0; i < plane; ++i) y.set((n * cout + co) * plane + i, sums[static_cast<size_t>(i)]);
    }
}

void conv_transpose(const Call& call) { transposed<ops::ConvTransposeAttrs>(call); }

// The gradient of what windows were taken from: operands are that of the windows, and w.
void conv2d_backward_input(const Call& call) { transposed<ops::Conv2dBackwardInputAttrs>(call); }

void im2col(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  const ops::Window window = ops::window_of(call.attrs<ops::Im2ColAttrs>());
  // y has no spatial axes of its own; static sizes need no symbols.
  SymbolTable none;
  const std::vector<int64_t> out = {x.dim(0), x.dim(1), ops::window_count(window, 0, x.dim(2), none).value(),
                                    ops::window_count(window, 1, x.dim(3), none).value()};
  const WindowWalk walk(window, x.sizes, out);
  const int64_t batch = x.dim(0), channels = x.dim(1), windows = walk.windows(), taps = walk.taps();
  const size_t size = size_of(x.dtype);
  std::memset(y.data, 0, static_cast<size_t>(y.elements()) * size);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < windows; ++o)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t to = ((n * windows + o) * channels + c) * taps, from = (n * channels + c) * walk.in_plane();
        walk.for_each_tap(o, [&](int64_t tap, int64_t at) {
          std::memcpy(y.data + static_cast<size_t>(to + tap) * size, x.data + static_cast<size_t>(from + at) * size,
                      size);
        });
      }
}

}  // namespace rlx::reference
