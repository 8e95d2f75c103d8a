// (x·up) * silu(x·gate): one matmul with the weights side by side, then fused_swiglu (spec 20, 1.4.9). With biases,
// which fuse_matmul_bias_act has put into the products before, likewise.
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/fused_matmul.h"
#include "rlx/ops/fused_swiglu.h"
#include "rlx/ops/matmul.h"

namespace rlx::passes {

namespace {

using ops::ActivationKind;

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    for (const GatedProduct& p : gated_products(rw_, node)) {
      const auto up = as_linear(rw_, rw_.producer(p.up)), gate = as_linear(rw_, rw_.producer(p.gate));
      if (!up || !gate || p.up == p.gate || up->activation != ActivationKind::kNone) continue;
      // A silu that is a node of its own stands behind a product without an activation.
      if (p.silu != nullptr && gate->activation != ActivationKind::kNone) continue;
      if (up->bias.has_value() != gate->bias.has_value() || type(up->w) != type(gate->w)) continue;
      if (up->x != gate->x) {
        rw_.miss(node, "SwigluNotSharedInput", "Up and gate are products of different values.");
        return std::nullopt;
      }
      if (!sole_uses(p, node)) {
        rw_.miss(node, "MultiConsumer", "A product or its silu is read elsewhere too, or is an output.");
        return std::nullopt;
      }
      // Else the weights would be put together again in every run.
      if (!all_static(*up) || !all_static(*gate)) {
        rw_.miss(node, "NotFused", "A weight or bias of up or gate is computed in every run.");
        return std::nullopt;
      }
      if (!claimed(*up)) return std::nullopt;
      return build(*up, *gate);
    }
    return std::nullopt;
  }

 private:
  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  bool sole_uses(const GatedProduct& p, const Node& node) {
    const UseInfo& uses = rw_.uses();
    if (!uses.sole_use(p.up, node)) return false;
    if (p.silu == nullptr) return uses.sole_use(p.gate, node);
    return uses.sole_use(p.gate, *p.silu) && uses.sole_use(p.silu->results[0].id, node);
  }

  bool all_static(const Linear& l) { return rw_.is_static(l.w) && (!l.bias || rw_.is_static(*l.bias)); }

  bool claimed(const Linear& up) {
    const TensorType &x = type(up.x), &w = type(up.w);
    if (!w.dim(1).is_static()) return false;
    const Dim both = checked_mul(2, w.dim(1).value());
    TensorType wide = x;
    wide.shape[x.rank() - 1] = both;
    std::vector<TensorType> operands = {x, {{w.dim(0), both}, w.dtype}};
    if (up.bias) operands.push_back({{both}, w.dtype});
    if (!is_float(x.dtype) || !rw_.claims(ops::fused_swiglu, ops::FusedSwigluAttrs{}, {&wide, 1})) return false;
    return up.bias ? rw_.claims(ops::fused_matmul_bias_act, ops::FusedMatmulBiasActAttrs{}, operands)
                   : rw_.claims(ops::matmul, Attrs(), operands);
  }

  std::optional<Values> build(const Linear& up, const Linear& gate) {
    const Value x = rw_.in(up.x), w = ops::concat(rw_.in(up.w), rw_.in(gate.w), {.axis = 1});
    const Value both =
        up.bias ? ops::fused_matmul_bias_act(x, w, ops::concat(rw_.in(*up.bias), rw_.in(*gate.bias), {.axis = 0}))
                : ops::matmul(x, w);
    return Values{ops::fused_swiglu(both)};
  }

  Rewriter& rw_;
};

}  // namespace

void fuse_swiglu_dual_matmul(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
