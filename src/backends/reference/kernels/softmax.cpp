#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/softmax.h"

namespace rlx::reference {

void softmax(const Call& call) {
  const auto [outer, cols, inner] = split_at(call.input(0).sizes, call.attrs<ops::SoftmaxAttrs>().axis);
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t first = (row / inner) * cols * inner + row % inner;
    double top = x[first];
    for (int64_t c = 0; c < cols; ++c) top = std::max(top, x[first + c * inner]);
    double sum = 0;  // a NaN anywhere in the row reaches the sum, and so the whole row
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(x[first + c * inner] - top);
    for (int64_t c = 0; c < cols; ++c) y.set(first + c * inner, std::exp(x[first + c * inner] - top) / sum);
  }
}

}  // namespace rlx::reference
