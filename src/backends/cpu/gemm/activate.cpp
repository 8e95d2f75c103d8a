#include "backends/cpu/gemm/activate.h"

#include <cmath>

namespace rlx::cpu::gemm {

namespace {
template <class F>
void map(float* x, int64_t n, const F& f) {
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(f(static_cast<double>(x[i])));
}
}  // namespace

void activate(ops::ActivationKind kind, float* x, int64_t n) {
  using K = ops::ActivationKind;
  switch (kind) {
    case K::kNone: return;
    case K::kRelu: return map(x, n, [](double v) { return v < 0 ? 0 : v; });
    case K::kSigmoid: return map(x, n, [](double v) { return 1 / (1 + std::exp(-v)); });
    case K::kTanh: return map(x, n, [](double v) { return std::tanh(v); });
    case K::kExp: return map(x, n, [](double v) { return std::exp(v); });
    case K::kLog: return map(x, n, [](double v) { return std::log(v); });
    case K::kSqrt: return map(x, n, [](double v) { return std::sqrt(v); });
    case K::kRsqrt: return map(x, n, [](double v) { return 1 / std::sqrt(v); });
    case K::kNeg: return map(x, n, [](double v) { return -v; });
    case K::kAbs: return map(x, n, [](double v) { return std::fabs(v); });
    case K::kGelu: return map(x, n, [](double v) { return 0.5 * v * std::erfc(-v * M_SQRT1_2); });
    case K::kSilu: return map(x, n, [](double v) { return v / (1 + std::exp(-v)); });
    case K::kGeluApprox:
      return map(x, n,
                 [](double v) { return v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v))); });
    case K::kRound: return map(x, n, [](double v) { return std::nearbyint(v); });
    case K::kSin: return map(x, n, [](double v) { return std::sin(v); });
    case K::kCos: return map(x, n, [](double v) { return std::cos(v); });
    case K::kTan: return map(x, n, [](double v) { return std::tan(v); });
    case K::kAtan: return map(x, n, [](double v) { return std::atan(v); });
  }
}

}  // namespace rlx::cpu::gemm
