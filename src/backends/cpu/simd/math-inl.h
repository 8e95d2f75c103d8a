// Functions of f32 vectors (of f64 vectors where f32 has too few bits), for every target. Included after
// hwy/highway.h. All keep to the transcendental row of spec 30, 23 over all of f32, and mostly to a few ulp; NaN and
// infinities give what C's functions give. tests/unit/cpu_math_test.cpp measures them.
#if defined(RLX_BACKENDS_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_MATH_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_MATH_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_MATH_INL_H_
#endif

#include <cfloat>
#include <limits>

#include "backends/cpu/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// first x^n + ... + the last of rest, by Horner's rule.
template <class D, class V, class... C>
HWY_INLINE V polynomial(D d, V x, hn::TFromD<D> first, C... rest) {
  V y = hn::Set(d, first);
  ((y = hn::MulAdd(y, x, hn::Set(d, rest))), ...);
  return y;
}

// The nearest integer, ties to even.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V round_even(D d, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's emulation rounds 0.49999997 up. From 2^23 on every float is an integer, and the sum rounds to one.
  const V magic = hn::Set(d, 0x1p23f), a = hn::Abs(x);
  const V rounded = hn::CopySignToAbs(hn::Sub(hn::Add(a, magic), magic), x);
  return hn::IfThenElse(hn::Lt(a, magic), rounded, x);
#else
  (void)d;
  return hn::Round(x);
#endif
}

// The nearest integers below and above; zeros keep the sign of x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V floor(D d, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  const V r = round_even(d, x);
  return hn::Sub(r, hn::IfThenElseZero(hn::Gt(r, x), hn::Set(d, 1.0f)));
#else
  (void)d;
  return hn::Floor(x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ceil(D d, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::Neg(floor(d, hn::Neg(x)));
#else
  (void)d;
  return hn::Ceil(x);
#endif
}

// x = 2^k m with m around 1; log(m) by the polynomial of Cephes' logf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, hn::Set(d, FLT_MIN));  // denormals get a normal exponent first
  const auto bits = hn::BitCast(di, hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p23f)), x));
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F35'04F3)));  // the bits of sqrt(1/2)
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const V e = hn::Sub(hn::ConvertTo(d, k), hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  const V f = hn::Sub(m, hn::Set(d, 1.0f)), z = hn::Mul(f, f);
  V y = polynomial(d, f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                   -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  y = hn::Mul(hn::Mul(y, f), z);
  y = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(z, hn::Set(d, 0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(f, y));
  const float inf = std::numeric_limits<float>::infinity();
  y = hn::IfThenElse(hn::Le(x, hn::Set(d, FLT_MAX)), y, x);  // +inf and NaN
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -inf), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp(d, hn::Neg(x))));
}

// Cephes' tanhf: a polynomial where 1 - 2 / (e^2x + 1) would cancel.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V a = hn::Abs(x), z = hn::Mul(x, x), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const V p = polynomial(d, z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                         -3.33332819422e-1f);
  const V small = hn::MulAdd(hn::Mul(p, z), x, x);
  const V large = hn::Sub(one, hn::Div(two, hn::Add(exp(d, hn::Add(a, a)), one)));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
}

// erfc(z) for z = sqrt(a b) >= 0: t exp(-a b + P(t)) with t = 1 / (1 + z / 2) (Numerical Recipes), within a few 1e-7 of
// itself and the rounding of a b. Callers have factors that are exact, which z need not be.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_of_positive(D d, V z, V a, V b) {
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.5f), one));
  const V p = polynomial(d, t, 0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                         0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f);
  return hn::Mul(t, exp(d, hn::NegMulAdd(a, b, p)));
}

// (1 + erf(x / sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2, which does not cancel for negative x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_cdf(D d, V x) {
  const V half = hn::Set(d, 0.5f), z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678f));
  const V tail = hn::Mul(half, erfc_of_positive(d, z, hn::Mul(half, x), x));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), tail), tail);
}

// Up to 1 by the polynomial of Cephes' erff, where 1 - erfc would cancel.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const V a = hn::Abs(x), z = hn::Mul(x, x), one = hn::Set(d, 1.0f);
  const V p = polynomial(d, z, 7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f,
                         -2.685381193529856e-2f, 1.128358514861418e-1f, -3.761262582423300e-1f, 1.128379165726710e0f);
  const V large = hn::CopySign(hn::Sub(one, erfc_of_positive(d, a, a, a)), x);
  return hn::IfThenElse(hn::Lt(a, one), hn::Mul(x, p), large);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  return hn::Mul(x, normal_cdf(d, x));
}

