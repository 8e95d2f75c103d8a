// softmax(q k^T * scale + mask) v where a model spells it with products: one attention node, without the matrix of
// scores. Heads are axis 1 of [B, H, S, D].
#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/attention.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/softmax.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

// The transpose that, with its last two axes swapped, gives k; nullopt when it is none of a rank-4 tensor.
std::optional<std::vector<int64_t>> key_perm(const Node& node) {
  if (node.op != &ops::transpose) return std::nullopt;
  std::vector<int64_t> perm = node.attrs.as<ops::TransposeAttrs>().perm;
  if (perm.size() != 4) return std::nullopt;
  for (int64_t& p : perm) p = normalize_axis(p, 4);
  std::swap(perm[2], perm[3]);
  return perm;
}

struct Scores {
  ValueId product = 0;  // q k^T
  double scale = 1;
  std::optional<ValueId> mask;
};

std::optional<Scores> scores_of(Rewriter& rw, ValueId id) {
  const auto plain = [&](ValueId from, std::optional<ValueId> mask) -> std::optional<Scores> {
    const Scaled s = as_scaled(rw, from);
    if (rw.producer(s.x).op != &ops::matmul) return std::nullopt;
    return Scores{s.x, s.factor, mask};
  };
  const Node& node = rw.producer(id);
  if (node.op == &ops::add) {
    for (size_t i = 0; i < 2; ++i)
      if (rw.graph().type(node.inputs[i]) == node.results[0].type)
        if (auto found = plain(node.inputs[i], node.inputs[1 - i])) return found;
    return std::nullopt;
  }
  return plain(id, std::nullopt);
}

// The mask adds to scores [B, H, Sq, Sk]: of rank 4, its axes 1 or equal.
bool is_mask(const TensorType& mask, const TensorType& scores) {
  if (mask.rank() != 4 || mask.dtype != scores.dtype) return false;
  for (int64_t i = 0; i < 4; ++i)
    if (!mask.dim(i).is(1) && mask.dim(i) != scores.dim(i)) return false;
  return true;
}

}  // namespace

void recognize_attention(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op != &ops::matmul || is_unused(rw, node)) return std::nullopt;
    const Node& softmax = rw.producer(node.inputs[0]);
    if (softmax.op != &ops::softmax) return std::nullopt;
    const TensorType& probabilities = softmax.results[0].type;
    if (probabilities.rank() != 4 || normalize_axis(softmax.attrs.as<ops::SoftmaxAttrs>().axis, 4) != 3)
      return std::nullopt;
    if (!rw.uses().sole_use(node.inputs[0], node)) {
      rw.miss(node, "MultiConsumer", "The probabilities are read elsewhere too, or are an output.");
      return std::nullopt;
    }
    const std::optional<Scores> scores = scores_of(rw, softmax.inputs[0]);
    if (!scores) {
      rw.miss(node, "Scores", "The scores are no product q k^T, scaled, plus a mask.");
      return std::nullopt;
    }
    const Node& product = rw.producer(scores->product);
    if (product.results[0].type != probabilities) return std::nullopt;
    if (scores->mask && !is_mask(rw.graph().type(*scores->mask), probabilities)) {
      rw.miss(node, "Mask", "The mask is not of rank 4 with axes of 1 or of the scores' sizes.");
      return std::nullopt;
    }
    const Scaled q = as_scaled(rw, product.inputs[0]), kt = as_scaled(rw, product.inputs[1]);
    const auto perm = key_perm(rw.producer(kt.x));
    const TensorType &q_type = rw.graph().type(q.x), &v_type = rw.graph().type(node.inputs[1]);
    if (!perm || q_type.rank() != 4 || v_type.rank() != 4) {
      rw.miss(node, "Keys", "The keys are not transposed, or the operands are not of rank 4.");
      return std::nullopt;
    }
    if (!q_type.dim(1).is_static() || !q_type.dim(3).is_static() || v_type.dim(3) != q_type.dim(3)) {
      rw.miss(node, "HeadSize", "The number of heads or their size is not known, or differs between keys and values.");
      return std::nullopt;
    }
    ops::AttentionAttrs attrs{.num_heads = q_type.dim(1).value(), .head_dim = q_type.dim(3).value()};
    const double scale = scores->scale * q.factor * kt.factor;
    attrs.score_scale = static_cast<float>(scale);
    if (scores->mask) attrs.mask_kind = ops::MaskKind::kBias;
    const ValueId source = rw.producer(kt.x).inputs[0];
    TensorType k_type = rw.graph().type(source);
    for (int64_t i = 0; i < 4; ++i) k_type.shape[i] = rw.graph().type(source).dim((*perm)[static_cast<size_t>(i)]);
    if (k_type.dim(0) != q_type.dim(0) || v_type.dim(0) != q_type.dim(0)) return std::nullopt;
    std::vector<TensorType> types{q_type, k_type, v_type};
    if (scores->mask) types.push_back(rw.graph().type(*scores->mask));
    if (!rw.claims(ops::attention, attrs, types)) {
      rw.miss(node, "Unclaimed", "The target has no attention for these operands.");
      return std::nullopt;
    }
    const Value query = rw.in(q.x);
    const bool plain = *perm == std::vector<int64_t>{0, 1, 2, 3};
    const Value from = rw.in(source);
    const Value key = plain ? from : ops::transpose(from, {.perm = *perm});
    const Value value = rw.in(node.inputs[1]);
    if (!scores->mask) return Values{ops::attention(query, key, value, attrs)};
    const Value mask = rw.in(*scores->mask);
    return Values{ops::attention(query, key, value, mask, attrs)};
  });
}

}  // namespace rlx::passes
