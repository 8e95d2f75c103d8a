#include "rlx/ops/conv_backward.h"

#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/window.h"

namespace rlx::reference {

void conv2d_backward_weight(const Call& call) {
  const auto& attrs = call.attrs<ops::Conv2dBackwardWeightAttrs>();
  const WindowWalk walk(ops::window_of(attrs), call.input(0).sizes, call.input(1).sizes);
  const int64_t batch = call.input(0).dim(0), cin = call.input(0).dim(1), cout = call.input(1).dim(1);
  const int64_t cin_group = cin / attrs.groups, cout_group = cout / attrs.groups;
  const int64_t plane = walk.in_plane(), windows = walk.windows(), taps = walk.taps();
  const Reader x = call.reader(0), dy = call.reader(1);
  const Writer dw = call.writer(0);
  std::vector<double> sums(static_cast<size_t>(taps));
  for (int64_t co = 0; co < cout; ++co)
    for (int64_t i = 0; i < cin_group; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const int64_t ci = co / cout_group * cin_group + i;
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t o = 0; o < windows; ++o) {
          const double v = dy[(n * cout + co) * windows + o];
          const int64_t from = (n * cin + ci) * plane;
          walk.for_each_tap(o, [&](int64_t tap, int64_t at) { sums[static_cast<size_t>(tap)] += v * x[from + at]; });
        }
      for (int64_t k = 0; k < taps; ++k) dw.set((co * cin_group + i) * taps + k, sums[static_cast<size_t>(k)]);
    }
}

}  // namespace rlx::reference