// -2 sqrt(2 / pi) (x + 0.044715 x^3)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_approx_exponent(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, 0.044715f), hn::Mul(x, x)), x, x);
  return hn::Mul(hn::Set(d, -1.5957691216f), cubic);
}

// (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)), which does not cancel for negative x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_approx(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp(d, gelu_approx_exponent(d, x))));
}

// Cephes' atanf: the argument is brought below tan(pi / 8).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V atan(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const auto large = hn::Gt(a, hn::Set(d, 2.414213562f)), middle = hn::Gt(a, hn::Set(d, 0.4142135624f));
  const V numerator = hn::IfThenElse(large, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const V denominator = hn::IfThenElse(large, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const V r = hn::Div(numerator, denominator), z = hn::Mul(r, r);
  const V offset =
      hn::IfThenElse(large, hn::Set(d, 1.57079632679f), hn::IfThenElseZero(middle, hn::Set(d, 0.78539816339f)));
  const V p = polynomial(d, z, 8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f, -3.33329491539e-1f);
  return hn::CopySign(hn::Add(offset, hn::MulAdd(hn::Mul(p, z), r, r)), x);
}

// ---- derivatives ----

// sigmoid'(x) = e / (1 + e)^2 with e = exp(-|x|), which does not cancel.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_slope(D d, V x) {
  const V e = exp(d, hn::Neg(hn::Abs(x))), sum = hn::Add(hn::Set(d, 1.0f), e);
  return hn::Div(e, hn::Mul(sum, sum));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_slope(D d, V x) {
  return hn::Mul(hn::Set(d, 4.0f), sigmoid_slope(d, hn::Add(x, x)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_slope(D d, V x) {
  const V bell = exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  return hn::Add(normal_cdf(d, x), hn::Mul(hn::Mul(x, bell), hn::Set(d, 0.39894228f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu_slope(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Mul(sigmoid(d, x), hn::MulAdd(x, sigmoid(d, hn::Neg(x)), one));
}

// s + x s' (2u)' with s = sigmoid(2u). The polynomial is bounded, so that s' = 0 wins where it would overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_approx_slope(D d, V x) {
  const V minus_2u = gelu_approx_exponent(d, x), one = hn::Set(d, 1.0f);
  const V s = hn::Div(one, hn::Add(one, exp(d, minus_2u)));
  const V square = hn::Mul(x, x);
  const V slope = hn::Mul(hn::Set(d, 1.5957691216f), hn::MulAdd(hn::Set(d, 0.134145f), square, one));
  const V bounded = hn::IfThenElse(hn::Gt(slope, hn::Set(d, FLT_MAX)), hn::Set(d, FLT_MAX), slope);
  return hn::MulAdd(hn::Mul(x, sigmoid_slope(d, minus_2u)), bounded, s);
}

// ---- in f64, for arguments that were f32 ----

// The f32 nearest to an f64; too large is infinite on every target (Highway's scalar one saturates).
template <class DF, class V>
HWY_INLINE hn::Vec<DF> to_f32_vector(DF d, V x) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, static_cast<float>(hn::GetLane(x)));
#else
  return hn::DemoteTo(d, x);
#endif
}

template <class V>
struct SinCos {
  V sin, cos;
};

// Beyond this the two parts of pi / 2 below have too few bits.
inline constexpr float kLargestReducedAngle = 4.2e8f;

// |x| <= kLargestReducedAngle. x = n pi / 2 + r with an exact product n * high; polynomials of FreeBSD's sinf, cosf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE SinCos<V> sin_cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 0x1.8p52);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, 6.36619772367581382433e-01)), magic);
  const V n = hn::Sub(shifted, magic);
  const auto quadrant = hn::BitCast(di, shifted);  // its low bits are those of n
  const V high = hn::Sub(x, hn::Mul(n, hn::Set(d, 1.57079631090164184570e+00)));
  const V r = hn::Sub(high, hn::Mul(n, hn::Set(d, 1.58932547735281966916e-08)));
  const V z = hn::Mul(r, r);
  const V s = polynomial(d, z, 0x16cd878c3b46a7.0p-71, -0x1a00f9e2cae774.0p-65, 0x111110896efbb2.0p-59,
                         -0x15555554cbac77.0p-55);
  const V sin_r = hn::MulAdd(hn::Mul(s, z), r, r);
  const V cos_r = polynomial(d, z, 0x199342e0ee5069.0p-68, -0x16c087e80f1e27.0p-62, 0x155553e1053a42.0p-57,
                             -0x1ffffffd0c5e81.0p-54, 1.0);
  const auto one = hn::Set(di, 1);
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(di, hn::Eq(hn::And(quadrant, one), one))));
  const auto sign = [&](auto q) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<62>(hn::And(q, hn::Set(di, 2)))); };
  const V sin = hn::Xor(hn::IfThenElse(odd, cos_r, sin_r), sign(quadrant));
  const V cos = hn::Xor(hn::IfThenElse(odd, sin_r, cos_r), sign(hn::Add(quadrant, one)));
  return {sin, cos};
}

