#include <complex>

#include "backends/host/broadcast.h"
#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

template <class X, class F>
void compare_elements(const Call& call, const X& a, const X& b, const F& f) {
  bool* y = call.output_as<bool>(0);
  host::BroadcastWalk<2> walk(call.output(0).sizes, {call.input(0).sizes, call.input(1).sizes});
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i, walk.next()) y[i] = f(a[walk.offset(0)], b[walk.offset(1)]);
}

// Floats as double, U64 as uint64_t, everything else as int64_t: they hold every value of their dtypes.
template <class F>
void compare_real(const Call& call, const F& f) {
  if (is_float(call.input(0).dtype))
    compare_elements(call, call.reader(0), call.reader(1), f);
  else if (call.input(0).dtype == DType::U64)
    compare_elements(call, call.uint_reader(0), call.uint_reader(1), f);
  else
    compare_elements(call, call.int_reader(0), call.int_reader(1), f);
}

template <class F>
void compare_equal(const Call& call, const F& f) {
  using C = std::complex<float>;
  if (is_complex(call.input(0).dtype))
    compare_elements(call, call.input_as<C>(0), call.input_as<C>(1), f);
  else
    compare_real(call, f);
}

}  // namespace

void eq(const Call& call) {
  compare_equal(call, [](auto a, auto b) { return a == b; });
}
void ne(const Call& call) {
  compare_equal(call, [](auto a, auto b) { return a != b; });
}
void lt(const Call& call) {
  compare_real(call, [](auto a, auto b) { return a < b; });
}
void le(const Call& call) {
  compare_real(call, [](auto a, auto b) { return a <= b; });
}
void gt(const Call& call) {
  compare_real(call, [](auto a, auto b) { return a > b; });
}
void ge(const Call& call) {
  compare_real(call, [](auto a, auto b) { return a >= b; });
}

}  // namespace rlx::reference
