#include "rlx/ops/custom.h"

#include "ops/custom_attrs.h"
#include "ops/infer.h"
#include "rlx/custom_op.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& attrs = call.attrs<CustomAttrs>();
  const std::shared_ptr<const CustomOp> op = find_custom_op(attrs.name);
  require(op != nullptr, "Custom op '", attrs.name, "' is not registered.");
  require(call.num_inputs() == op->num_inputs, "Number of operands (", call.num_inputs(), ") of custom op '",
          attrs.name, "' is not ", op->num_inputs, ".");
  require(attrs.num_inputs == op->num_inputs, "Attribute num_inputs (", attrs.num_inputs, ") of custom op '",
          attrs.name, "' is not ", op->num_inputs, ".");
  require(attrs.out_dtype || attrs.out_shape.empty(), "Attribute out_shape (", attrs.out_shape,
          ") comes without out_dtype.");
  if (attrs.out_dtype && !is_built_in(*op)) return TensorType{Shape(attrs.out_shape), *attrs.out_dtype};
  Types types;
  try {
    types = op->infer(call, attrs.attrs.data);
    require(!types.empty(), "The type rule gives no result.");
  } catch (Error& e) {
    e.add_context(str("asking the type rule of custom op '", attrs.name, "'"));
    throw;
  }
  // The built-in kernels write what their rule says, whatever a node declares.
  if (attrs.out_dtype) {
    const TensorType declared{Shape(attrs.out_shape), *attrs.out_dtype};
    require(declared == types[0], "The declared result (", declared, ") of custom op '", attrs.name, "' is not ",
            types[0], ".");
  }
  return types;
}

constinit const Op<CustomAttrs> custom{{.name = "custom",
                                        .category = "Custom",
                                        .min_inputs = 0,
                                        .max_inputs = kVariadic,
                                        .infer = infer,
                                        .mixes_axis = [](const Attrs&, int64_t, int64_t) { return true; },
                                        .traits = {.extent = ExtentRule::kNever},
                                        .doc = "A registered op: type rule and kernels are found by name."}};

}  // namespace rlx::ops

namespace rlx {

static Value build(std::string_view name, std::span<const Value> inputs, ops::CustomAttrs attrs) {
  require(!inputs.empty(), "Custom op '", name, "' needs at least one operand to know its graph.");
  attrs.name = name;
  attrs.num_inputs = static_cast<int64_t>(inputs.size());
  return ops::custom(inputs, std::move(attrs));
}

Value custom_op(std::string_view name, std::span<const Value> inputs, std::span<const uint8_t> attrs) {
  return build(name, inputs, {.attrs = {{attrs.begin(), attrs.end()}}});
}

Value custom_op(std::string_view name, std::span<const Value> inputs, std::span<const uint8_t> attrs, TensorType type) {
  return build(name, inputs,
               {.attrs = {{attrs.begin(), attrs.end()}}, .out_dtype = type.dtype, .out_shape = type.shape.dims()});
}

}  // namespace rlx
