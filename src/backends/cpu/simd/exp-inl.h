// exp of f32 vectors, for every target of a SIMD file. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_EXP_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_EXP_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_EXP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Within 2 ulp over all of f32, denormal results included; NaN stays NaN, +inf gives +inf, -inf gives 0.
// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by a polynomial; 2^n in two factors, so that n from -150 to 128 is no
// special case.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const V n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped));
  V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto k = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(k);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(k, half), bias)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, first), second));
}

// exp of x <= 0 for a softmax, in fewer operations: within 3 ulp, 0 where the result would be denormal; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_negative(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  // Rounds to an integer and adds the exponent's bias, all in the lowest bits of the sum's mantissa.
  const V magic = hn::Set(d, 12582912.0f + 127.0f), lowest = hn::Set(d, -87.0f);
  const V t = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(t, magic);
  const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  // Minimax for the relative error, 1e-7, with p(0) = 1.
  V p = hn::MulAdd(hn::Set(d, 0.008290314115583897f), r, hn::Set(d, 0.04189793020486832f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666763573884964f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999915063381195f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.9999997019767761f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const V e = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, t))));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), e);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
