// Steps on i32 and i64 lanes; where, which needs no lane's meaning.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/int_steps.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "backends/cpu/elementwise/map-inl.h"
#include "backends/cpu/elementwise/micro.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

RLX_STEP2(AddI, int32_t, int32_t, hn::Add(a, b))
RLX_STEP2(SubI, int32_t, int32_t, hn::Sub(a, b))
RLX_STEP2(MulI, uint32_t, uint32_t, hn::Mul(a, b))  // unsigned, because overflow wraps
RLX_STEP2(MaxI, int32_t, int32_t, hn::Max(a, b))
RLX_STEP2(MinI, int32_t, int32_t, hn::Min(a, b))
RLX_STEP1(NegI, int32_t, int32_t, hn::Sub(hn::Zero(d), x))
RLX_STEP1(AbsI, int32_t, int32_t, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Zero(d), x), x))
RLX_STEP1(ReluI, int32_t, int32_t, hn::Max(x, hn::Zero(d)))
RLX_STEP1(SignI, int32_t, int32_t, hn::Max(hn::Min(x, hn::Set(d, 1)), hn::Set(d, -1)))
RLX_STEP2(AndI, int32_t, int32_t, hn::And(a, b))
RLX_STEP2(OrI, int32_t, int32_t, hn::Or(a, b))
RLX_STEP2(XorI, int32_t, int32_t, hn::Xor(a, b))
RLX_STEP1(NotI, int32_t, int32_t, hn::Xor(x, hn::Set(d, -1)))
RLX_STEP1(IsFalseI, int32_t, int32_t, as_bool(d, hn::Eq(x, hn::Zero(d))))
RLX_STEP2(EqI, int32_t, int32_t, as_bool(d, hn::Eq(a, b)))
RLX_STEP2(NeI, int32_t, int32_t, as_bool(d, hn::Ne(a, b)))
RLX_STEP2(LtI, int32_t, int32_t, as_bool(d, hn::Lt(a, b)))
RLX_STEP2(LeI, int32_t, int32_t, is_false(d, hn::Gt(a, b)))  // Highway has no Le of integers
RLX_STEP2(GtI, int32_t, int32_t, as_bool(d, hn::Gt(a, b)))
RLX_STEP2(GeI, int32_t, int32_t, is_false(d, hn::Lt(a, b)))
RLX_STEP1(IsTrueI, int32_t, int32_t, as_bool(d, hn::Ne(x, hn::Zero(d))))

RLX_STEP1(WrapI8, int32_t, int32_t, hn::ShiftRight<24>(hn::ShiftLeft<24>(x)))
RLX_STEP1(WrapI16, int32_t, int32_t, hn::ShiftRight<16>(hn::ShiftLeft<16>(x)))
RLX_STEP1(WrapU8, int32_t, int32_t, hn::And(x, hn::Set(d, 255)))
RLX_STEP1(WrapU16, int32_t, int32_t, hn::And(x, hn::Set(d, 65535)))
RLX_STEP1(ClampI8, int32_t, int32_t, hn::Min(hn::Max(x, hn::Set(d, -128)), hn::Set(d, 127)))
RLX_STEP1(ClampI16, int32_t, int32_t, hn::Min(hn::Max(x, hn::Set(d, -32768)), hn::Set(d, 32767)))
RLX_STEP1(ClampU8, int32_t, int32_t, hn::Min(hn::Max(x, hn::Zero(d)), hn::Set(d, 255)))
RLX_STEP1(ClampU16, int32_t, int32_t, hn::Min(hn::Max(x, hn::Zero(d)), hn::Set(d, 65535)))

RLX_STEP1(IToF, int32_t, float, hn::ConvertTo(hn::RebindToFloat<decltype(d)>(), x))

// Beyond 24 bits the lowest 7 become one sticky bit: what is left fits an f32, and rounds to BF16 as the integer does.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToFloat<D>> to_f32_odd(D d, V x) {
  const V low = hn::And(x, hn::Set(d, 127));
  const V sticky = hn::IfThenElseZero(hn::Ne(low, hn::Zero(d)), hn::Set(d, 128));
  const V odd = hn::Or(hn::Sub(x, low), sticky);
  const V limit = hn::Set(d, 1 << 24);
  const auto small = hn::And(hn::Lt(x, limit), hn::Gt(x, hn::Sub(hn::Zero(d), limit)));
  return hn::ConvertTo(hn::RebindToFloat<D>(), hn::IfThenElse(small, x, odd));
}
RLX_STEP1(IToFOdd, int32_t, float, to_f32_odd(d, x))

RLX_STEP2(AddL, int64_t, int64_t, hn::Add(a, b))
RLX_STEP2(SubL, int64_t, int64_t, hn::Sub(a, b))
RLX_STEP2(MaxL, int64_t, int64_t, hn::IfThenElse(hn::Lt(a, b), b, a))
RLX_STEP2(MinL, int64_t, int64_t, hn::IfThenElse(hn::Lt(b, a), b, a))
RLX_STEP1(NegL, int64_t, int64_t, hn::Sub(hn::Zero(d), x))
RLX_STEP1(AbsL, int64_t, int64_t, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Zero(d), x), x))
RLX_STEP1(ReluL, int64_t, int64_t, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x))

