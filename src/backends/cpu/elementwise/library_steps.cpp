// Steps that call the C library, or divide, once per element: no vectors, so no targets. They are here so that what is
// around them stays one pass over memory.
#include <cmath>

#include "backends/cpu/elementwise/micro.h"
#include "rlx/error.h"

namespace rlx::cpu {

namespace {

template <float (*f)(float)>
void map(const void* const* in, void* out, int64_t n) {
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, T (*f)(T, T)>
void zip(const void* const* in, void* out, int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

float floored_mod(float a, float b) {
  const float r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0f, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
float truncated_mod(float a, float b) { return std::fmod(a, b); }

[[noreturn]] void divided_by_0() { fail(ErrorKind::kRuntime, "An integer is divided by 0."); }

int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) divided_by_0();
  return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;  // the smallest integer / -1 wraps
}
int64_t truncated_remainder(int64_t a, int64_t b) {
  if (b == 0) divided_by_0();
  return b == -1 ? 0 : a % b;
}
int64_t floored_remainder(int64_t a, int64_t b) {
  const int64_t r = truncated_remainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

void check_divisors(const int32_t* b, int64_t n) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) all &= b[i] != 0;
  if (!all) divided_by_0();
}

StepFn library_step(Micro micro) {
  switch (micro) {
    case Micro::kAsinF: return map<std::asin>;
    case Micro::kAcosF: return map<std::acos>;
    case Micro::kSinhF: return map<std::sinh>;
    case Micro::kCoshF: return map<std::cosh>;
    case Micro::kAsinhF: return map<std::asinh>;
    case Micro::kAcoshF: return map<std::acosh>;
    case Micro::kAtanhF: return map<std::atanh>;
    case Micro::kModF: return zip<float, floored_mod>;
    case Micro::kFmodF: return zip<float, truncated_mod>;
    case Micro::kDivL: return zip<int64_t, quotient>;
    case Micro::kModL: return zip<int64_t, floored_remainder>;
    case Micro::kFmodL: return zip<int64_t, truncated_remainder>;
    default: return nullptr;
  }
}

}  // namespace rlx::cpu
