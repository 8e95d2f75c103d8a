#include "rlx/ops/grid_sample.h"

#include <cstring>
#include <vector>

#include "backends/host/grid_axis.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using host::GridAxis;
using host::kMostGridTaps;

struct Tap {
  int64_t from;  // element of the plane; -1: none
  double weight;
};

template <class T>
void sample(const Call& call) {
  const auto& attrs = call.attrs<ops::GridSampleAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const int64_t space = x.rank() - 2, channels = x.dim(1);
  const int64_t plane = product(x.sizes.subspan(2)), places = product(y.sizes.subspan(2));
  const Reader grid = call.reader(1), in = call.reader(0);
  const Writer out = call.writer(0);
  const size_t size = size_of(x.dtype);
  const int taps = host::grid_taps(attrs.mode);
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t p = 0; p < places; ++p) {
      std::vector<Tap> all = {{0, 1}};
      for (int64_t a = 0; a < space; ++a) {  // the grid's coordinates are in the opposite order
        const double coordinate = grid[(n * places + p) * space + space - 1 - a];
        int64_t index[kMostGridTaps];
        T weight[kMostGridTaps];
        GridAxis<T>(attrs, x.dim(a + 2)).at(static_cast<T>(coordinate), index, weight);
        std::vector<Tap> next;
        for (const Tap& tap : all)
          for (int k = 0; k < taps; ++k)
            next.push_back({tap.from < 0 || index[k] < 0 ? -1 : tap.from * x.dim(a + 2) + index[k],
                            tap.weight * static_cast<double>(weight[k])});
        all = next;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = (n * channels + c) * plane, to = (n * channels + c) * places + p;
        if (attrs.mode == ops::GridSampleMode::kNearest) {  // any dtype
          std::byte* bytes = y.data + static_cast<size_t>(to) * size;
          if (all[0].from < 0)
            std::memset(bytes, 0, size);
          else
            std::memcpy(bytes, x.data + static_cast<size_t>(first + all[0].from) * size, size);
          continue;
        }
        double sum = 0;
        for (const Tap& tap : all)
          if (tap.from >= 0) sum += tap.weight * in[first + tap.from];
        out.set(to, sum);
      }
    }
}

}  // namespace

void grid_sample(const Call& call) {
  if (call.input(1).dtype == DType::F64)
    sample<double>(call);
  else
    sample<float>(call);
}

}  // namespace rlx::reference
