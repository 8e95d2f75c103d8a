// Steps on f32 lanes: arithmetic, comparisons, roundings and conversions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/float_steps.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/elementwise/map-inl.h"
#include "backends/cpu/elementwise/micro.h"
#include "backends/cpu/simd/half-inl.h"
#include "backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> infinity(D d) {
  return hn::Set(d, std::numeric_limits<float>::infinity());
}

RLX_STREAMING_STEP2(Add, hn::Add(a, b))
RLX_STREAMING_STEP2(Sub, hn::Sub(a, b))
RLX_STREAMING_STEP2(Mul, hn::Mul(a, b))
RLX_STREAMING_STEP2(Div, hn::Div(a, b))
// NaN wins, from either side.
RLX_STREAMING_STEP2(Max, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b))
RLX_STREAMING_STEP2(Min, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b))
RLX_STREAMING_STEP1(Neg, hn::Neg(x))
RLX_STREAMING_STEP1(Abs, hn::Abs(x))
RLX_STREAMING_STEP1(Relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))  // NaN is not < 0 and stays
RLX_STEP1(Sqrt, float, float, hn::Sqrt(x))
RLX_STEP1(Rsqrt, float, float, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
RLX_STEP1(Round, float, float, round_even(d, x))
RLX_STEP1(Floor, float, float, floor(d, x))
RLX_STEP1(Ceil, float, float, ceil(d, x))
// x itself where it is NaN; -0 gives 0.
RLX_STEP1(SignOrNaN, float, float,
          hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f),
                         hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1.0f), hn::Add(x, hn::Zero(d)))))

// NaN is not equal to anything; Highway's Ne says so on some targets only.
RLX_STEP2(Eq, float, int32_t, as_bool(d, hn::Eq(a, b)))
RLX_STEP2(Ne, float, int32_t, is_false(d, hn::Eq(a, b)))
RLX_STEP2(Lt, float, int32_t, as_bool(d, hn::Lt(a, b)))
RLX_STEP2(Le, float, int32_t, as_bool(d, hn::Le(a, b)))
RLX_STEP2(Gt, float, int32_t, as_bool(d, hn::Gt(a, b)))
RLX_STEP2(Ge, float, int32_t, as_bool(d, hn::Ge(a, b)))
RLX_STEP1(IsNaN, float, int32_t, is_false(d, hn::Eq(x, x)))
RLX_STEP1(IsInf, float, int32_t, as_bool(d, hn::Eq(hn::Abs(x), infinity(d))))
RLX_STEP1(IsPlusInf, float, int32_t, as_bool(d, hn::Eq(x, infinity(d))))
RLX_STEP1(IsMinusInf, float, int32_t, as_bool(d, hn::Eq(hn::Neg(x), infinity(d))))
RLX_STEP1(IsTrue, float, int32_t, is_false(d, hn::Eq(x, hn::Zero(d))))

RLX_STEP2(ReluBackward, float, float, hn::IfThenElseZero(hn::Gt(a, hn::Zero(d)), b))
RLX_STEP1(Sign, float, float,
          hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f),
                         hn::IfThenElseZero(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1.0f))))
RLX_STEP1(Recip, float, float, hn::Div(hn::Set(d, 1.0f), x))
RLX_STEP1(SqrtSlope, float, float, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Div(hn::Set(d, 0.5f), hn::Sqrt(x))))
// In two factors: x sqrt(x) underflows long before its inverse overflows.
RLX_STEP1(RsqrtSlope, float, float,
          hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Div(hn::Div(hn::Set(d, -0.5f), hn::Sqrt(x)), x)))
RLX_STEP1(AtanSlope, float, float, hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), hn::Mul(x, x))))

RLX_STEP1(ToF16, float, float, round_to_f16(d, x))
RLX_STEP1(ToBF16, float, float, round_to_bf16(d, x))

