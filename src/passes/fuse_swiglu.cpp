// up * silu(gate) where both are halves of one tensor: one node (spec 20, 1.4.9).
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/fused_swiglu.h"

namespace rlx::passes {

namespace {

// The halves of one tensor, and which of them is the gate; nullopt when they are anything else.
struct Halves {
  ValueId source = 0;
  bool gate_first = false;
};
std::optional<Halves> halves(const Rewriter& rw, const GatedProduct& p) {
  const Node &up = rw.producer(p.up), &gate = rw.producer(p.gate);
  const auto up_slice = as_last_slice(up), gate_slice = as_last_slice(gate);
  if (!up_slice || !gate_slice || up.inputs[0] != gate.inputs[0]) return std::nullopt;
  const int64_t n = up_slice->len;
  if (n == 0 || gate_slice->len != n || !last_dim(rw.graph().type(up.inputs[0])).is(2 * n)) return std::nullopt;
  if (up_slice->start + gate_slice->start != n || (up_slice->start != 0 && gate_slice->start != 0)) return std::nullopt;
  return Halves{up.inputs[0], gate_slice->start == 0};
}

}  // namespace

void fuse_swiglu(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (is_unused(rw, node)) return std::nullopt;
    for (const GatedProduct& p : gated_products(rw, node)) {
      if (p.silu == nullptr) continue;
      const auto found = halves(rw, p);
      if (!found) continue;
      const UseInfo& uses = rw.uses();
      if (!uses.sole_use(p.up, node) || !uses.sole_use(p.gate, *p.silu) ||
          !uses.sole_use(p.silu->results[0].id, node)) {
        rw.miss(node, "MultiConsumer", "A half or its silu is read elsewhere too, or is an output.");
        return std::nullopt;
      }
      const ops::FusedSwigluAttrs attrs{.gate_first = found->gate_first};
      if (!rw.claims(ops::fused_swiglu, attrs, types_of(rw, {&found->source, 1}))) return std::nullopt;
      return Values{ops::fused_swiglu(rw.in(found->source), attrs)};
    }
    return std::nullopt;
  });
}

}  // namespace rlx::passes
