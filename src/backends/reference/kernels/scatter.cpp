#include "rlx/ops/scatter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/host/index.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using host::checked_index;
using ops::ScatterReduction;

double combine(ScatterReduction reduction, double a, double b) {
  switch (reduction) {
    case ScatterReduction::kNone: return b;
    case ScatterReduction::kAdd: return a + b;
    case ScatterReduction::kMul: return a * b;
    case ScatterReduction::kMax: return std::isnan(a) || a > b ? a : b;  // NaN wins
    case ScatterReduction::kMin: return std::isnan(a) || a < b ? a : b;
  }
  return b;
}

int64_t combine(ScatterReduction reduction, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (reduction) {
    case ScatterReduction::kNone: return b;
    case ScatterReduction::kAdd: return static_cast<int64_t>(x + y);
    case ScatterReduction::kMul: return static_cast<int64_t>(x * y);
    case ScatterReduction::kMax: return std::max(a, b);
    case ScatterReduction::kMin: return std::min(a, b);
  }
  return b;
}

// Update u changes element targets[u]. Sums and products are rounded once, at the end.
template <class T, class Read, class Write>
void reduce(const std::vector<int64_t>& targets, ScatterReduction reduction, int64_t n, const Read& x,
            const Read& updates, const Write& y) {
  std::vector<T> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = x[i];
  for (size_t u = 0; u < targets.size(); ++u) {
    T& value = values[static_cast<size_t>(targets[u])];
    value = combine(reduction, value, updates[static_cast<int64_t>(u)]);
  }
  for (int64_t i = 0; i < n; ++i) y.set(i, values[static_cast<size_t>(i)]);
}

void scatter(const Call& call, const std::vector<int64_t>& targets, ScatterReduction reduction) {
  const View &x = call.input(0), &updates = call.input(2), &y = call.output(0);
  const int64_t n = y.elements();
  if (reduction != ScatterReduction::kNone) {
    if (is_float(x.dtype))
      reduce<double>(targets, reduction, n, call.reader(0), call.reader(2), call.writer(0));
    else
      reduce<int64_t>(targets, reduction, n, call.int_reader(0), call.int_reader(2), call.int_writer(0));
    return;
  }
  const size_t size = size_of(x.dtype);
  std::memmove(y.data, x.data, static_cast<size_t>(n) * size);
  for (size_t u = 0; u < targets.size(); ++u)
    std::memcpy(y.data + static_cast<size_t>(targets[u]) * size, updates.data + u * size, size);
}

}  // namespace

void scatter_elements(const Call& call) {
  const auto& attrs = call.attrs<ops::ScatterElementsAttrs>();
  const View &x = call.input(0), &indices = call.input(1);
  const int64_t axis = normalize_axis(attrs.axis, x.rank());
  const IntReader index = call.int_reader(1);
  std::vector<int64_t> targets;
  for (int64_t u = 0; u < indices.elements(); ++u) {
    int64_t rest = u, to = 0, stride = 1;
    for (int64_t a = x.rank() - 1; a >= 0; --a) {
      to += stride * (a == axis ? checked_index(index[u], x.dim(a)) : rest % indices.dim(a));
      rest /= indices.dim(a);
      stride *= x.dim(a);
    }
    targets.push_back(to);
  }
  scatter(call, targets, attrs.reduction);
}

void scatter_nd(const Call& call) {
  const View &x = call.input(0), &indices = call.input(1);
  const auto depth = static_cast<size_t>(indices.sizes.back());
  const int64_t slice = product(x.sizes.subspan(depth));
  const int64_t count = product(indices.sizes.first(indices.sizes.size() - 1));
  const IntReader index = call.int_reader(1);
  std::vector<int64_t> targets;
  for (int64_t u = 0; u < count; ++u) {
    int64_t to = 0;
    for (size_t k = 0; k < depth; ++k)
      to =
          to * x.sizes[k] + checked_index(index[u * static_cast<int64_t>(depth) + static_cast<int64_t>(k)], x.sizes[k]);
    for (int64_t t = 0; t < slice; ++t) targets.push_back(to * slice + t);
  }
  scatter(call, targets, call.attrs<ops::ScatterNdAttrs>().reduction);
}

}  // namespace rlx::reference
