// F16 and BF16 bits to f32 vectors and back, rounding to nearest even, for every target. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_HALF_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_HALF_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_HALF_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many 16 bit lanes as d, an f32 tag, has lanes.
template <class D>
using HalfBits = hn::Rebind<uint16_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> f16_to_f32(D d, hn::Vec<HalfBits<D>> bits) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's emulation knows neither infinities nor NaN. Normal numbers: shift and add to the exponent; what has the
  // largest exponent gets the largest there too; denormals are integers of 2^-24.
  const hn::RebindToUnsigned<D> u;
  const auto wide = hn::PromoteTo(u, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(u, 0x8000)));
  const auto magnitude = hn::And(wide, hn::Set(u, 0x7FFF));
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(u, 112u << 23));
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(u, 0x7F80'0000));
  const auto denormal =
      hn::BitCast(u, hn::Mul(hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<D>(), magnitude)), hn::Set(d, 0x1p-24f)));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(u, 0x0400)), denormal, normal);
  const auto all = hn::IfThenElse(hn::Gt(magnitude, hn::Set(u, 0x7BFF)), special, finite);
  return hn::BitCast(d, hn::Or(sign, all));
#else
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#endif
}

template <class D>
HWY_INLINE hn::Vec<HalfBits<D>> f32_to_f16(D d, hn::Vec<D> x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's emulation truncates. Adding 2^13 times the value's own power of two rounds a normal number; for a
  // denormal, adding 0.5 puts the unit 2^-24 in the last place of an f32.
  const hn::RebindToUnsigned<D> u;
  const auto bits = hn::BitCast(u, x);
  const auto sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(u, 0x8000'0000)));
  const auto magnitude = hn::And(bits, hn::Set(u, 0x7FFF'FFFF));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(u, 1));
  const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(u, 0x0FFF)));
  const auto normal = hn::Sub(hn::ShiftRight<13>(rounded), hn::Set(u, 112u << 10));
  const auto denormal =
      hn::Sub(hn::BitCast(u, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f))), hn::BitCast(u, hn::Set(d, 0.5f)));
  const auto tiny = hn::Lt(magnitude, hn::Set(u, 113u << 23));    // below 2^-14
  const auto large = hn::Gt(magnitude, hn::Set(u, 0x477F'EFFF));  // from 65520 on
  const auto is_nan = hn::Gt(magnitude, hn::Set(u, 0x7F80'0000));
  const auto finite = hn::IfThenElse(tiny, denormal, normal);
  const auto infinite = hn::IfThenElse(is_nan, hn::Set(u, 0x7E00), hn::Set(u, 0x7C00));
  return hn::TruncateTo(HalfBits<D>(), hn::Or(sign, hn::IfThenElse(large, infinite, finite)));
#else
  (void)d;
  return hn::BitCast(HalfBits<D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), x));
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> bf16_to_f32(D d, hn::Vec<HalfBits<D>> bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

// The f32 bits of x as a BF16 in the upper half; a NaN keeps its upper bits and becomes quiet.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> bf16_in_upper_half(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> u;
  const auto bits = hn::BitCast(u, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(u, 0x0040'0000));
  const auto is_nan = hn::MaskFromVec(hn::BitCast(u, hn::VecFromMask(d, hn::IsNaN(x))));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

template <class D>
HWY_INLINE hn::Vec<HalfBits<D>> f32_to_bf16(D d, hn::Vec<D> x) {
  return hn::TruncateTo(HalfBits<D>(), hn::ShiftRight<16>(bf16_in_upper_half(d, x)));
}

// The nearest f32 that is a BF16, and the same for F16.
template <class D>
HWY_INLINE hn::Vec<D> round_to_bf16(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> u;
  return hn::BitCast(d, hn::And(bf16_in_upper_half(d, x), hn::Set(u, 0xFFFF'0000)));
}
template <class D>
HWY_INLINE hn::Vec<D> round_to_f16(D d, hn::Vec<D> x) {
  return f16_to_f32(d, f32_to_f16(d, x));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
