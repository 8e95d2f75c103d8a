// if, while and scan as plain nodes where the bodies are small (spec 20, 1.4.3). What stays is a loop that the host
// drives.
#include <algorithm>

#include "passes/inline_region.h"
#include "passes/passes.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/compare.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/control_flow.h"
#include "rlx/ops/dot_general.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/where.h"

namespace rlx::passes {

namespace {

// Can the node run on data that the program never gives it? The branch that is not taken and the iterations after the
// last do. A gather there would find its index out of range; a loop inside might never end.
bool cannot_fail(const Graph& body, const Node& node) {
  const auto all_float = [&] {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return is_float(body.type(id).dtype) || body.type(id).dtype == DType::Bool; });
  };
  const std::string_view category = node.op->category;
  if (node.op->traits.leaf || category == "Shape" || category == "Normalisation" || category == "Fused") return true;
  if (category == "Elementwise")  // integers may be divided by 0, or 0 raised to a negative power
    return (node.op != &ops::div && node.op != &ops::mod && node.op != &ops::fmod && node.op != &ops::pow) ||
           all_float();
  if (category == "Regions") return all_float();
  if (category == "Reductions") return is_float(node.results[0].type.dtype);  // no argmax of nothing
  return node.op == &ops::matmul || node.op == &ops::dot_general || category == "Convolution";
}

// Cheap enough to run for nothing.
bool is_cheap(const Node& node) {
  return !node.op->traits.compute_heavy && node.op->category != "Fused" && node.op->category != "Attention";
}

bool all_nodes(const Graph& body, bool (*test)(const Graph&, const Node&)) {
  return std::all_of(body.nodes().begin(), body.nodes().end(), [&](const Node& n) { return test(body, n); });
}

bool can_run_for_nothing(const Graph& body) { return all_nodes(body, cannot_fail); }
bool is_cheap(const Graph& body) {
  return all_nodes(body, [](const Graph&, const Node& n) { return is_cheap(n); });
}

std::vector<TensorType> output_types(const Graph& body) {
  std::vector<TensorType> types;
  for (const Output& o : body.outputs()) types.push_back(body.type(o.value));
  return types;
}

std::vector<TensorType> result_types(const Node& node) {
  std::vector<TensorType> types;
  for (const Result& r : node.results) types.push_back(r.type);
  return types;
}

class Lowering {
 public:
  explicit Lowering(Rewriter& rw) : rw_(rw), limits_(rw.context().limits), unroll_(rw.context().options.unroll) {}

  std::optional<Values> lower(const Node& node) {
    if (unroll_ == Unroll::kNever) return std::nullopt;
    if (node.op == &ops::if_) return lower_if(node);
    if (node.op == &ops::while_) return lower_while(node);
    if (node.op == &ops::scan) return lower_scan(node);
    return std::nullopt;
  }

 private:
  std::optional<Values> stays(const Node& node, std::string_view guard, const std::string& why) {
    rw_.miss(node, guard, why);
    return std::nullopt;
  }

  // The types that a body sees must be those it was written with.
  bool fits(const Node& node, std::initializer_list<const Graph*> bodies, std::span<const TensorType> inputs) {
    for (const Graph* body : bodies)
      if (const std::string reason = why_not_inline(rw_, *body, inputs); !reason.empty()) {
        stays(node, "RegionTypes", reason);
        return false;
      }
    return true;
  }

  std::vector<TensorType> operand_types(const Node& node, size_t from) const {
    std::vector<TensorType> types;
    for (size_t i = from; i < node.inputs.size(); ++i) types.push_back(rw_.graph().type(node.inputs[i]));
    return types;
  }

