#include "rlx/ops/resize.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/host/resize_axis.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using host::ResizeAxis;

std::vector<ResizeAxis> axes_of(const Call& call) {
  const View &x = call.input(0), &y = call.output(0);
  std::vector<ResizeAxis> axes;
  for (int64_t a = 0; a < x.rank(); ++a)
    axes.emplace_back(call.attrs<ops::ResizeAttrs>(), x.rank(), a, x.dim(a), y.dim(a));
  return axes;
}

// An element is one of x, whatever its dtype.
void pick(const Call& call, const std::vector<ResizeAxis>& axes) {
  const View &x = call.input(0), &y = call.output(0);
  const size_t size = size_of(x.dtype);
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t a = axes.size(); a-- > 0;) {
      int64_t index = rest % y.sizes[a];
      double weight = 1;
      if (!axes[a].is_identity() && !axes[a].at(index, &index, &weight)) from = -1;
      rest /= y.sizes[a];
      from = from < 0 ? -1 : from + index * stride;
      stride *= x.sizes[a];
    }
    if (from >= 0)
      std::memcpy(y.data + static_cast<size_t>(i) * size, x.data + static_cast<size_t>(from) * size, size);
    else
      call.writer(0).set(i, static_cast<double>(call.attrs<ops::ResizeAttrs>().extrapolation_value));
  }
}

// One axis after the other.
std::vector<double> along(const std::vector<double>& x, const ResizeAxis& axis, int64_t outer, int64_t inner,
                          double beyond) {
  std::vector<double> y(static_cast<size_t>(outer * axis.out() * inner));
  std::vector<int64_t> index(static_cast<size_t>(axis.taps()));
  std::vector<double> weight(static_cast<size_t>(axis.taps()));
  for (int64_t j = 0; j < axis.out(); ++j) {
    const bool inside = axis.at(j, index.data(), weight.data());
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        double sum = inside ? 0 : beyond;
        for (size_t k = 0; inside && k < index.size(); ++k)
          sum += weight[k] * x[static_cast<size_t>((o * axis.in() + index[k]) * inner + i)];
        y[static_cast<size_t>((o * axis.out() + j) * inner + i)] = sum;
      }
  }
  return y;
}

}  // namespace

void resize(const Call& call) {
  const auto& attrs = call.attrs<ops::ResizeAttrs>();
  const std::vector<ResizeAxis> axes = axes_of(call);
  bool stays = true;
  for (const ResizeAxis& axis : axes) stays = stays && axis.is_identity();
  if (stays || attrs.mode == ops::ResizeMode::kNearest) return pick(call, axes);

  const View &x = call.input(0), &y = call.output(0);
  const Reader read = call.reader(0);
  std::vector<double> values(static_cast<size_t>(x.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = read[static_cast<int64_t>(i)];
  int64_t outer = 1, inner = x.elements();
  for (const ResizeAxis& axis : axes) {
    inner /= axis.in();
    if (!axis.is_identity()) values = along(values, axis, outer, inner, static_cast<double>(attrs.extrapolation_value));
    outer *= axis.out();
  }
  // Integers are rounded to the nearest, to the even one of two.
  const bool rounds = is_int(y.dtype);
  const Writer write = call.writer(0);
  for (size_t i = 0; i < values.size(); ++i)
    write.set(static_cast<int64_t>(i), rounds ? std::nearbyint(values[i]) : values[i]);
}

}  // namespace rlx::reference