// C's pow of f32 values: exp(b log|a|) to about 1e-9, then its special cases.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow(D d, V a, V b) {
  const hn::RebindToSigned<D> di;
  const double inf = std::numeric_limits<double>::infinity();
  const V one = hn::Set(d, 1.0), zero = hn::Zero(d), magnitude = hn::Abs(a), magic = hn::Set(d, 0x1.8p52);

  // log|a|: a power of two, and 2 atanh((m - 1) / (m + 1)) of the rest. Every f32 is a normal f64.
  const auto bits = hn::BitCast(di, magnitude);
  const auto k = hn::ShiftRight<52>(hn::Sub(bits, hn::Set(di, 0x3FE6'A09E'667F'3BCD)));  // the bits of sqrt(1/2)
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(k)));
  const V e = hn::Sub(hn::BitCast(d, hn::Add(k, hn::BitCast(di, magic))), magic);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one)), z = hn::Mul(s, s);
  const V p = polynomial(d, z, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0);
  V log_a = hn::MulAdd(e, hn::Set(d, 0.693147180559945309417), hn::Mul(p, s));
  log_a = hn::IfThenElse(hn::Eq(magnitude, zero), hn::Set(d, -inf), log_a);
  log_a = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, inf)), magnitude, log_a);

  // exp: far outside f32 at the bounds, far inside f64.
  const V y = hn::Mul(b, log_a);
  const V bounded = hn::Min(hn::Max(y, hn::Set(d, -200.0)), hn::Set(d, 200.0));
  const V shifted = hn::Add(hn::Mul(bounded, hn::Set(d, 1.44269504088896340736)), magic);
  const V n = hn::Sub(shifted, magic);
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693147180559945309417), bounded);
  const V q =
      polynomial(d, r, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  const auto scale = hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 1023)));  // drops magic's bits
  V result = hn::Mul(q, hn::BitCast(d, scale));
  // |a| = 1 to an infinite power is 1; 0 * inf above made it NaN.
  result = hn::IfThenElse(hn::Eq(magnitude, one), one, result);

  // A negative base: integral exponents give it the sign of their parity, others NaN unless it is 0 or infinite.
  const V small_b = hn::IfThenElseZero(hn::Lt(hn::Abs(b), hn::Set(d, 0x1p31)), b);  // larger ones are even
  const V shifted_b = hn::Add(small_b, magic);
  const auto integral = hn::Eq(hn::Sub(shifted_b, magic), small_b);
  const V sign_bit = hn::SignBit(d);
  const V odd_sign = hn::BitCast(d, hn::ShiftLeft<63>(hn::BitCast(di, shifted_b)));
  result = hn::Or(result, hn::IfThenElseZero(integral, hn::And(hn::And(a, sign_bit), odd_sign)));
  const auto finite_negative = hn::And(hn::Lt(a, zero), hn::Gt(a, hn::Set(d, -inf)));
  result = hn::IfThenElse(hn::AndNot(integral, finite_negative), hn::Set(d, std::numeric_limits<double>::quiet_NaN()),
                          result);

  // NaN stays, but 1^b = a^0 = 1 whatever the other is.
  result = hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), result);
  return hn::IfThenElse(hn::Or(hn::Eq(a, one), hn::Eq(b, zero)), one, result);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