  // Is a loop of so many iterations small enough?
  bool small(const Node& node, int64_t iterations, size_t body_nodes) {
    const int64_t total = checked_mul(iterations, static_cast<int64_t>(body_nodes));
    if (unroll_ == Unroll::kAlways) {
      require(total <= limits_.most_nodes, "Unrolling ", rw_.graph().label(node.results[0].id), " (", node.op->name,
              ") gives ", total, " nodes; the limit is ", limits_.most_nodes, ".");
      return true;
    }
    if (iterations <= limits_.unroll_steps && total <= limits_.unroll_nodes) return true;
    stays(node, "LoopTooLong",
          str(iterations, " iterations of ", body_nodes, " nodes exceed the limits (", limits_.unroll_steps,
              " iterations, ", limits_.unroll_nodes, " nodes); the host drives the loop."));
    return false;
  }

  // One element, as a scalar: it broadcasts into anything.
  static Value scalar(const Value& x) { return x.shape().rank() == 0 ? x : ops::reshape(x, {.new_shape = {}}); }

  // Always 0 or 1 (D06): a condition of 3.0 or NaN is simply true.
  Value truth(const Value& condition) {
    const Value c = scalar(condition);
    if (c.dtype() == DType::Bool) return c;
    return ops::ne(c, rw_.out().constant(Tensor(c.dtype(), {})));
  }

  std::optional<Values> lower_if(const Node& node) {
    const auto& attrs = node.attrs.as<ops::IfAttrs>();
    const std::vector<TensorType> captures = operand_types(node, 1);
    const Node& predicate = rw_.producer_now(node.inputs[0]);
    if (predicate.op == &ops::constant) {  // one branch, whatever it holds
      const bool taken = predicate.attrs.as<ops::ConstantAttrs>().value.at(0) != 0;
      const Graph& branch = taken ? *attrs.then_branch : *attrs.else_branch;
      if (!fits(node, {&branch}, captures)) return std::nullopt;
      if (output_types(branch) != result_types(node)) return stays(node, "RegionTypes", "The branches' types differ.");
      return inline_region(rw_, branch, captured(node, 1));
    }
    const Graph &yes = *attrs.then_branch, &no = *attrs.else_branch;
    if (unroll_ != Unroll::kAlways && !(is_cheap(yes) && is_cheap(no)))
      return stays(node, "HeavyBranch", "A branch holds heavy ops; the host runs the one that is taken.");
    if (!can_run_for_nothing(yes) || !can_run_for_nothing(no))
      return stays(node, "BranchMayFail",
                   "A branch holds ops that may fail on data it would not see; the host runs the one that is taken.");
    if (!fits(node, {&yes, &no}, captures)) return std::nullopt;
    if (output_types(yes) != result_types(node) || output_types(no) != result_types(node))
      return stays(node, "RegionTypes", "The branches' types differ.");
    const Values inputs = captured(node, 1);
    const Value chosen = scalar(rw_.in(node.inputs[0]));
    const Values a = inline_region(rw_, yes, inputs), b = inline_region(rw_, no, inputs);
    Values results;
    for (size_t i = 0; i < a.size(); ++i) results.push_back(ops::where(chosen, a[i], b[i]));
    return results;
  }

  Values captured(const Node& node, size_t from) {
    Values values;
    for (size_t i = from; i < node.inputs.size(); ++i) values.push_back(rw_.in(node.inputs[i]));
    return values;
  }

  // Every iteration runs; once the condition has failed the carried values stay. Selected, never multiplied: what a
  // dead iteration computes may be NaN.
  std::optional<Values> lower_while(const Node& node) {
    const auto& attrs = node.attrs.as<ops::WhileAttrs>();
    if (!attrs.max_iterations) return stays(node, "NoBound", "The loop has no max_iterations; the host drives it.");
    const Graph &cond = *attrs.cond, &body = *attrs.body;
    const std::vector<TensorType> carried = operand_types(node, 0);
    if (!can_run_for_nothing(cond) || !can_run_for_nothing(body))
      return stays(node, "BodyMayFail",
                   "The loop holds ops that may fail on data it would not see; the host drives it.");
    if (!small(node, *attrs.max_iterations, cond.nodes().size() + body.nodes().size())) return std::nullopt;
    if (!fits(node, {&cond, &body}, carried)) return std::nullopt;
    if (output_types(body) != carried) return stays(node, "RegionTypes", "The body changes the carried types.");
    Values values = captured(node, 0);
    for (int64_t n = 0; n < *attrs.max_iterations; ++n) {
      const Value active = truth(inline_region(rw_, cond, values)[0]);
      const Values next = inline_region(rw_, body, values);
      for (size_t i = 0; i < values.size(); ++i) values[i] = ops::where(active, next[i], values[i]);
    }
    return values;
  }

