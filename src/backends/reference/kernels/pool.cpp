#include "rlx/ops/pool.h"

#include <cmath>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/window.h"

namespace rlx::reference {

namespace {

// y[window] = finish(window, f over the elements of the window that lie inside x, their number).
template <class T, class X, class Y, class F, class Finish>
void pool(const Call& call, const X& x, const Y& y, T identity, const F& f, const Finish& finish) {
  const WindowWalk walk(ops::window_of(call.attrs<ops::PoolAttrs>()), call.input(0).sizes, call.output(0).sizes);
  const int64_t planes = call.output(0).dim(0) * call.output(0).dim(1), windows = walk.windows();
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t o = 0; o < windows; ++o) {
      T value = identity;
      int64_t count = 0;
      walk.for_each_tap(o, [&](int64_t, int64_t at) {
        value = f(value, x[p * walk.in_plane() + at]);
        ++count;
      });
      y.set(p * windows + o, finish(walk, o, value, count));
    }
}

// g takes two int64_t, or two uint64_t where the elements are U64.
template <class F, class G>
void pool_real(const Call& call, double identity, const F& f, int64_t int_identity, const G& g) {
  const auto as_is = [](const WindowWalk&, int64_t, auto value, int64_t) { return value; };
  const auto as_bits = [](const WindowWalk&, int64_t, uint64_t value, int64_t) { return static_cast<int64_t>(value); };
  if (is_float(call.output(0).dtype))
    pool(call, call.reader(0), call.writer(0), identity, f, as_is);
  else if (call.output(0).dtype == DType::U64)
    pool(call, call.uint_reader(0), call.int_writer(0), static_cast<uint64_t>(int_identity), g, as_bits);
  else
    pool(call, call.int_reader(0), call.int_writer(0), int_identity, g, as_is);
}

}  // namespace

void pool_max(const Call& call) {
  pool_real(
      call, -INFINITY, [](double a, double b) { return std::isnan(a) || a > b ? a : b; },
      smallest_int(call.output(0).dtype), [](auto a, auto b) { return a > b ? a : b; });
}

// The element of the plane that pool_max takes: the first of the largest, the first NaN; -1 in the padding.
template <class X>
static int64_t first_maximum(const WindowWalk& walk, int64_t o, const X& x, int64_t plane) {
  int64_t best = -1;
  walk.for_each_tap(o, [&](int64_t, int64_t at) {
    const auto v = x[plane + at];
    if (best < 0 || v > x[plane + best] || (v != v && x[plane + best] == x[plane + best])) best = at;
  });
  return best;
}

void pool_max_indices(const Call& call) {
  const auto& attrs = call.attrs<ops::PoolMaxIndicesAttrs>();
  const WindowWalk walk(ops::window_of(attrs), call.input(0).sizes, call.output(0).sizes);
  const int64_t planes = call.output(0).dim(0) * call.output(0).dim(1), windows = walk.windows();
  auto* y = call.output_as<int64_t>(0);
  const auto find = [&](const auto& x) {
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t o = 0; o < windows; ++o) {
        const int64_t plane = p * walk.in_plane(), at = first_maximum(walk, o, x, plane);
        const auto [d, h, w] = walk.in;
        const int64_t by_column = at % w * h * d + at / w % h * d + at / w / h;
        y[p * windows + o] = at < 0 ? -1 : plane + (attrs.column_major ? by_column : at);
      }
  };
  if (is_float(call.input(0).dtype))
    find(call.reader(0));
  else if (call.input(0).dtype == DType::U64)
    find(call.uint_reader(0));
  else
    find(call.int_reader(0));
}

void pool_min(const Call& call) {
  pool_real(
      call, INFINITY, [](double a, double b) { return std::isnan(a) || a < b ? a : b; },
      largest_int(call.output(0).dtype), [](auto a, auto b) { return a < b ? a : b; });
}

void pool_sum(const Call& call) {
  pool_real(
      call, 0.0, [](double a, double b) { return a + b; }, 0,
      [](auto a, auto b) { return static_cast<decltype(a)>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
}

void pool_prod(const Call& call) {
  pool_real(
      call, 1.0, [](double a, double b) { return a * b; }, 1,
      [](auto a, auto b) { return static_cast<decltype(a)>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); });
}

void pool_mean(const Call& call) {
  const bool with_padding = call.attrs<ops::PoolAttrs>().count_include_pad;
  pool(
      call, call.reader(0), call.writer(0), 0.0, [](double a, double b) { return a + b; },
      [&](const WindowWalk& walk, int64_t o, double sum, int64_t count) {
        return sum / static_cast<double>(with_padding ? walk.padded_taps(o) : count);  // no element at all: NaN
      });
}

void max_pool2d_backward(const Call& call) {
  const WindowWalk walk(ops::window_of(call.attrs<ops::MaxPool2dBackwardAttrs>()), call.input(0).sizes,
                        call.input(1).sizes);
  const int64_t planes = call.output(0).dim(0) * call.output(0).dim(1), windows = walk.windows();
  const int64_t plane = walk.in_plane();
  const Reader x = call.reader(0), dy = call.reader(1);
  const Writer dx = call.writer(0);
  std::vector<double> sums(static_cast<size_t>(plane));
  for (int64_t p = 0; p < planes; ++p) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t o = 0; o < windows; ++o) {
      const int64_t best = first_maximum(walk, o, x, p * plane);
      if (best >= 0) sums[static_cast<size_t>(best)] += dy[p * windows + o];
    }
    for (int64_t i = 0; i < plane; ++i) dx.set(p * plane + i, sums[static_cast<size_t>(i)]);
  }
}

}  // namespace rlx::reference
