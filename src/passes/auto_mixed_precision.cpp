// Stores and computes what was declared f32 in half precision, where the policy and the roles of the operands allow it
// (spec 20, 1.4.12).
//
// Every value keeps its declared type towards the rest of the graph: a node in half precision is followed by a cast
// back. Readers in half precision take the value before that cast, and a cast that nobody reads vanishes, so nothing is
// converted to and fro.
#include <cmath>
#include <map>
#include <unordered_map>

#include "core/aligned.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/regions.h"
#include "passes/rewriter.h"
#include "rlx/ops.h"

namespace rlx::passes {

namespace {

enum class Category { kNone, kCompute, kReduction, kElementwise, kDataMovement };

struct Role {
  Category category = Category::kNone;
  uint32_t low = 0;  // operands that may be in half precision: bit i is operand i
};

constexpr uint32_t kAll = ~uint32_t{0};

struct Row {
  const OpDef* op;
  Role role;
};

// Ops that are not here keep their types: indices and masks have no half precision, and the catalogue ties the gamma
// and beta of a norm, which have to stay f32, to the type of its operand, so norms stay f32 altogether; so do cumsum,
// sample and losses, whose errors add up.
const Row kRows[] = {
    {&ops::matmul, {Category::kCompute, 0b11}},
    {&ops::dot_general, {Category::kCompute, 0b11}},
    {&ops::grouped_matmul, {Category::kCompute, 0b11}},
    {&ops::lora_matmul, {Category::kCompute, 0b1111}},
    {&ops::fused_matmul_bias_act, {Category::kCompute, 0b111}},
    {&ops::fused_matmul_split, {Category::kCompute, 0b111}},
    {&ops::conv, {Category::kCompute, 0b111}},
    {&ops::conv_transpose, {Category::kCompute, 0b111}},
    {&ops::fused_conv_bias_act, {Category::kCompute, 0b1111}},
    {&ops::attention, {Category::kCompute, 0b111}},
    {&ops::softmax, {Category::kReduction, 0b1}},
    {&ops::reduce_sum, {Category::kReduction, 0b1}},
    {&ops::reduce_mean, {Category::kReduction, 0b1}},
    {&ops::reduce_max, {Category::kReduction, 0b1}},
    {&ops::reduce_min, {Category::kReduction, 0b1}},
    {&ops::fused_swiglu, {Category::kElementwise, 0b1}},
    {&ops::where, {Category::kElementwise, 0b110}},
    {&ops::narrow, {Category::kDataMovement, 0b1}},
    {&ops::reshape, {Category::kDataMovement, 0b1}},
    {&ops::transpose, {Category::kDataMovement, 0b1}},
    {&ops::expand, {Category::kDataMovement, 0b1}},
    {&ops::concat, {Category::kDataMovement, kAll}},
    {&ops::gather, {Category::kDataMovement, 0b1}},
    {&ops::rope, {Category::kDataMovement, 0b1}},
    {&ops::resize_nearest_2x, {Category::kDataMovement, 0b1}},
    {&ops::pool_max, {Category::kDataMovement, 0b1}},
    {&ops::pool_mean, {Category::kDataMovement, 0b1}},
    {&ops::topk, {Category::kDataMovement, 0b1}},
};

// Hidden, weights and biases, not the mask and the tables.
Role attention_block_role(const Node& node) {
  return {Category::kCompute, node.attrs.as<ops::FusedAttentionBlockAttrs>().has_bias ? 0b110111u : 0b111u};
}

Role role_of(const Node& node) {
  if (node.op == &ops::fused_attention_block) return attention_block_role(node);
  for (const Row& row : kRows)
    if (row.op == node.op) return row.role;
  // Comparisons and steps stay exact: a rounded operand may change the answer altogether.
  static const OpDef* const kSteps[] = {&ops::cast, &ops::floor, &ops::ceil, &ops::sign, &ops::mod, &ops::fmod};
  if (is_region_step(node) && std::find(std::begin(kSteps), std::end(kSteps), node.op) == std::end(kSteps) &&
      node.results[0].type.dtype != DType::Bool)
    return {Category::kElementwise, kAll};
  return {};
}

// Operands that must not have been rounded: masks, tables, scales and shifts of norms, probabilities, sums, losses.
bool must_be_f32(const Node& node, size_t operand) {
  if (node.op == &ops::attention) return operand >= 3;
  if (node.op == &ops::fused_attention_block) return ((attention_block_role(node).low >> operand) & 1) == 0;
  if (node.op == &ops::rope || node.op == &ops::layer_norm || node.op == &ops::rms_norm ||
      node.op == &ops::layer_norm2d || node.op == &ops::group_norm)
    return operand >= 1;
  if (node.op == &ops::fused_residual_ln || node.op == &ops::fused_residual_rms_norm) return operand >= 2;
  return node.op == &ops::softmax_cross_entropy_with_logits || node.op == &ops::sample || node.op == &ops::cumsum;
}

class Lowerer {
 public:
  Lowerer(Rewriter& rw, const PrecisionMap& map) : rw_(rw), map_(map) { protect(); }

