#include "rlx/ops/elementwise_region.h"

#include "ops/infer.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/resize_nearest_2x.h"

namespace rlx::ops {

namespace {

Attrs attrs_of(const ChainStep& step) { return step.op == &cast ? Attrs(CastAttrs{.to = *step.to}) : Attrs(); }

// What can be said of a step without types (V12): its op is a plain element-wise one and it reads what exists.
void check_step(const Chain& chain, size_t s, int64_t num_inputs) {
  const ChainStep& step = chain[s];
  require(step.op != nullptr, "Step ", s, " of the chain has no op.");
  const bool is_cast = step.op == &cast;
  require(step.op->traits.elementwise && (is_cast || step.op->attrs == &attrs_type<NoAttrs>), "Step ", s,
          " of the chain is '", step.op->name, "', which is no element-wise step.");
  require(is_cast == step.to.has_value(), "Step ", s, " of the chain ('", step.op->name, "') ",
          is_cast ? "does not say" : "is no cast but says", " which dtype it casts to.");
  for (const ChainOperand& o : step.operands) {
    if (o.is_step)
      require(o.index >= 0 && o.index < static_cast<int64_t>(s), "Step ", s, " of the chain reads step (", o.index,
              "), which does not stand before it.");
    else
      require(o.index >= 0 && o.index < num_inputs, "Step ", s, " of the chain reads input (", o.index, ") of ",
              num_inputs, ".");
  }
}

// The type of the last step. Every input must show in its shape: a chain has no expand to end with.
TensorType chain_type(const Chain& chain, std::span<const TensorType> inputs, SymbolTable& symbols) {
  require(!chain.empty(), "The chain has no steps.");
  std::vector<TensorType> steps;
  for (size_t s = 0; s < chain.size(); ++s) {
    check_step(chain, s, static_cast<int64_t>(inputs.size()));
    std::vector<TensorType> operands;
    for (const ChainOperand& o : chain[s].operands)
      operands.push_back(o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)]);
    try {
      steps.push_back(infer_types(*chain[s].op, operands, attrs_of(chain[s]), symbols)[0]);
    } catch (Error& e) {
      e.add_context(str("inferring step ", s, " of the chain"));
      throw;
    }
  }
  const TensorType& last = steps.back();
  for (const TensorType& t : inputs)
    require(broadcast_shapes(last.shape, t.shape, symbols) == last.shape, "Last step of the chain has shape ",
            last.shape, ", which an input of shape ", t.shape, " does not fit into.");
  return steps.back();
}

Value build_chain(const Chain& chain, std::span<const Value> inputs) {
  Values steps;
  for (const ChainStep& step : chain) {
    Values operands;
    for (const ChainOperand& o : step.operands)
      operands.push_back(o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)]);
    steps.push_back(inputs[0].graph().add(*step.op, operands, attrs_of(step)));
  }
  return steps.back();
}

template <class A>
void check_prologue_input(const A& attrs, int64_t num_inputs) {
  require(attrs.prologue_input >= 0 && attrs.prologue_input < num_inputs, "Prologue input (", attrs.prologue_input,
          ") is not one of the ", num_inputs, " inputs.");
}

Types infer(const InferCall& call) {
  const auto& attrs = call.attrs<ElementwiseRegionAttrs>();
  require(attrs.num_inputs == call.num_inputs(), "Number of operands (", call.num_inputs(), ") is not num_inputs (",
          attrs.num_inputs, ").");
  check_prologue_input(attrs, attrs.num_inputs);
  std::vector<TensorType> inputs(call.inputs().begin(), call.inputs().end());
  if (attrs.prologue == RegionPrologue::kResizeNearest2x) {
    TensorType& resized = inputs[static_cast<size_t>(attrs.prologue_input)];
    resized = infer_types(resize_nearest_2x, {&resized, 1}, Attrs(), call.symbols)[0];
  }
  return chain_type(attrs.chain, inputs, call.symbols);
}

Values decompose(const DecomposeCall& call) {
  const auto& attrs = call.attrs<ElementwiseRegionAttrs>();
  Values inputs(call.inputs().begin(), call.inputs().end());
  if (attrs.prologue == RegionPrologue::kResizeNearest2x) {
    Value& resized = inputs[static_cast<size_t>(attrs.prologue_input)];
    resized = resize_nearest_2x(resized);
  }
  return {build_chain(attrs.chain, inputs)};
}

ElementwiseRegionAttrs slice_region(const BatchElementwiseRegionAttrs& attrs) {
  return {.chain = attrs.chain, .num_inputs = 1, .prologue = attrs.prologue, .prologue_input = attrs.prologue_input};
}

Types infer_batch(const InferCall& call) {
  const auto& attrs = call.attrs<BatchElementwiseRegionAttrs>();
  require(attrs.num_batch_inputs == call.num_inputs(), "Number of operands (", call.num_inputs(),
          ") is not num_batch_inputs (", attrs.num_batch_inputs, ").");
  const TensorType& slice = call.input(0);
  require(slice.rank() >= 1 && slice.dim(0).is(1), "Slice shape ", slice.shape, " does not start with 1.");
  for (int64_t i = 1; i < call.num_inputs(); ++i) {
    require_same_dtype(slice, call.input(i));
    require_shape(call.input(i), slice.shape, "Slice");
  }
  TensorType y = infer_types(elementwise_region, {&slice, 1}, slice_region(attrs), call.symbols)[0];
  y.shape[0] = attrs.num_batch_inputs;
  return y;
}

Values decompose_batch(const DecomposeCall& call) {
  const ElementwiseRegionAttrs region = slice_region(call.attrs<BatchElementwiseRegionAttrs>());
  Values slices;
  for (const Value& x : call.inputs()) slices.push_back(elementwise_region(x, region));
  return {concat(slices, {.axis = 0})};
}

}  // namespace

// In place of any operand: element i of the result needs element i of an operand with as many elements. The planner
// compares number and size of elements, so an operand that is broadcast or resized never qualifies.
constinit const Op<ElementwiseRegionAttrs> elementwise_region{
    {.name = "elementwise_region",
     .category = "Regions",
     .min_inputs = 1,
     .max_inputs = kVariadic,
     .infer = infer,
     .decompose = decompose,
     .traits = {.elementwise = true, .in_place = ~InPlaceMask{0}},
     .doc = "A chain of element-wise steps on broadcast inputs; the value of the last step."}};

constinit const Op<BatchElementwiseRegionAttrs> batch_elementwise_region{
    {.name = "batch_elementwise_region",
     .category = "Regions",
     .min_inputs = 1,
     .max_inputs = kVariadic,
     .infer = infer_batch,
     .decompose = decompose_batch,
     .mixes_axis = [](const Attrs&, int64_t, int64_t axis) { return axis == 0; },
     .traits = {.elementwise = true},
     .doc = "The same chain on each of several slices, concatenated along axis 0."}};

}  // namespace rlx::ops