RLX_STEP1(SignL, int64_t, int64_t,
          hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1),
                         hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1))))
RLX_STEP2(AndL, int64_t, int64_t, hn::And(a, b))
RLX_STEP2(OrL, int64_t, int64_t, hn::Or(a, b))
RLX_STEP2(XorL, int64_t, int64_t, hn::Xor(a, b))
RLX_STEP1(NotL, int64_t, int64_t, hn::Xor(x, hn::Set(d, -1)))

// Plain loops from here on: the compiler's vectors are as good where lanes change their size, or each is shifted by its
// own count.
template <class T, class F>
HWY_INLINE void zip(const void* const* in, void* out, int64_t n, F f) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

// A negative count is a very large one. Lanes of narrow dtypes carry zeros or the sign above their own bits, so the
// width of the lane decides for them too.
template <class T, class U>
HWY_INLINE void shift_left(const void* const* in, void* out, int64_t n) {
  constexpr U kWidth = 8 * sizeof(T);
  zip<U>(in, out, n, [](U a, U b) HWY_ATTR { return b < kWidth ? a << (b & (kWidth - 1)) : U{0}; });
}
template <class T, class U>
HWY_INLINE void shift_right(const void* const* in, void* out, int64_t n) {
  constexpr U kLast = 8 * sizeof(T) - 1;
  zip<T>(in, out, n, [](T a, T b) HWY_ATTR {
    const U count = static_cast<U>(b) < kLast ? static_cast<U>(b) : kLast;
    return static_cast<T>(a >> count);
  });
}
void ShiftLeftI(const void* const* in, void* out, int64_t n) { shift_left<int32_t, uint32_t>(in, out, n); }
void ShiftLeftL(const void* const* in, void* out, int64_t n) { shift_left<int64_t, uint64_t>(in, out, n); }
void ShiftRightI(const void* const* in, void* out, int64_t n) { shift_right<int32_t, uint32_t>(in, out, n); }
void ShiftRightL(const void* const* in, void* out, int64_t n) { shift_right<int64_t, uint64_t>(in, out, n); }

// By f64, which holds the quotient of any two i32 exactly enough to truncate it; 2^31 = -2^31 / -1 wraps.
HWY_INLINE int32_t quotient(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(b)));
}
HWY_INLINE int32_t remainder(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) -
                              static_cast<uint32_t>(quotient(a, b)) * static_cast<uint32_t>(b));
}
template <class F>
HWY_INLINE void divide(const void* const* in, void* out, int64_t n, F f) {
  check_divisors(static_cast<const int32_t*>(in[1]), n);
  zip<int32_t>(in, out, n, f);
}
void DivI(const void* const* in, void* out, int64_t n) {
  divide(in, out, n, [](int32_t a, int32_t b) HWY_ATTR { return quotient(a, b); });
}
void FmodI(const void* const* in, void* out, int64_t n) {
  divide(in, out, n, [](int32_t a, int32_t b) HWY_ATTR { return remainder(a, b); });
}
void ModI(const void* const* in, void* out, int64_t n) {
  divide(in, out, n, [](int32_t a, int32_t b) HWY_ATTR {
    const int32_t r = remainder(a, b);
    return r != 0 && (r ^ b) < 0 ? r + b : r;
  });
}

