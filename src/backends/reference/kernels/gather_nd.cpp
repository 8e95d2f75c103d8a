#include "rlx/ops/gather_nd.h"

#include <cstring>

#include "backends/host/index.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

using host::checked_index;

void gather_elements(const Call& call) {
  const View &x = call.input(0), &indices = call.input(1), &y = call.output(0);
  const int64_t axis = normalize_axis(call.attrs<ops::GatherElementsAttrs>().axis, x.rank());
  const IntReader index = call.int_reader(1);
  const size_t size = size_of(x.dtype);
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (int64_t a = x.rank() - 1; a >= 0; --a) {
      from += stride * (a == axis ? checked_index(index[i], x.dim(a)) : rest % indices.dim(a));
      rest /= indices.dim(a);
      stride *= x.dim(a);
    }
    std::memcpy(y.data + static_cast<size_t>(i) * size, x.data + static_cast<size_t>(from) * size, size);
  }
}

void gather_nd(const Call& call) {
  const View &x = call.input(0), &indices = call.input(1), &y = call.output(0);
  const auto batch = static_cast<size_t>(call.attrs<ops::GatherNdAttrs>().batch_dims);
  const auto depth = static_cast<size_t>(indices.sizes.back());
  const int64_t batches = product(x.sizes.first(batch)), slice = product(x.sizes.subspan(batch + depth));
  const int64_t count = product(indices.sizes.first(indices.sizes.size() - 1));
  const IntReader index = call.int_reader(1);
  const size_t bytes = static_cast<size_t>(slice) * size_of(x.dtype);
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = i / (count / batches);
    for (size_t k = 0; k < depth; ++k) {
      const int64_t size = x.sizes[batch + k];
      from = from * size + checked_index(index[i * static_cast<int64_t>(depth) + static_cast<int64_t>(k)], size);
    }
    std::memcpy(y.data + static_cast<size_t>(i) * bytes, x.data + static_cast<size_t>(from) * bytes, bytes);
  }
}

}  // namespace rlx::reference
