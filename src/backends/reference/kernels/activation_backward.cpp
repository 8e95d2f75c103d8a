#include "rlx/ops/activation_backward.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// f'(x): the table of spec 10, 4.2.
double derivative(ops::ActivationKind kind, double x) {
  using enum ops::ActivationKind;
  const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (kind) {
    case kNone: return 1;
    case kRelu: return x > 0 ? 1 : 0;
    case kSigmoid: return sigma(x) * sigma(-x);  // 1 - sigma(x) = sigma(-x), without cancellation
    case kTanh: return 1 - std::tanh(x) * std::tanh(x);
    case kExp: return std::exp(x);
    case kLog: return 1 / x;
    case kSqrt: return std::sqrt(x) > 0 ? 0.5 / std::sqrt(x) : 0;
    case kRsqrt: return std::sqrt(x) > 0 ? -0.5 / (x * std::sqrt(x)) : 0;
    case kNeg: return -1;
    case kAbs: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case kGelu: return 0.5 * std::erfc(-x * M_SQRT1_2) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    case kSilu: return sigma(x) * (1 + x * sigma(-x));
    case kGeluApprox: {  // s(2u) + x s(2u) s(-2u) (2u)', as silu's: 1 + tanh would cancel for negative x
      const double c = 2 * 0.7978845608028654, u2 = c * (x + 0.044715 * x * x * x);
      return sigma(u2) * (1 + x * sigma(-u2) * c * (1 + 3 * 0.044715 * x * x));
    }
    case kRound: return 1;  // straight through
    case kSin: return std::cos(x);
    case kCos: return -std::sin(x);
    case kTan: return 1 + std::tan(x) * std::tan(x);
    case kAtan: return 1 / (1 + x * x);
  }
  return 0;
}

}  // namespace

void relu_backward(const Call& call) {
  const Reader x = call.reader(0), dy = call.reader(1);
  const Writer dx = call.writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) dx.set(i, x[i] > 0 ? dy[i] : 0);
}

void activation_backward(const Call& call) {
  const ops::ActivationKind kind = call.attrs<ops::ActivationBackwardAttrs>().kind;
  if (kind == ops::ActivationKind::kRelu) return relu_backward(call);  // 0 where x <= 0, whatever dy is
  const Reader x = call.reader(0), dy = call.reader(1);
  const Writer dx = call.writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) dx.set(i, derivative(kind, x[i]) * dy[i]);
}

}  // namespace rlx::reference
