#include "rlx/ops/unary.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

template <class F>
void map_float(const Call& call, const F& f) {
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) y.set(i, f(x[i]));
}

}  // namespace

void erf(const Call& call) {
  map_float(call, [](double x) { return std::erf(x); });
}
void floor(const Call& call) {
  map_float(call, [](double x) { return std::floor(x); });
}
void ceil(const Call& call) {
  map_float(call, [](double x) { return std::ceil(x); });
}
void asin(const Call& call) {
  map_float(call, [](double x) { return std::asin(x); });
}
void acos(const Call& call) {
  map_float(call, [](double x) { return std::acos(x); });
}
void sinh(const Call& call) {
  map_float(call, [](double x) { return std::sinh(x); });
}
void cosh(const Call& call) {
  map_float(call, [](double x) { return std::cosh(x); });
}
void asinh(const Call& call) {
  map_float(call, [](double x) { return std::asinh(x); });
}
void acosh(const Call& call) {
  map_float(call, [](double x) { return std::acosh(x); });
}
void atanh(const Call& call) {
  map_float(call, [](double x) { return std::atanh(x); });
}

void sign(const Call& call) {
  const DType dtype = call.input(0).dtype;
  if (is_float(dtype))
    return map_float(call, [](double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; });  // NaN stays, -0 is 0
  const IntReader x = call.int_reader(0);
  const IntWriter y = call.int_writer(0);
  const bool has_sign = is_signed(dtype);
  for (int64_t i = 0; i < call.output(0).elements(); ++i) y.set(i, x[i] == 0 ? 0 : has_sign && x[i] < 0 ? -1 : 1);
}

void is_nan(const Call& call) {
  const Reader x = call.reader(0);
  bool* y = call.output_as<bool>(0);
  for (int64_t i = 0; i < call.output(0).elements(); ++i) y[i] = std::isnan(x[i]);
}

void is_inf(const Call& call) {
  const auto& attrs = call.attrs<ops::IsInfAttrs>();
  const Reader x = call.reader(0);
  bool* y = call.output_as<bool>(0);
  for (int64_t i = 0; i < call.output(0).elements(); ++i)
    y[i] = std::isinf(x[i]) && (x[i] > 0 ? attrs.detect_positive : attrs.detect_negative);
}

}  // namespace rlx::reference
