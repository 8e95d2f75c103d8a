#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

struct Row {
  int64_t first = 0;  // its first element
  int64_t label = 0;
  double top = 0, sum = 0;  // largest logit; sum of exp(logit - top)
};

template <class F>
void each_row(const Call& call, const F& f) {
  const Reader x = call.reader(0);
  const IntReader labels = call.int_reader(1);
  const int64_t rows = call.input(0).dim(0), classes = call.input(0).dim(1);
  for (int64_t n = 0; n < rows; ++n) {
    Row row{.first = n * classes, .label = labels[n]};
    if (row.label < 0 || row.label >= classes)
      fail(ErrorKind::kRuntime, str("Label (", row.label, ") is out of range for the classes (", classes, ")."));
    row.top = x[row.first];
    for (int64_t c = 0; c < classes; ++c) row.top = std::max(row.top, x[row.first + c]);
    for (int64_t c = 0; c < classes; ++c) row.sum += std::exp(x[row.first + c] - row.top);
    f(n, row);
  }
}

}  // namespace

void softmax_cross_entropy_with_logits(const Call& call) {
  const Reader x = call.reader(0);
  const Writer loss = call.writer(0);
  each_row(call,
           [&](int64_t n, const Row& row) { loss.set(n, std::log(row.sum) + (row.top - x[row.first + row.label])); });
}

void softmax_cross_entropy_backward(const Call& call) {
  const Reader x = call.reader(0), d_loss = call.reader(2);
  const Writer dx = call.writer(0);
  const int64_t classes = call.input(0).dim(1);
  each_row(call, [&](int64_t n, const Row& row) {
    for (int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(x[row.first + c] - row.top) / row.sum;
      dx.set(row.first + c, (p - (c == row.label ? 1 : 0)) * d_loss[n]);
    }
  });
}

}  // namespace rlx::reference
