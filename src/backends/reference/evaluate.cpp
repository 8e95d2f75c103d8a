#include "backends/reference/evaluate.h"

#include <unordered_map>

#include "backends/host/aligned_bytes.h"
#include "backends/reference/table.h"
#include "core/aligned.h"
#include "rlx/ops/leaves.h"

namespace rlx::reference {

namespace {

host::View view_of(const Tensor& t) { return {t.dtype(), t.sizes(), const_cast<std::byte*>(t.bytes().data())}; }

const Tensor& leaf_value(const Tensor* given, const Node& node, std::string_view kind) {
  const std::string& name = node.attrs.as<ops::LeafAttrs>().name;
  require(given != nullptr, kind, " '", name, "' (", node.results[0].type, ") is not given.");
  require(given->type() == node.results[0].type, kind, " '", name, "' is ", given->type(), ", not ",
          node.results[0].type, ".");
  return *given;
}

// Are all ops such that the oracle has a kernel, in regions too? Then nothing needs decomposing.
bool is_primitive(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.op->traits.leaf && find_kernel(*node.op) == nullptr && node.op->decompose) return false;
    for (const GraphPtr& region : node.attrs.graphs())
      if (!is_primitive(*region)) return false;
  }
  return true;
}

class GivenParams : public host::ParamSource {
 public:
  explicit GivenParams(const NamedTensors& params) : params_(params) {}
  const Tensor* find_param(std::string_view name) const override {
    const auto it = params_.find(std::string(name));
    return it == params_.end() ? nullptr : &it->second;
  }

 private:
  const NamedTensors& params_;
};

int64_t scratch_bytes(const host::KernelRow& row, const Node& node, std::span<const Tensor> inputs) {
  if (row.scratch == nullptr) return 0;
  std::vector<TensorType> in, out;
  for (const Tensor& t : inputs) in.push_back(t.type());
  for (const Result& r : node.results) out.push_back(r.type);
  return row.scratch({node.attrs, in, out}, 1);
}

void run_node(const Node& node, std::span<const Tensor> inputs, const host::ParamSource& params,
              std::vector<Tensor>& outputs) {
  bool all_empty = true;
  for (const Result& r : node.results) {
    outputs.emplace_back(r.type.dtype, r.type.shape.sizes());
    all_empty &= outputs.back().num_elements() == 0;
  }
  if (all_empty) return;
  const host::KernelRow* row = find_row(*node.op);
  if (row == nullptr)
    fail(ErrorKind::kUnsupported, str("The reference backend has no kernel for op '", node.op->name, "'."));
  std::vector<host::View> in, out;
  for (const Tensor& t : inputs) in.push_back(view_of(t));
  for (const Tensor& t : outputs) out.push_back(view_of(t));
  const host::AlignedBytes scratch(scratch_bytes(*row, node, inputs), 64);
  row->kernel(host::Call(node.attrs, in, out, params, {.scratch = scratch.data()}));
}

}  // namespace

std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs, const host::ParamSource& params,
                             const NamedTensors& states) {
  if (!is_primitive(graph))
    return evaluate(decompose(graph, [](const OpDef& op, const auto&...) { return find_kernel(op) == nullptr; }),
                    inputs, params, states);
  const GivenParams given_states(states);
  std::unordered_map<ValueId, Tensor> values;
  size_t next_input = 0;
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> results;
    if (node.op == &ops::input) {
      require(next_input < inputs.size(), "Graph '", graph.name(), "' has more inputs than the ", inputs.size(),
              " given.");
      const Tensor& t = inputs[next_input++];
      require(t.type() == node.results[0].type, "Input '", node.name, "' is ", t.type(), ", not ", node.results[0].type,
              ".");
      results = {aligned(t)};
    } else if (node.op == &ops::param) {
      results = {aligned(leaf_value(params.find_param(node.attrs.as<ops::LeafAttrs>().name), node, "Param"))};
    } else if (node.op == &ops::state) {
      results = {aligned(leaf_value(given_states.find_param(node.attrs.as<ops::LeafAttrs>().name), node, "State"))};
    } else if (node.op == &ops::constant) {
      results = {aligned(node.attrs.as<ops::ConstantAttrs>().value)};
    } else if (node.op == &ops::dim_value) {
      results = {Tensor::i32({}, {static_cast<int32_t>(node.attrs.as<ops::DimValueAttrs>().dim.value())})};
    } else {
      std::vector<Tensor> operands;
      for (const ValueId id : node.inputs) operands.push_back(values.at(id));
      try {
        run_node(node, operands, params, results);
      } catch (Error& e) {
        e.add_context(str("running ", graph.label(node.results[0].id), " (", node.op->name, ")"));
        throw;
      }
    }
    for (size_t r = 0; r < results.size(); ++r) values[node.results[r].id] = results[r];
  }
  std::vector<Tensor> outputs;
  for (const Output& o : graph.outputs()) outputs.push_back(values.at(o.value));
  return outputs;
}

std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs, const NamedTensors& params,
                             const NamedTensors& states) {
  return evaluate(graph, inputs, GivenParams(params), states);
}

std::vector<Tensor> evaluate_op(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
  Graph graph(std::string(op.name));
  Values operands;
  for (size_t i = 0; i < inputs.size(); ++i) operands.push_back(graph.input(str("x", i), inputs[i].type()));
  const Value first = graph.add(op, operands, attrs);
  const size_t results = graph.node_of(first.id()).results.size();
  for (size_t r = 0; r < results; ++r) graph.output(first.result(static_cast<int64_t>(r)), str("y", r));
  return evaluate(graph, inputs);
}

}  // namespace rlx::reference
