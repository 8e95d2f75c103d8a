// A post-norm encoder layer as one node (spec 20, 1.4.10): h = LN(block(x) + x), y = LN(fc2(act(fc1(h))) + h). Its
// attention is a fused_attention_block already, which bounds the rows.
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/fused_attention.h"
#include "rlx/ops/fused_residual_norm.h"

namespace rlx::passes {

namespace {

// A fused_residual_ln without bias whose sum nobody else reads: LN(a + b), in either order.
struct SumNorm {
  ValueId a = 0, b = 0, gamma = 0, beta = 0;
  float eps = 0;
};
std::optional<SumNorm> as_sum_norm(Rewriter& rw, const Node& node) {
  if (node.op != &ops::fused_residual_ln) return std::nullopt;
  const auto& attrs = node.attrs.as<ops::FusedResidualLnAttrs>();
  if (attrs.has_bias || rw.uses().edges(node.results[1].id) != 0) return std::nullopt;
  return SumNorm{node.inputs[0], node.inputs[1], node.inputs[2], node.inputs[3], attrs.eps};
}

struct Layer {
  SumNorm first, second;
  const Node* block = nullptr;
  Linear fc1, fc2;
};

// With `h` and the second projection as the sides of the last sum.
std::optional<Layer> match(Rewriter& rw, const Node& node, const SumNorm& second, ValueId outer, ValueId h) {
  const UseInfo& uses = rw.uses();
  Layer layer{.second = second};
  const Node& fc2_node = rw.producer(outer);
  const auto fc2 = as_linear(rw, fc2_node);
  if (!fc2 || !fc2->bias || fc2->activation != ops::ActivationKind::kNone || !uses.sole_use(outer, node))
    return std::nullopt;
  const Node& fc1_node = rw.producer(fc2->x);
  const auto fc1 = as_linear(rw, fc1_node);
  if (!fc1 || !fc1->bias || fc1->x != h || !uses.sole_use(fc2->x, fc2_node)) return std::nullopt;
  const Node& first_node = rw.producer(h);
  const auto first = as_sum_norm(rw, first_node);
  if (!first || first_node.results[0].id != h || uses.edges(h) != 2 || uses.is_output(h)) return std::nullopt;
  for (const bool swapped : {false, true}) {
    const ValueId attended = swapped ? first->b : first->a, hidden = swapped ? first->a : first->b;
    const Node& block = rw.producer(attended);
    if (block.op != &ops::fused_attention_block || block.inputs[0] != hidden) continue;
    const auto& attrs = block.attrs.as<ops::FusedAttentionBlockAttrs>();
    if (!attrs.has_bias || attrs.has_rope || !uses.sole_use(attended, first_node)) continue;
    layer.first = *first;
    layer.block = &block;
    layer.fc1 = *fc1;
    layer.fc2 = *fc2;
    return layer;
  }
  return std::nullopt;
}

}  // namespace

void fuse_transformer_layer(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    const auto second = as_sum_norm(rw, node);
    if (!second || is_unused(rw, node)) return std::nullopt;
    auto layer = match(rw, node, *second, second->a, second->b);
    if (!layer) layer = match(rw, node, *second, second->b, second->a);
    if (!layer) return std::nullopt;
    const Dim inner = rw.graph().type(layer->fc1.w).dim(1);
    if (!inner.is_static()) return std::nullopt;
    const auto& block = layer->block->attrs.as<ops::FusedAttentionBlockAttrs>();
    const ops::FusedTransformerLayerAttrs attrs{.num_heads = block.num_heads,
                                                .head_dim = block.head_dim,
                                                .intermediate_size = inner.value(),
                                                .eps1 = layer->first.eps,
                                                .eps2 = layer->second.eps,
                                                .activation = layer->fc1.activation,
                                                .has_bias = true};
    const std::vector<ValueId>& in = layer->block->inputs;  // hidden, qkv_w, out_w, mask, qkv_b, out_b
    const std::vector<ValueId> operands = {in[0],
                                           in[1],
                                           in[4],
                                           in[2],
                                           in[5],
                                           layer->first.gamma,
                                           layer->first.beta,
                                           layer->fc1.w,
                                           *layer->fc1.bias,
                                           layer->fc2.w,
                                           *layer->fc2.bias,
                                           layer->second.gamma,
                                           layer->second.beta,
                                           in[3]};
    if (!rw.claims(ops::fused_transformer_layer, attrs, types_of(rw, operands))) return std::nullopt;
    Values values;
    for (const ValueId id : operands) values.push_back(rw.in(id));
    const Value fused = ops::fused_transformer_layer(values, attrs);
    // The node has a second result, the sum, which nobody reads: anything of its type stands for it.
    return Values{fused, fused};
  });
}

}  // namespace rlx::passes
