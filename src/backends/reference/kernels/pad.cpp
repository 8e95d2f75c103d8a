#include "rlx/ops/pad.h"

#include <cstring>
#include <vector>

#include "backends/host/pad_source.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

void pad(const Call& call) {
  const auto& attrs = call.attrs<ops::PadAttrs>();
  const View &x = call.input(0), &y = call.output(0);
  const size_t size = size_of(x.dtype);
  const std::byte zero[8] = {};
  const std::byte* value = call.num_inputs() == 2 ? call.input(1).data : zero;
  const auto rank = static_cast<size_t>(y.rank());
  std::vector<std::vector<int64_t>> sources(rank);  // per axis and place of the result
  for (size_t a = 0; a < rank; ++a) {
    const host::PaddedAxis axis(attrs.mode, x.sizes[a], attrs.before[a], attrs.after[a]);
    for (int64_t p = 0; p < y.sizes[a]; ++p) sources[a].push_back(axis.source(p));
  }
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t a = rank; a-- > 0;) {
      const int64_t source = sources[a][static_cast<size_t>(rest % y.sizes[a])];
      rest /= y.sizes[a];
      from = from < 0 || source < 0 ? -1 : from + source * stride;
      stride *= x.sizes[a];
    }
    std::memcpy(y.data + static_cast<size_t>(i) * size, from < 0 ? value : x.data + static_cast<size_t>(from) * size,
                size);
  }
}

}  // namespace rlx::reference