void MulL(const void* const* in, void* out, int64_t n) {
  const uint64_t *a = static_cast<const uint64_t*>(in[0]), *b = static_cast<const uint64_t*>(in[1]);
  uint64_t* y = static_cast<uint64_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

// The lanes differ in size, so operand and result never are the same bytes.
template <class F>
HWY_INLINE void compare_l(const void* const* in, void* out, int64_t n, F f) {
  const int64_t *HWY_RESTRICT a = static_cast<const int64_t*>(in[0]),
                              *HWY_RESTRICT b = static_cast<const int64_t*>(in[1]);
  int32_t* HWY_RESTRICT y = static_cast<int32_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
template <class A, class R, class F>
HWY_INLINE void convert(const void* const* in, void* out, int64_t n, F f) {
  const A* HWY_RESTRICT x = static_cast<const A*>(in[0]);
  R* HWY_RESTRICT y = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
#define RLX_COMPARE_L(name, op)                                                          \
  void name(const void* const* in, void* out, int64_t n) {                               \
    compare_l(in, out, n, [](int64_t a, int64_t b) HWY_ATTR { return a op b ? 1 : 0; }); \
  }
RLX_COMPARE_L(EqL, ==)
RLX_COMPARE_L(NeL, !=)
RLX_COMPARE_L(LtL, <)
RLX_COMPARE_L(LeL, <=)
RLX_COMPARE_L(GtL, >)
RLX_COMPARE_L(GeL, >=)
#undef RLX_COMPARE_L

void IsTrueL(const void* const* in, void* out, int64_t n) {
  convert<int64_t, int32_t>(in, out, n, [](int64_t v) HWY_ATTR { return v != 0 ? 1 : 0; });
}
void IToL(const void* const* in, void* out, int64_t n) {
  convert<int32_t, int64_t>(in, out, n, [](int32_t v) HWY_ATTR { return int64_t{v}; });
}
void LToI(const void* const* in, void* out, int64_t n) {
  convert<int64_t, int32_t>(in, out, n, [](int64_t v) HWY_ATTR { return static_cast<int32_t>(v); });
}
void LToF(const void* const* in, void* out, int64_t n) {
  convert<int64_t, float>(in, out, n, [](int64_t v) HWY_ATTR { return static_cast<float>(v); });
}

// The condition has 32 bit lanes too; result and sides may be the same bytes.
void Where(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t *c = static_cast<const int32_t*>(in[0]), *a = static_cast<const int32_t*>(in[1]),
                *b = static_cast<const int32_t*>(in[2]);
  int32_t* y = static_cast<int32_t*>(out);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto chosen = hn::Ne(load_n(d, c + i, n - i, 0), hn::Zero(d));
    store_n(d, hn::IfThenElse(chosen, load_n(d, a + i, n - i, 0), load_n(d, b + i, n - i, 0)), y + i, n - i);
  }
}
void WhereL(const void* const* in, void* out, int64_t n) {
  const int32_t* c = static_cast<const int32_t*>(in[0]);
  const int64_t *a = static_cast<const int64_t*>(in[1]), *b = static_cast<const int64_t*>(in[2]);
  int64_t* y = static_cast<int64_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? a[i] : b[i];
}

StepFn IntStep(Micro micro) {
  switch (micro) {
    case Micro::kAddI: return AddI;
    case Micro::kSubI: return SubI;
    case Micro::kMulI: return MulI;
    case Micro::kMaxI: return MaxI;
    case Micro::kMinI: return MinI;
    case Micro::kNegI: return NegI;
    case Micro::kAbsI: return AbsI;
    case Micro::kReluI: return ReluI;
    case Micro::kDivI: return DivI;
    case Micro::kModI: return ModI;
    case Micro::kFmodI: return FmodI;
    case Micro::kSignI: return SignI;
    case Micro::kAndI: return AndI;
    case Micro::kOrI: return OrI;
    case Micro::kXorI: return XorI;
    case Micro::kNotI: return NotI;
    case Micro::kIsFalseI: return IsFalseI;
    case Micro::kShiftLeftI: return ShiftLeftI;
    case Micro::kShiftRightI: return ShiftRightI;
    case Micro::kEqI: return EqI;
    case Micro::kNeI: return NeI;
    case Micro::kLtI: return LtI;
    case Micro::kLeI: return LeI;
    case Micro::kGtI: return GtI;
    case Micro::kGeI: return GeI;
    case Micro::kIsTrueI: return IsTrueI;
    case Micro::kWrapI8: return WrapI8;
    case Micro::kWrapI16: return WrapI16;
    case Micro::kWrapU8: return WrapU8;
    case Micro::kWrapU16: return WrapU16;
    case Micro::kClampI8: return ClampI8;
    case Micro::kClampI16: return ClampI16;
    case Micro::kClampU8: return ClampU8;
    case Micro::kClampU16: return ClampU16;
    case Micro::kIToF: return IToF;
    case Micro::kIToFOdd: return IToFOdd;
    case Micro::kIToL: return IToL;
    case Micro::kAddL: return AddL;
    case Micro::kSubL: return SubL;
    case Micro::kMulL: return MulL;
    case Micro::kMaxL: return MaxL;
    case Micro::kMinL: return MinL;
    case Micro::kNegL: return NegL;
    case Micro::kAbsL: return AbsL;
    case Micro::kReluL: return ReluL;
    case Micro::kSignL: return SignL;
    case Micro::kAndL: return AndL;
    case Micro::kOrL: return OrL;
    case Micro::kXorL: return XorL;
    case Micro::kNotL: return NotL;
    case Micro::kShiftLeftL: return ShiftLeftL;
    case Micro::kShiftRightL: return ShiftRightL;
    case Micro::kEqL: return EqL;
    case Micro::kNeL: return NeL;
    case Micro::kLtL: return LtL;
    case Micro::kLeL: return LeL;
    case Micro::kGtL: return GtL;
    case Micro::kGeL: return GeL;
    case Micro::kIsTrueL: return IsTrueL;
    case Micro::kLToF: return LToF;
    case Micro::kLToI: return LToI;
    case Micro::kWhere: return Where;
    case Micro::kWhereL: return WhereL;
    default: return nullptr;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(IntStep);
StepFn int_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(IntStep)(micro); }

StepFn step_fn(Micro micro) {
  if (micro < Micro::kSigmoidF) return float_step(micro);
  if (micro < Micro::kAsinF) return math_step(micro);
  if (micro < Micro::kAddI) return library_step(micro);
  return micro < Micro::kPairF ? int_step(micro) : pair_step(micro);
}
StepFn streaming_step_fn(Micro micro) {
  return micro < Micro::kPairF ? float_streaming_step(micro) : pair_streaming_step(micro);
}

}  // namespace rlx::cpu
#endif
