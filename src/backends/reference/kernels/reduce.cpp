#include "rlx/ops/reduce.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using Complex = std::complex<double>;
__extension__ using Wide = __int128;  // the sum of any number of 64-bit integers that fit in memory

template <class T, class F>
T wrapping(T a, T b, const F& f) {
  return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

// The operand in order; step(result index, operand index).
template <class Step>
void walk(const Call& call, const Step& step) {
  const View& x = call.input(0);
  std::vector<int64_t> strides(x.sizes.size(), 1), index(x.sizes.size(), 0);
  for (const int64_t a : call.attrs<ops::ReduceAttrs>().axes)
    strides[static_cast<size_t>(normalize_axis(a, x.rank()))] = 0;
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > 0;) {
    if (strides[d] == 0) continue;
    strides[d] = stride;
    stride *= x.sizes[d];
  }
  const int64_t n = x.elements();
  int64_t to = 0;
  for (int64_t i = 0; i < n; ++i) {
    step(static_cast<size_t>(to), i);
    for (size_t d = strides.size(); d-- > 0;) {
      to += strides[d];
      if (++index[d] < x.sizes[d]) break;
      to -= strides[d] * x.sizes[d];
      index[d] = 0;
    }
  }
}

// How many elements meet in one of the result.
int64_t extent(const Call& call) {
  int64_t n = 1;
  for (const int64_t a : call.attrs<ops::ReduceAttrs>().axes)
    n *= call.input(0).dim(normalize_axis(a, call.input(0).rank()));
  return n;
}

template <class T, class X, class Combine, class Set>
void reduce(const Call& call, const X& x, T identity, const Combine& combine, const Set& set) {
  std::vector<T> sums(static_cast<size_t>(call.output(0).elements()), identity);
  walk(call, [&](size_t to, int64_t from) { sums[to] = combine(sums[to], static_cast<T>(x[from])); });
  for (size_t i = 0; i < sums.size(); ++i) set(static_cast<int64_t>(i), sums[i]);
}

template <class Combine, class Finish>
void reduce_float(const Call& call, double identity, const Combine& combine, const Finish& finish) {
  const Writer y = call.writer(0);
  reduce<double>(call, call.reader(0), identity, combine, [&](int64_t i, double v) { y.set(i, finish(v)); });
}

// combine takes two int64_t, or two uint64_t where the elements are U64.
template <class Combine>
void reduce_int(const Call& call, int64_t identity, const Combine& combine) {
  const IntWriter y = call.int_writer(0);
  if (call.input(0).dtype == DType::U64)
    reduce<uint64_t>(call, call.uint_reader(0), static_cast<uint64_t>(identity), combine,
                     [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); });
  else
    reduce<int64_t>(call, call.int_reader(0), identity, combine, [&](int64_t i, int64_t v) { y.set(i, v); });
}

template <class Combine>
void reduce_complex(const Call& call, Complex identity, const Combine& combine, double divisor = 1) {
  auto* y = call.output_as<std::complex<float>>(0);
  reduce<Complex>(call, call.input_as<std::complex<float>>(0), identity, combine, [&](int64_t i, Complex v) {
    y[i] = {static_cast<float>(v.real() / divisor), static_cast<float>(v.imag() / divisor)};
  });
}

// Without axes every op is a copy, bit for bit.
bool copied(const Call& call) {
  if (!call.attrs<ops::ReduceAttrs>().axes.empty()) return false;
  const View& x = call.input(0);
  std::memcpy(call.output(0).data, x.data, static_cast<size_t>(x.elements()) * size_of(x.dtype));
  return true;
}

constexpr auto kKeep = [](double v) { return v; };
constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kMultiply = [](auto a, auto b) { return a * b; };

}  // namespace

void reduce_sum(const Call& call) {
  if (copied(call)) return;
  const DType dtype = call.output(0).dtype;
  if (is_complex(dtype)) return reduce_complex(call, 0, kAdd);
  if (is_float(dtype)) return reduce_float(call, 0, kAdd, kKeep);
  reduce_int(call, 0, [](auto a, auto b) { return wrapping(a, b, kAdd); });
}

void reduce_mean(const Call& call) {
  if (copied(call)) return;
  const DType dtype = call.output(0).dtype;
  const int64_t n = extent(call);
  const auto count = static_cast<double>(n);  // 0 / 0 is NaN, as the mean of nothing should be
  if (is_complex(dtype)) return reduce_complex(call, 0, kAdd, count);
  if (is_float(dtype)) return reduce_float(call, 0, kAdd, [&](double v) { return v / count; });
  if (n == 0) fail(ErrorKind::kRuntime, "The mean of 0 integers is not defined.");
  const IntWriter y = call.int_writer(0);
  const auto set = [&](int64_t i, Wide v) { y.set(i, static_cast<int64_t>(v / n)); };
  if (dtype == DType::U64)
    reduce<Wide>(call, call.uint_reader(0), 0, kAdd, set);
  else
    reduce<Wide>(call, call.int_reader(0), 0, kAdd, set);
}

void reduce_max(const Call& call) {
  if (copied(call)) return;
  const DType dtype = call.output(0).dtype;
  if (is_float(dtype))
    return reduce_float(
        call, -INFINITY, [](double a, double b) { return std::isnan(a) || a >= b ? a : b; }, kKeep);
  reduce_int(call, smallest_int(dtype), [](auto a, auto b) { return a > b ? a : b; });
}

void reduce_min(const Call& call) {
  if (copied(call)) return;
  const DType dtype = call.output(0).dtype;
  if (is_float(dtype))
    return reduce_float(
        call, INFINITY, [](double a, double b) { return std::isnan(a) || a <= b ? a : b; }, kKeep);
  reduce_int(call, largest_int(dtype), [](auto a, auto b) { return a < b ? a : b; });
}

void reduce_prod(const Call& call) {
  if (copied(call)) return;
  const DType dtype = call.output(0).dtype;
  if (is_complex(dtype))
    return reduce_complex(call, 1, [](Complex a, Complex b) {
      return Complex(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    });
  if (is_float(dtype)) return reduce_float(call, 1, kMultiply, kKeep);
  reduce_int(call, 1, [](auto a, auto b) { return wrapping(a, b, kMultiply); });
}

}  // namespace rlx::reference
