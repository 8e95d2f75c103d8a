// Steps on f32 lanes: transcendental functions and their derivatives.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/math_steps.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/elementwise/map-inl.h"
#include "backends/cpu/elementwise/micro.h"
#include "backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

RLX_STEP1(Sigmoid, float, float, sigmoid(d, x))
RLX_STEP1(Tanh, float, float, tanh(d, x))
RLX_STEP1(Exp, float, float, exp(d, x))
RLX_STEP1(Log, float, float, log(d, x))
RLX_STEP1(Gelu, float, float, gelu(d, x))
RLX_STEP1(Erf, float, float, erf(d, x))
RLX_STEP1(Silu, float, float, silu(d, x))
RLX_STEP1(GeluApprox, float, float, gelu_approx(d, x))
RLX_STEP1(Atan, float, float, atan(d, x))
RLX_STEP1(SigmoidSlope, float, float, sigmoid_slope(d, x))
RLX_STEP1(TanhSlope, float, float, tanh_slope(d, x))
RLX_STEP1(GeluSlope, float, float, gelu_slope(d, x))
RLX_STEP1(SiluSlope, float, float, silu_slope(d, x))
RLX_STEP1(GeluApproxSlope, float, float, gelu_approx_slope(d, x))

// Functions evaluated in f64, half a vector of f32 at a time.
using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;

// f of sine and cosine. Angles too large for the quick reduction, infinities and NaN take the C library's.
template <class F>
HWY_INLINE void map_angle(const void* const* in, void* out, int64_t n, double (*slow)(double), F f) {
  const F64 d;
  const HalfF32 h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = load_n(h, x + i, n - i, 0.0f);
    if (hn::AllTrue(h, hn::Lt(hn::Abs(v), hn::Set(h, kLargestReducedAngle)))) {
      const auto [sin, cos] = sin_cos(d, hn::PromoteTo(d, v));
      store_n(h, to_f32_vector(h, f(sin, cos)), y + i, n - i);
    } else {
      for (int64_t j = i; j < n && j < i + lanes; ++j) y[j] = static_cast<float>(slow(static_cast<double>(x[j])));
    }
  }
}

void Sin(const void* const* in, void* out, int64_t n) {
  map_angle(
      in, out, n, [](double v) { return std::sin(v); }, [](auto sin, auto) HWY_ATTR { return sin; });
}
void Cos(const void* const* in, void* out, int64_t n) {
  map_angle(
      in, out, n, [](double v) { return std::cos(v); }, [](auto, auto cos) HWY_ATTR { return cos; });
}
void Tan(const void* const* in, void* out, int64_t n) {
  map_angle(
      in, out, n, [](double v) { return std::tan(v); }, [](auto sin, auto cos) HWY_ATTR { return hn::Div(sin, cos); });
}
void MinusSin(const void* const* in, void* out, int64_t n) {
  map_angle(
      in, out, n, [](double v) { return -std::sin(v); }, [](auto sin, auto) HWY_ATTR { return hn::Neg(sin); });
}
// 1 + tan^2
void TanSlope(const void* const* in, void* out, int64_t n) {
  map_angle(
      in, out, n, [](double v) { return 1 + std::tan(v) * std::tan(v); },
      [](auto, auto cos) HWY_ATTR { return hn::Div(hn::Set(F64(), 1.0), hn::Mul(cos, cos)); });
}

void Pow(const void* const* in, void* out, int64_t n) {
  const F64 d;
  const HalfF32 h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto base = hn::PromoteTo(d, load_n(h, a + i, n - i, 1.0f));
    const auto exponent = hn::PromoteTo(d, load_n(h, b + i, n - i, 1.0f));
    store_n(h, to_f32_vector(h, pow(d, base, exponent)), y + i, n - i);
  }
}

StepFn MathStep(Micro micro) {
  switch (micro) {
    case Micro::kSigmoidF: return Sigmoid;
    case Micro::kTanhF: return Tanh;
    case Micro::kExpF: return Exp;
    case Micro::kLogF: return Log;
    case Micro::kGeluF: return Gelu;
    case Micro::kSiluF: return Silu;
    case Micro::kGeluApproxF: return GeluApprox;
    case Micro::kSinF: return Sin;
    case Micro::kCosF: return Cos;
    case Micro::kTanF: return Tan;
    case Micro::kAtanF: return Atan;
    case Micro::kPowF: return Pow;
    case Micro::kSigmoidSlopeF: return SigmoidSlope;
    case Micro::kTanhSlopeF: return TanhSlope;
    case Micro::kGeluSlopeF: return GeluSlope;
    case Micro::kSiluSlopeF: return SiluSlope;
    case Micro::kGeluApproxSlopeF: return GeluApproxSlope;
    case Micro::kMinusSinF: return MinusSin;
    case Micro::kTanSlopeF: return TanSlope;
    case Micro::kErfF: return Erf;
    default: return nullptr;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(MathStep);
StepFn math_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(MathStep)(micro); }

}  // namespace rlx::cpu
#endif
