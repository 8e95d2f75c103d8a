#include "rlx/ops/topk.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/argmax.h"

namespace rlx::reference {

namespace {

bool is_nan(double v) { return std::isnan(v); }
bool is_nan(int64_t) { return false; }
bool is_nan(uint64_t) { return false; }

// NaN counts as the largest value there is.
template <class T>
bool less(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

template <class X, class Set>
void top(const Call& call, const X& x, const Set& set) {
  const auto& attrs = call.attrs<ops::TopkAttrs>();
  const auto [outer, cols, stride] = split_at(call.input(0).sizes, attrs.axis);
  const int64_t inner = stride;  // clang 14 cannot capture a structured binding
  std::vector<int64_t> order(static_cast<size_t>(cols));
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t first = row / inner * cols * inner + row % inner;
    const int64_t first_out = row / inner * attrs.k * inner + row % inner;
    std::iota(order.begin(), order.end(), 0);
    // Stable: of equal elements the smaller index stays in front.
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const auto va = x[first + a * inner], vb = x[first + b * inner];
      return attrs.largest ? less(vb, va) : less(va, vb);
    });
    for (int64_t c = 0; c < attrs.k; ++c)
      set(first_out + c * inner, first + order[static_cast<size_t>(c)] * inner, order[static_cast<size_t>(c)]);
  }
}

template <class X>
void arg(const Call& call, const X& x, bool largest) {
  const auto [outer, cols, inner] = split_at(call.input(0).sizes, call.attrs<ops::ArgmaxAttrs>().axis);
  if (cols == 0) fail(ErrorKind::kRuntime, "An axis of size 0 has no largest or smallest element.");
  const IntWriter y = call.int_writer(0);
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t first = row / inner * cols * inner + row % inner;
    int64_t best = 0;
    for (int64_t c = 1; c < cols; ++c) {
      const auto v = x[first + c * inner], b = x[first + best * inner];
      if (is_nan(b)) break;
      if (is_nan(v) || (largest ? v > b : v < b)) best = c;
    }
    y.set(row, best);
  }
}

void arg(const Call& call, bool largest) {
  if (is_float(call.input(0).dtype))
    arg(call, call.reader(0), largest);
  else if (call.input(0).dtype == DType::U64)
    arg(call, call.uint_reader(0), largest);
  else
    arg(call, call.int_reader(0), largest);
}

}  // namespace

void argmax(const Call& call) { arg(call, true); }
void argmin(const Call& call) { arg(call, false); }

void topk(const Call& call) {
  const bool values = call.wants(0), indices = call.wants(1);
  const IntWriter index = call.int_writer(1);
  if (is_float(call.input(0).dtype)) {
    const Reader x = call.reader(0);
    const Writer y = call.writer(0);
    top(call, x, [&](int64_t to, int64_t from, int64_t i) {
      if (values) y.set(to, x[from]);
      if (indices) index.set(to, i);
    });
  } else {
    const IntReader x = call.int_reader(0);
    const IntWriter y = call.int_writer(0);
    const auto set = [&](int64_t to, int64_t from, int64_t i) {
      if (values) y.set(to, x[from]);
      if (indices) index.set(to, i);
    };
    if (call.input(0).dtype == DType::U64)
      top(call, call.uint_reader(0), set);
    else
      top(call, x, set);
  }
}

}  // namespace rlx::reference
