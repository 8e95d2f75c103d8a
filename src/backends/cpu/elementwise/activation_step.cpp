#include "backends/cpu/elementwise/activation_step.h"

namespace rlx::cpu {

StepFn activation_step(ops::ActivationKind kind) {
  using enum ops::ActivationKind;
  switch (kind) {
    case kNone: return nullptr;
    case kRelu: return step_fn(Micro::kReluF);
    case kSigmoid: return step_fn(Micro::kSigmoidF);
    case kTanh: return step_fn(Micro::kTanhF);
    case kExp: return step_fn(Micro::kExpF);
    case kLog: return step_fn(Micro::kLogF);
    case kSqrt: return step_fn(Micro::kSqrtF);
    case kRsqrt: return step_fn(Micro::kRsqrtF);
    case kNeg: return step_fn(Micro::kNegF);
    case kAbs: return step_fn(Micro::kAbsF);
    case kGelu: return step_fn(Micro::kGeluF);
    case kSilu: return step_fn(Micro::kSiluF);
    case kGeluApprox: return step_fn(Micro::kGeluApproxF);
    case kRound: return step_fn(Micro::kRoundF);
    case kSin: return step_fn(Micro::kSinF);
    case kCos: return step_fn(Micro::kCosF);
    case kTan: return step_fn(Micro::kTanF);
    case kAtan: return step_fn(Micro::kAtanF);
  }
  return nullptr;
}

}  // namespace rlx::cpu
