#include "rlx/ops/col2im.h"

#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t missing) {
  return i < list.size() ? list[i] : missing;
}

// One spatial axis.
struct Axis {
  int64_t image, kernel, stride, dilation, before, windows;
};

// f(row of the columns within a channel, column, element of the image) for all that lie inside the image.
template <class F>
void each(const std::vector<Axis>& axes, const F& f) {
  int64_t taps = 1, windows = 1;
  for (const Axis& a : axes) {
    taps *= a.kernel;
    windows *= a.windows;
  }
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t w = 0; w < windows; ++w) {
      int64_t tap = t, window = w, at = 0, stride = 1;
      for (size_t i = axes.size(); i-- > 0;) {
        const Axis& a = axes[i];
        const int64_t place = window % a.windows * a.stride - a.before + tap % a.kernel * a.dilation;
        tap /= a.kernel;
        window /= a.windows;
        at = at < 0 || place < 0 || place >= a.image ? -1 : at + place * stride;
        stride *= a.image;
      }
      if (at >= 0) f(t, w, at);
    }
}

template <class T, class Read, class Write>
void add_up(const Call& call, const std::vector<Axis>& axes, const Read& x, const Write& y) {
  const View &in = call.input(0), &out = call.output(0);
  const int64_t planes = out.dim(0) * out.dim(1), plane = product(out.sizes.subspan(2));
  const int64_t taps = in.dim(1) / out.dim(1), windows = in.dim(2);
  for (int64_t p = 0; p < planes; ++p) {
    std::vector<T> sums(static_cast<size_t>(plane), T{});
    each(axes, [&](int64_t t, int64_t w, int64_t at) {
      sums[static_cast<size_t>(at)] += static_cast<T>(x[(p * taps + t) * windows + w]);
    });
    for (int64_t i = 0; i < plane; ++i) y(p * plane + i, sums[static_cast<size_t>(i)]);
  }
}

}  // namespace

void col2im(const Call& call) {
  const auto& attrs = call.attrs<ops::Col2ImAttrs>();
  std::vector<Axis> axes;
  for (size_t i = 0; i < attrs.kernel_size.size(); ++i) {
    Axis a{.image = call.output(0).sizes[i + 2],
           .kernel = attrs.kernel_size[i],
           .stride = entry(attrs.stride, i, 1),
           .dilation = entry(attrs.dilation, i, 1),
           .before = entry(attrs.before, i, 0),
           .windows = 0};
    a.windows = (a.image + a.before + entry(attrs.after, i, 0) - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
    axes.push_back(a);
  }
  if (is_float(call.output(0).dtype)) {
    const Writer y = call.writer(0);
    add_up<double>(call, axes, call.reader(0), [&](int64_t i, double v) { y.set(i, v); });
  } else {
    const IntWriter y = call.int_writer(0);
    add_up<uint64_t>(call, axes, call.int_reader(0), [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); });
  }
}

}  // namespace rlx::reference