  std::optional<Values> visit(const Node& node) {
    const Role role = role_of(node);
    if (role.category == Category::kNone || node.results[0].type.dtype != DType::F32 ||
        protected_.contains(node.results[0].id))
      return std::nullopt;
    if (is_unused(rw_, node) || node.inputs.empty() || rw_.is_static(node.results[0].id))
      return std::nullopt;  // computed once, and exactly
    if (node.op == &ops::fused_swiglu && node.attrs.as<ops::FusedSwigluAttrs>().cast_to) return std::nullopt;
    const DType low = dtype_for(node, role);
    if (low == DType::F32 || !fits(node, role, low)) return std::nullopt;
    std::vector<TensorType> types;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      types.push_back(type(node.inputs[i]));
      if (is_low(node, role, i)) types.back().dtype = low;
    }
    if (!rw_.claims(*node.op, node.attrs, types)) return std::nullopt;

    Values operands;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      operands.push_back(is_low(node, role, i) ? lowered(node.inputs[i], low) : rw_.in(node.inputs[i]));
    const Value first = rw_.out().add(*node.op, operands, node.attrs);
    Values values;
    for (size_t r = 0; r < node.results.size(); ++r) {
      const Value value = first.result(static_cast<int64_t>(r));
      if (value.dtype() == node.results[r].type.dtype) {
        values.push_back(value);
        continue;
      }
      const ValueId id = node.results[r].id;
      native_[id] = low;
      low_[{id, low}] = value.id();
      values.push_back(ops::cast(value, {.to = node.results[r].type.dtype}));
    }
    return values;
  }

 private:
  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  bool is_low(const Node& node, const Role& role, size_t operand) const {
    return operand < 32 && ((role.low >> operand) & 1) != 0 && type(node.inputs[operand]).dtype == DType::F32;
  }

  // A value that must stay f32 is not computed from rounded ones either, as far as nothing but element-wise work and
  // movement lies between: a mask is often (1 - m) * -1e9, which is -inf in f16.
  void protect() {
    const std::vector<Node>& nodes = rw_.graph().nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const Category category = role_of(*node).category;
      const bool passes_on = (category == Category::kElementwise || category == Category::kDataMovement) &&
                             protected_.contains(node->results[0].id);
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (passes_on || must_be_f32(*node, i)) protected_.emplace(node->inputs[i], true);
    }
  }

  // The half precision that a value has before it is cast to f32; F32 when it has none.
  DType native(ValueId id) const {
    if (const auto it = native_.find(id); it != native_.end()) return it->second;
    const Node& producer = rw_.producer(id);
    if (producer.op != &ops::cast || type(id).dtype != DType::F32) return DType::F32;
    const DType from = type(producer.inputs[0]).dtype;
    return from == DType::F16 || from == DType::BF16 ? from : DType::F32;
  }

  DType dtype_for(const Node& node, const Role& role) const {
    switch (role.category) {
      case Category::kCompute: return map_.compute;
      case Category::kReduction: return map_.reduction;
      case Category::kElementwise: return map_.elementwise;
      case Category::kDataMovement: break;
      case Category::kNone: return DType::F32;
    }
    if (map_.data_movement == DType::F32) return DType::F32;
    // Follows its operands; when they disagree, it keeps what it was declared as.
    const DType low = native(node.inputs[0]);
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (is_low(node, role, i) && native(node.inputs[i]) != low) return DType::F32;
    return low;
  }

  // f16 ends at 65504: a constant beyond it would become infinite.
  bool fits(const Node& node, const Role& role, DType low) const {
    if (low != DType::F16) return true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Node& producer = rw_.producer(node.inputs[i]);
      if (!is_low(node, role, i) || producer.op != &ops::constant) continue;
      const Tensor value = aligned(producer.attrs.as<ops::ConstantAttrs>().value);
      for (const float v : value.values<float>())
        if (std::isfinite(v) && std::abs(v) > 65504.f) return false;
    }
    return true;
  }

  Value lowered(ValueId id, DType low) {
    if (const auto it = low_.find({id, low}); it != low_.end()) return rw_.out().value(it->second);
    const Node& producer = rw_.producer(id);
    const Value value = producer.op == &ops::cast && type(producer.inputs[0]).dtype == low
                            ? rw_.in(producer.inputs[0])
                            : ops::cast(rw_.in(id), {.to = low});
    low_[{id, low}] = value.id();
    return value;
  }

  Rewriter& rw_;
  PrecisionMap map_;
  std::unordered_map<ValueId, bool> protected_;       // looked up only, as the next
  std::unordered_map<ValueId, DType> native_;         // of values computed here in half precision
  std::map<std::pair<ValueId, DType>, ValueId> low_;  // what stands for a value in half precision, by its new id
};

}  // namespace

void auto_mixed_precision(Rewriter& rw) {
  const PassOptions& options = rw.context().options;
  const PrecisionMap map = precision_map(options.precision, options.custom_precision);
  for (const DType dtype : {map.compute, map.reduction, map.elementwise, map.data_movement})
    require(dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16, "Precision (", dtype,
            ") of a category is not f32, f16 or bf16.");
  if (options.precision == PrecisionPolicy::kAlwaysF32) return;
  Lowerer lowerer(rw, map);
  rw.for_each([&](const Node& node) { return lowerer.visit(node); });
}

}  // namespace rlx::passes
