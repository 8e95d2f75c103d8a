#include "rlx/ops/control_flow.h"

#include "ops/infer.h"
#include "rlx/ops/leaves.h"

namespace rlx::ops {

namespace {

const Graph& require_region(const GraphPtr& region, std::string_view what) {
  require(region != nullptr, "Region '", what, "' is missing.");
  return *region;
}

// Equal, or equal up to sizes that only a binding tells.
bool fits(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (a.dim(i) != b.dim(i) && a.dim(i).is_static() == b.dim(i).is_static()) return false;
  return true;
}

// V13: as many inputs as operands, of their types.
void require_inputs(const Graph& region, std::string_view what, std::span<const TensorType> operands) {
  const auto inputs = region.leaves(input);
  require(inputs.size() == operands.size(), "Region '", what, "' has ", inputs.size(), " inputs, its op gives it ",
          operands.size(), ".");
  for (size_t i = 0; i < inputs.size(); ++i)
    require(fits(inputs[i]->results[0].type, operands[i]), "Input ", i, " of region '", what, "' is ",
            inputs[i]->results[0].type, ", its op gives it ", operands[i], ".");
}

Types output_types(const Graph& region) {
  Types types;
  for (const Output& o : region.outputs()) types.push_back(region.type(o.value));
  return types;
}

void require_types(const Types& types, size_t first, std::span<const TensorType> expected, std::string_view what) {
  for (size_t i = 0; i < expected.size(); ++i)
    require(fits(types[first + i], expected[i]), "Output ", first + i, " of region '", what, "' is ", types[first + i],
            ", not ", expected[i], ".");
}

void require_predicate(const TensorType& type, std::string_view what) {
  const auto n = type.shape.try_elements();
  require(n == 1, what, " (", type, ") is not one element.");
  require(!is_complex(type.dtype), what, " dtype (c64) has no truth value.");
}

TensorType stacked(const Dim& length, const TensorType& row) {
  Shape shape{length};
  for (const Dim& d : row.shape) shape.push_back(d);
  return {std::move(shape), row.dtype};
}

// One row of a stack of `length` rows.
TensorType row_of(const TensorType& stack, const Dim& length, std::string_view what) {
  require(stack.rank() >= 1, what, " (", stack, ") has no axis of steps.");
  require_same_dim(stack.dim(0), length, str("Rows of ", what, " and length"));
  TensorType row{{}, stack.dtype};
  for (int64_t i = 1; i < stack.rank(); ++i) row.shape.push_back(stack.dim(i));
  return row;
}

void require_length(const Dim& length) {
  require(!length.is_static() || length.value() >= 0, "Length (", length, ") is negative.");
}

// Rows that a trajectory keeps: all, or as many as there are checkpoints.
Dim kept_rows(const Dim& length, int64_t checkpoints) {
  require(checkpoints >= 0, "Number of checkpoints (", checkpoints, ") is negative.");
  if (checkpoints == 0) return length;
  require(length.is_static(), "A scan with checkpoints has a fixed length, not ", length, ".");
  return checkpoints < length.value() ? Dim(checkpoints) : length;
}

Types infer_if(const InferCall& call) {
  const auto& a = call.attrs<IfAttrs>();
  const Graph& then_branch = require_region(a.then_branch, "then_branch");
  const Graph& else_branch = require_region(a.else_branch, "else_branch");
  require_predicate(call.input(0), "Predicate");
  require_inputs(then_branch, "then_branch", call.inputs().subspan(1));
  require_inputs(else_branch, "else_branch", call.inputs().subspan(1));
  const Types types = output_types(then_branch), others = output_types(else_branch);
  require(types.size() == others.size(), "Branches have ", types.size(), " and ", others.size(), " outputs.");
  require(!types.empty(), "Branches have no outputs.");
  require_types(others, 0, types, "else_branch");
  return types;
}

Types infer_while(const InferCall& call) {
  const auto& a = call.attrs<WhileAttrs>();
  const Graph& cond = require_region(a.cond, "cond");
  const Graph& body = require_region(a.body, "body");
  require(!a.max_iterations || *a.max_iterations >= 0, "Number of iterations (", a.max_iterations.value_or(0),
          ") is negative.");
  require_inputs(cond, "cond", call.inputs());
  require_inputs(body, "body", call.inputs());
  const Types predicate = output_types(cond), next = output_types(body);
  require(predicate.size() == 1, "Region 'cond' has ", predicate.size(), " outputs, not 1.");
  require_predicate(predicate[0], "Output of region 'cond'");
  require(next.size() == call.inputs().size(), "Region 'body' has ", next.size(), " outputs for ", call.num_inputs(),
          " carried values.");
  require_types(next, 0, call.inputs(), "body");
  Types types;
  for (const TensorType& t : call.inputs()) types.push_back(t);
  return types;
}

Types infer_scan(const InferCall& call) {
  const auto& a = call.attrs<ScanAttrs>();
  const Graph& body = require_region(a.body, "body");
  require(a.num_carries >= 0 && a.num_bcast >= 0 && a.num_xs >= 0, "Numbers of carries (", a.num_carries,
          "), broadcast values (", a.num_bcast, ") and xs (", a.num_xs, ") must not be negative.");
  require(call.num_inputs() == a.num_carries + a.num_bcast + a.num_xs, "Number of operands (", call.num_inputs(),
          ") is not the sum of carries (", a.num_carries, "), broadcast values (", a.num_bcast, ") and xs (", a.num_xs,
          ").");
  require(!a.save_trajectory || a.num_carries >= 1, "A trajectory needs a carry.");
  require(a.num_checkpoints == 0 || a.save_trajectory, "Checkpoints (", a.num_checkpoints, ") need save_trajectory.");
  require_length(a.length);
  std::vector<TensorType> inputs;
  for (int64_t i = 0; i < call.num_inputs(); ++i)
    inputs.push_back(i < a.num_carries + a.num_bcast ? call.input(i) : row_of(call.input(i), a.length, "Operand xs"));
  require_inputs(body, "body", inputs);
  const Types outputs = output_types(body);
  const auto carries = static_cast<size_t>(a.num_carries);
  require(outputs.size() >= carries, "Region 'body' has ", outputs.size(), " outputs for ", a.num_carries, " carries.");
  require_types(outputs, 0, call.inputs().first(carries), "body");
  Types types;
  for (size_t i = 0; i < carries; ++i) types.push_back(call.inputs()[i]);
  for (size_t i = carries; i < outputs.size(); ++i) types.push_back(stacked(a.length, outputs[i]));
  if (a.save_trajectory) types.push_back(stacked(kept_rows(a.length, a.num_checkpoints), call.input(0)));
  require(!types.empty(), "The scan has no result: no carry and no value to stack.");
  return types;
}

Types infer_scan_backward(const InferCall& call) {
  const auto& a = call.attrs<ScanBackwardAttrs>();
  const Graph& vjp = require_region(a.body_vjp, "body_vjp");
  require(call.num_inputs() == 3 + a.num_xs, "Number of operands (", call.num_inputs(), ") is not 3 and the xs (",
          a.num_xs, ").");
  require_length(a.length);
  const TensorType& carry = call.input(0);
  const Dim kept = kept_rows(a.length, a.num_checkpoints);
  require(fits(call.input(1), stacked(kept, carry)), "Trajectory (", call.input(1), ") is not ", stacked(kept, carry),
          ".");
  const TensorType upstream = a.save_trajectory ? stacked(a.length, carry) : carry;
  require(fits(call.input(2), upstream), "Upstream (", call.input(2), ") is not ", upstream, ".");
  std::vector<TensorType> forward_inputs = {carry}, expected = {carry};
  for (int64_t i = 0; i < a.num_xs; ++i) {
    forward_inputs.push_back(row_of(call.input(3 + i), a.length, "Operand xs"));
    expected.push_back(forward_inputs.back());
  }
  std::vector<TensorType> vjp_inputs = forward_inputs;
  vjp_inputs.push_back(carry);
  require_inputs(vjp, "body_vjp", vjp_inputs);
  const Types outputs = output_types(vjp);
  require(outputs.size() == expected.size(), "Region 'body_vjp' has ", outputs.size(), " outputs, not ",
          expected.size(), ".");
  require_types(outputs, 0, expected, "body_vjp");
  const bool checkpointed = kept != a.length;
  require(!checkpointed || a.forward_body,
          "Region 'forward_body' is missing: carries between checkpoints are recomputed with it.");
  if (a.forward_body) {
    require_inputs(*a.forward_body, "forward_body", forward_inputs);
    const Types next = output_types(*a.forward_body);
    require(!next.empty(), "Region 'forward_body' has no output.");
    require_types(next, 0, std::span(&carry, 1), "forward_body");
  }
  Types types = carry;
  for (int64_t i = 0; i < a.num_xs; ++i) types.push_back(call.input(3 + i));
  return types;
}

Types infer_custom_fn(const InferCall& call) {
  const auto& a = call.attrs<CustomFnAttrs>();
  const Graph& body = require_region(a.fwd_body, "fwd_body");
  require_inputs(body, "fwd_body", call.inputs());
  const Types types = output_types(body);
  require(!types.empty(), "Region 'fwd_body' has no outputs.");
  if (a.vjp_body) {  // primals, primal_output, d_output -> a gradient per primal
    const Types gradients = output_types(*a.vjp_body);
    require(a.vjp_body->find_leaf(input, "primal_output") && a.vjp_body->find_leaf(input, "d_output"),
            "Region 'vjp_body' has no inputs named 'primal_output' and 'd_output'.");
    require(gradients.size() == call.inputs().size(), "Region 'vjp_body' has ", gradients.size(), " outputs for ",
            call.num_inputs(), " operands.");
    require_types(gradients, 0, call.inputs(), "vjp_body");
  }
  if (a.jvp_body) {
    const Types tangent = output_types(*a.jvp_body);
    require(tangent.size() == 1 && fits(tangent[0], types[0]), "Region 'jvp_body' does not yield one output of type ",
            types[0], ".");
  }
  return types;
}

// The definition of custom_fn is its forward body, inlined.
Values decompose_custom_fn(const DecomposeCall& call) {
  return inline_graph(call.input(0).graph(), *call.attrs<CustomFnAttrs>().fwd_body, call.inputs());
}

}  // namespace

int64_t checkpoint_step(int64_t length, int64_t checkpoints, int64_t k) {
  const int64_t rows = checkpoints > 0 && checkpoints < length ? checkpoints : length;
  return ((k + 1) * length + rows - 1) / rows - 1;  // ceil((k+1)·length/K) − 1
}

std::vector<int64_t> checkpoint_steps(int64_t length, int64_t checkpoints) {
  std::vector<int64_t> steps;
  for (int64_t k = 0; length > 0 && checkpoint_step(length, checkpoints, k) < length; ++k)
    steps.push_back(checkpoint_step(length, checkpoints, k));
  return steps;
}

constinit const Op<IfAttrs> if_{
    {.name = "if",
     .category = "Control flow",
     .min_inputs = 1,
     .max_inputs = kVariadic,
     .infer = infer_if,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "The outputs of then_branch when the predicate is not zero, else those of else_branch."}};
constinit const Op<WhileAttrs> while_{{.name = "while",
                                       .category = "Control flow",
                                       .min_inputs = 1,
                                       .max_inputs = kVariadic,
                                       .infer = infer_while,
                                       .traits = {.extent = ExtentRule::kNever},
                                       .doc = "Carried values are replaced by body's outputs as long as cond's output "
                                              "is not zero, at most max_iterations times."}};
constinit const Op<ScanAttrs> scan{
    {.name = "scan",
     .category = "Control flow",
     .min_inputs = 1,
     .max_inputs = kVariadic,
     .infer = infer_scan,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "A loop over the rows of xs with carried values; further body outputs are stacked."}};
constinit const Op<ScanBackwardAttrs> scan_backward{
    {.name = "scan_backward",
     .category = "Control flow",
     .min_inputs = 3,
     .max_inputs = kVariadic,
     .infer = infer_scan_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "The reverse sweep of a scan: gradients of its first carry and of xs."}};
constinit const Op<CustomFnAttrs> custom_fn{{.name = "custom_fn",
                                             .category = "Control flow",
                                             .min_inputs = 1,
                                             .max_inputs = kVariadic,
                                             .infer = infer_custom_fn,
                                             .decompose = decompose_custom_fn,
                                             .traits = {.extent = ExtentRule::kNever},
                                             .doc = "fwd_body, with gradient rules of its own."}};

}  // namespace rlx::ops
