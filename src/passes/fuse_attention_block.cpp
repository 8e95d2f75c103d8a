// Projections and attention of a small input as one node (spec 20, 1.4.10): with few rows a block is bound by the cost
// of its steps, not by arithmetic. Sites with more rows keep their parts.
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/attention.h"
#include "rlx/ops/fused_attention.h"
#include "rlx/ops/rope.h"

namespace rlx::passes {

namespace {

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& out) {
    const auto output = as_linear(rw_, out);
    if (!output || is_unused(rw_, out) || output->activation != ops::ActivationKind::kNone) return std::nullopt;
    const Node& attention = rw_.producer(output->x);
    if (attention.op != &ops::attention || attention.results[0].id != output->x) return std::nullopt;
    if (!is_plain(attention)) return std::nullopt;
    const auto sources = find_sources(attention);
    if (!sources) return std::nullopt;
    const Node& qkv = rw_.producer(sources->packed);
    const auto input = as_linear(rw_, qkv);
    if (!input || input->activation != ops::ActivationKind::kNone) return std::nullopt;
    if (!is_small(type(input->x)) || type(input->x) != out.results[0].type) return std::nullopt;
    if (input->bias.has_value() != output->bias.has_value()) return std::nullopt;

    const auto& a = attention.attrs.as<ops::AttentionAttrs>();
    const ops::FusedAttentionBlockAttrs attrs{.num_heads = a.num_heads,
                                              .head_dim = a.head_dim,
                                              .has_bias = input->bias.has_value(),
                                              .has_rope = sources->cos != 0};
    std::vector<ValueId> operands = {input->x, input->w, output->w, attention.inputs[3]};
    if (attrs.has_bias) operands.insert(operands.end(), {*input->bias, *output->bias});
    if (attrs.has_rope) operands.insert(operands.end(), {sources->cos, sources->sin});
    if (!rw_.claims(ops::fused_attention_block, attrs, types_of(rw_, operands))) return std::nullopt;
    if (!is_private(*sources, attention, out)) {
      rw_.miss(attention, "MultiConsumer", "A value between the projections is read elsewhere too, or is an output.");
      return std::nullopt;
    }
    Values values;
    for (const ValueId id : operands) values.push_back(rw_.in(id));
    return Values{ops::fused_attention_block(values, attrs)};
  }

 private:
  // Where q, k and v come from: the packed projection, and the tables of q's and k's rotation (0: none).
  struct Sources {
    ValueId packed = 0, cos = 0, sin = 0;
    std::vector<const Node*> between;  // ropes and narrows
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  bool is_small(const TensorType& hidden) const {
    if (hidden.rank() != 3 || !hidden.dim(0).is_static() || !hidden.dim(1).is_static()) return false;
    return checked_mul(hidden.dim(0).value(), hidden.dim(1).value()) <= rw_.context().limits.block_rows;
  }

  // What the block means by attention: one mask row per sequence, and no attribute that it has no place for.
  bool is_plain(const Node& node) const {
    const auto& a = node.attrs.as<ops::AttentionAttrs>();
    if (node.inputs.size() != 4 || a.layout != ops::AttentionLayout::kBsf || a.mask_kind != ops::MaskKind::kCustom)
      return false;
    if (a.score_scale || a.attn_logit_softcap) return false;
    const TensorType &q = type(node.inputs[0]), &mask = type(node.inputs[3]);
    return mask.shape == Shape{q.dim(0), q.dim(1)};
  }

  std::optional<Sources> find_sources(const Node& attention) const {
    const auto& a = attention.attrs.as<ops::AttentionAttrs>();
    const int64_t width = checked_mul(a.num_heads, a.head_dim);
    Sources out;
    for (size_t i = 0; i < 3; ++i) {
      const Node* node = &rw_.producer(attention.inputs[i]);
      const bool turned = node->op == &ops::rope;
      if (i == 0 && turned) {
        if (node->inputs.size() != 3) return std::nullopt;  // chosen positions are not the block's
        out.cos = node->inputs[1];
        out.sin = node->inputs[2];
      }
      if (turned != (i < 2 && out.cos != 0)) return std::nullopt;
      if (turned) {
        const ops::RopeAttrs meant{.head_dim = a.head_dim, .layout = ops::AttentionLayout::kBsf};
        const std::vector<ValueId> operands = {node->inputs[0], out.cos, out.sin};
        if (node->attrs != Attrs(meant) || node->inputs != operands) return std::nullopt;
        out.between.push_back(node);
        node = &rw_.producer(node->inputs[0]);
      }
      const auto slice = as_last_slice(*node);
      if (!slice || slice->len != width || slice->start != static_cast<int64_t>(i) * width) return std::nullopt;
      if (i == 0) out.packed = node->inputs[0];
      if (node->inputs[0] != out.packed) return std::nullopt;
      out.between.push_back(node);
    }
    if (!last_dim(type(out.packed)).is(3 * width)) return std::nullopt;
    return out;
  }

  // Everything inside has its one reader; the packed projection has its three slices.
  bool is_private(const Sources& s, const Node& attention, const Node& out) {
    const UseInfo& uses = rw_.uses();
    if (!uses.sole_use(attention.results[0].id, out) || uses.edges(attention.results[1].id) != 0) return false;
    for (const Node* node : s.between)
      if (uses.edges(node->results[0].id) != 1 || uses.is_output(node->results[0].id)) return false;
    return uses.edges(s.packed) == 3 && !uses.is_output(s.packed);
  }

  Rewriter& rw_;
};

}  // namespace

void fuse_attention_block(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
