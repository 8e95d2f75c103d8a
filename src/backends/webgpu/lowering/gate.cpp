// The custom op llada2.group_limited_gate (spec 10, 4.20).
#include "backends/webgpu/lowering/lowerings.h"
#include "ops/custom_attrs.h"
#include "rlx/custom_op.h"
#include "rlx/ops/custom.h"
#include "wgsl/group_limited_gate.h"

namespace rlx::webgpu {

constexpr std::string_view kGate = "llada2.group_limited_gate";

bool gate_supports(const LowerSignature& s, const Device&) {
  const auto& attrs = s.attrs.as<ops::CustomAttrs>();
  // A kernel that somebody has registered replaces the built-in one on every backend.
  if (attrs.name != kGate || find_custom_kernel(kGate, "cpu") || find_custom_kernel(kGate, "reference")) return false;
  const GateAttrs gate(attrs.attrs.data);
  constexpr int64_t kCells = 1024;  // of the kernel's tables
  return gate.n_group <= kCells && gate.top_k <= kCells;
}

void lower_gate(LowerCall& call) {
  namespace k = wgsl::group_limited_gate;
  const GateAttrs gate(call.attrs<ops::CustomAttrs>().attrs.data);
  const int64_t tokens = call.input_type(0).dim(0).value(), experts = call.input_type(0).dim(1).value();
  const Operand sig = call.read(0), route = call.read(1), y = call.write(0);
  call.emit({.kernel = {"group_limited_gate"},
             .operands = {sig, route, y},
             .params = {k::Params{.tokens = to_u32(tokens),
                                  .experts = to_u32(experts),
                                  .n_group = to_u32(gate.n_group),
                                  .topk_group = to_u32(gate.topk_group),
                                  .top_k = to_u32(gate.top_k),
                                  .scaling = gate.routed_scaling},
                        {&k::Params::tokens}},
             .grid = {.x = {.items = tokens, .active = true}},
             .extent_safe = true},
            "llada2_group_limited_gate");
}

}  // namespace rlx::webgpu