// Truncates toward zero, saturates, NaN gives 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> saturate_to_i32(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V finite = hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p31f)), x);
  const auto i = hn::ConvertTo(di, finite);
  const auto mask = [&](auto m) HWY_ATTR { return hn::MaskFromVec(hn::BitCast(di, hn::VecFromMask(d, m))); };
  const auto too_large = mask(hn::Ge(x, hn::Set(d, 0x1p31f))), too_small = mask(hn::Le(x, hn::Set(d, -0x1p31f)));
  return hn::IfThenElse(too_large, hn::Set(di, std::numeric_limits<int32_t>::max()),
                        hn::IfThenElse(too_small, hn::Set(di, std::numeric_limits<int32_t>::min()), i));
}
RLX_STEP1(FToI, float, int32_t, saturate_to_i32(d, x))

// The lanes differ in size, so operand and result never are the same bytes.
void FToL(const void* const* in, void* out, int64_t n) {
  const float* HWY_RESTRICT x = static_cast<const float*>(in[0]);
  int64_t* HWY_RESTRICT y = static_cast<int64_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const bool fits = v > -0x1p63f && v < 0x1p63f;
    const int64_t otherwise = v >= 0x1p63f    ? std::numeric_limits<int64_t>::max()
                              : v <= -0x1p63f ? std::numeric_limits<int64_t>::min()
                                              : 0;
    y[i] = fits ? static_cast<int64_t>(v) : otherwise;
  }
}

StepFn FloatStep(Micro micro) {
  switch (micro) {
    case Micro::kAddF: return Add<false>;
    case Micro::kSubF: return Sub<false>;
    case Micro::kMulF: return Mul<false>;
    case Micro::kDivF: return Div<false>;
    case Micro::kMaxF: return Max<false>;
    case Micro::kMinF: return Min<false>;
    case Micro::kNegF: return Neg<false>;
    case Micro::kAbsF: return Abs<false>;
    case Micro::kReluF: return Relu<false>;
    case Micro::kSqrtF: return Sqrt;
    case Micro::kRsqrtF: return Rsqrt;
    case Micro::kRoundF: return Round;
    case Micro::kFloorF: return Floor;
    case Micro::kCeilF: return Ceil;
    case Micro::kSignOrNaNF: return SignOrNaN;
    case Micro::kIsNaNF: return IsNaN;
    case Micro::kIsInfF: return IsInf;
    case Micro::kIsPlusInfF: return IsPlusInf;
    case Micro::kIsMinusInfF: return IsMinusInf;
    case Micro::kEqF: return Eq;
    case Micro::kNeF: return Ne;
    case Micro::kLtF: return Lt;
    case Micro::kLeF: return Le;
    case Micro::kGtF: return Gt;
    case Micro::kGeF: return Ge;
    case Micro::kReluBackwardF: return ReluBackward;
    case Micro::kSignF: return Sign;
    case Micro::kRecipF: return Recip;
    case Micro::kSqrtSlopeF: return SqrtSlope;
    case Micro::kRsqrtSlopeF: return RsqrtSlope;
    case Micro::kAtanSlopeF: return AtanSlope;
    case Micro::kToF16: return ToF16;
    case Micro::kToBF16: return ToBF16;
    case Micro::kIsTrueF: return IsTrue;
    case Micro::kFToI: return FToI;
    case Micro::kFToL: return FToL;
    default: return nullptr;
  }
}

// What is so quick that a second pass over its result would show.
StepFn FloatStreamingStep(Micro micro) {
  switch (micro) {
    case Micro::kAddF: return Add<true>;
    case Micro::kSubF: return Sub<true>;
    case Micro::kMulF: return Mul<true>;
    case Micro::kDivF: return Div<true>;
    case Micro::kMaxF: return Max<true>;
    case Micro::kMinF: return Min<true>;
    case Micro::kNegF: return Neg<true>;
    case Micro::kAbsF: return Abs<true>;
    case Micro::kReluF: return Relu<true>;
    default: return nullptr;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(FloatStep);
HWY_EXPORT(FloatStreamingStep);
StepFn float_streaming_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(FloatStreamingStep)(micro); }
StepFn float_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(FloatStep)(micro); }

}  // namespace rlx::cpu
#endif