  std::optional<Values> lower_scan(const Node& node) {
    const auto& attrs = node.attrs.as<ops::ScanAttrs>();
    if (rw_.context().options.native_scan) return std::nullopt;
    if (!attrs.length.is_static()) return stays(node, "NoBound", "The length is a symbol; the host drives the loop.");
    const int64_t length = attrs.length.value();
    const Graph& body = *attrs.body;
    const auto carries = static_cast<size_t>(attrs.num_carries), fixed = carries + static_cast<size_t>(attrs.num_bcast);
    if (length == 0) return stays(node, "EmptyScan", "A scan of no steps has nothing to unroll.");
    if (!small(node, length, body.nodes().size())) return std::nullopt;
    std::vector<TensorType> inputs = operand_types(node, 0);
    for (size_t i = fixed; i < inputs.size(); ++i)
      inputs[i].shape = Shape(std::vector<Dim>(inputs[i].shape.begin() + 1, inputs[i].shape.end()));
    if (!fits(node, {&body}, inputs)) return std::nullopt;
    const std::vector<TensorType> outputs = output_types(body);
    for (size_t i = 0; i < carries; ++i)
      if (outputs[i] != inputs[i]) return stays(node, "RegionTypes", "The body changes the carried types.");
    return unrolled(node, attrs, length);
  }

  Values unrolled(const Node& node, const ops::ScanAttrs& attrs, int64_t length) {
    const auto carries = static_cast<size_t>(attrs.num_carries), fixed = carries + static_cast<size_t>(attrs.num_bcast);
    const std::vector<int64_t> kept = ops::checkpoint_steps(length, attrs.num_checkpoints);
    const Values operands = captured(node, 0);
    Values values(operands.begin(), operands.begin() + static_cast<int64_t>(fixed));
    std::vector<Values> stacks(attrs.body->outputs().size() - carries);
    Values trajectory;
    for (int64_t t = 0; t < length; ++t) {
      Values inputs = values;
      for (size_t x = fixed; x < operands.size(); ++x) inputs.push_back(row(operands[x], t));
      const Values outputs = inline_region(rw_, *attrs.body, inputs);
      std::copy_n(outputs.begin(), carries, values.begin());
      for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(as_row(outputs[carries + s]));
      if (attrs.save_trajectory && std::binary_search(kept.begin(), kept.end(), t))
        trajectory.push_back(as_row(values[0]));
    }
    Values results(values.begin(), values.begin() + static_cast<int64_t>(carries));
    for (const Values& rows : stacks) results.push_back(ops::concat(rows, {.axis = 0}));
    if (attrs.save_trajectory) results.push_back(ops::concat(trajectory, {.axis = 0}));
    return results;
  }

  static Value row(const Value& stack, int64_t t) {
    const std::vector<Dim> dims(stack.shape().begin() + 1, stack.shape().end());
    return ops::reshape(ops::narrow(stack, {.axis = 0, .start = t, .len = 1}), {.new_shape = dims});
  }
  static Value as_row(const Value& x) {
    std::vector<Dim> dims(x.shape().begin(), x.shape().end());
    dims.insert(dims.begin(), Dim(1));
    return ops::reshape(x, {.new_shape = dims});
  }

  Rewriter& rw_;
  const Limits& limits_;
  Unroll unroll_;
};

}  // namespace

void lower_control_flow(Rewriter& rw) {
  Lowering lowering(rw);
  rw.for_each([&](const Node& node) { return lowering.lower(node); });
}

}  // namespace rlx::passes
