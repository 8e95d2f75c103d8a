#include <cmath>
#include <complex>

#include "backends/reference/kernels/zip.h"

namespace rlx::reference {

namespace {

// std::complex's operators take the C99 Annex G detours around infinities; the definition here is the plain formula.
template <class F>
void zip_complex(const Call& call, const F& f) {
  using C = std::complex<float>;
  C* y = call.output_as<C>(0);
  zip(
      call, call.input_as<C>(0), call.input_as<C>(1),
      [&](int64_t i, std::complex<double> v) { y[i] = C(static_cast<float>(v.real()), static_cast<float>(v.imag())); },
      [&](C a, C b) { return f(std::complex<double>(a), std::complex<double>(b)); });
}

template <class Float, class Int>
void real(const Call& call, const Float& on_float, const Int& on_int) {
  if (is_float(call.output(0).dtype))
    zip_float(call, on_float);
  else
    zip_int(call, on_int);
}

// Arithmetic on 64 bits that wraps; the writer keeps the low bits of narrower types.
template <class F>
auto wrapping(const F& f) {
  return
      [f](auto a, auto b) { return static_cast<decltype(a)>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b))); };
}

struct IntDiv {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) fail(ErrorKind::kRuntime, "An integer is divided by 0.");
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));  // the smallest integer / -1 wraps
    return a / b;
  }
};

struct IntFmod {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) fail(ErrorKind::kRuntime, "An integer is divided by 0.");
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;  // the smallest integer % -1 is not defined in C++
    return a % b;
  }
};
struct IntMod {
  template <class T>
  T operator()(T a, T b) const {
    const T r = IntFmod{}(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

// As Python's %: a zero has the sign of b, -1 modulo inf is inf.
double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

// base^exponent by squaring, wrapping; a negative exponent follows integer division of 1.
struct IntPow {
  template <class T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>)
      if (exponent < 0) {
        require(base != 0, "Integer 0 is raised to a negative power (", exponent, ").");
        if (base == 1) return 1;
        return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
      }
    uint64_t result = 1, b = static_cast<uint64_t>(base);
    for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1, b *= b)
      if (e & 1) result *= b;
    return static_cast<T>(result);
  }
};

}  // namespace

void add(const Call& call) {
  if (is_complex(call.output(0).dtype)) return zip_complex(call, [](auto a, auto b) { return a + b; });
  real(
      call, [](double a, double b) { return a + b; }, wrapping([](uint64_t a, uint64_t b) { return a + b; }));
}

void sub(const Call& call) {
  if (is_complex(call.output(0).dtype)) return zip_complex(call, [](auto a, auto b) { return a - b; });
  real(
      call, [](double a, double b) { return a - b; }, wrapping([](uint64_t a, uint64_t b) { return a - b; }));
}

void mul(const Call& call) {
  if (is_complex(call.output(0).dtype))
    return zip_complex(call, [](std::complex<double> a, std::complex<double> b) {
      return std::complex<double>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    });
  real(
      call, [](double a, double b) { return a * b; }, wrapping([](uint64_t a, uint64_t b) { return a * b; }));
}

void div(const Call& call) {
  if (is_complex(call.output(0).dtype))
    return zip_complex(call, [](std::complex<double> a, std::complex<double> b) {
      const double norm = b.real() * b.real() + b.imag() * b.imag();
      return std::complex<double>((a.real() * b.real() + a.imag() * b.imag()) / norm,
                                  (a.imag() * b.real() - a.real() * b.imag()) / norm);
    });
  real(
      call, [](double a, double b) { return a / b; }, IntDiv{});
}

void max(const Call& call) {
  real(
      call, [](double a, double b) { return std::isnan(a) || a > b ? a : b; },
      [](auto a, auto b) { return a > b ? a : b; });
}

void min(const Call& call) {
  real(
      call, [](double a, double b) { return std::isnan(a) || a < b ? a : b; },
      [](auto a, auto b) { return a < b ? a : b; });
}

void pow(const Call& call) {
  real(
      call, [](double a, double b) { return std::pow(a, b); }, IntPow{});
}

void mod(const Call& call) { real(call, float_mod, IntMod{}); }

void fmod(const Call& call) {
  real(
      call, [](double a, double b) { return std::fmod(a, b); }, IntFmod{});
}

}  // namespace rlx::reference
