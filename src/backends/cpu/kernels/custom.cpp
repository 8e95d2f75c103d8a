#include "rlx/ops/custom.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/kernels/kernels.h"
#include "rlx/custom_op.h"

namespace rlx::cpu {

bool custom_supports(const Signature& s) {
  return find_custom_kernel(s.attrs.as<ops::CustomAttrs>().name, "cpu") != nullptr;
}

void custom(const Call& call) { reference::custom_by(call, "cpu"); }

}  // namespace rlx::cpu
