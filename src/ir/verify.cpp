#include <map>
#include <set>

#include "rlx/graph.h"
#include "rlx/ops/leaves.h"

namespace rlx {

namespace {

bool is_named_leaf(const OpDef& op) { return &op == &ops::input || &op == &ops::param || &op == &ops::state; }

// [] and [1] of one dtype are interchangeable (V5).
bool same_type(const TensorType& a, const TensorType& b) {
  if (a == b) return true;
  return a.dtype == b.dtype && a.shape.try_elements() == 1 && b.shape.try_elements() == 1;
}

class Verifier {
 public:
  Verifier(const Graph& graph, bool is_region) : graph_(graph), is_region_(is_region), symbols_(graph.symbols()) {}

  std::vector<Fault> run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) check_node(static_cast<int64_t>(i));
    check_names();
    check_outputs();
    check_updates();
    return std::move(faults_);
  }

 private:
  template <class... Parts>
  void fault(int64_t node, const Parts&... parts) {
    faults_.push_back({node, str(parts...)});
  }

  void check_node(int64_t index) {
    const Node& node = graph_.nodes()[static_cast<size_t>(index)];
    bool operands_ok = true;
    std::vector<TensorType> types;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!graph_.contains(node.inputs[i])) {  // V1
        fault(index, "Operand ", i, " does not exist.");
        operands_ok = false;
        continue;
      }
      if (graph_.place(node.inputs[i]).node >= index) {  // V2
        fault(index, "Operand ", i, " (", graph_.label(node.inputs[i]), ") stands after its reader.");
        operands_ok = false;
        continue;
      }
      types.push_back(graph_.type(node.inputs[i]));
    }
    for (size_t r = 0; r < node.results.size(); ++r) check_size(index, r, node.results[r].type);  // V14
    for (const GraphPtr& region : node.attrs.graphs())
      for (Fault& f : Verifier(*region, true).run())
        fault(index, "In region '", region->name(), "'",
              f.node < 0 ? std::string()
                         : ", node " + region->label(region->nodes()[static_cast<size_t>(f.node)].results[0].id),
              ": ", f.message);
    if (is_region_ && node.op == &ops::state) fault(index, "A region contains a state.");  // V15
    if (operands_ok) check_types(index, node, types);
  }

  void check_size(int64_t index, size_t result, const TensorType& type) {
    for (const Dim& d : type.shape)
      if (d.is_static() && d.value() < 0) {
        fault(index, "Result ", result, " has a negative size in ", type, ".");
        return;
      }
    if (!type.shape.is_static()) return;
    int64_t bytes = 0;
    const auto elements = type.shape.try_elements();
    if (!elements || __builtin_mul_overflow(*elements, static_cast<int64_t>(size_of(type.dtype)), &bytes))
      fault(index, "Size of result ", result, " (", type, ") does not fit 64 bits.");
  }

  // V3, V5, V6, V8 to V13: what the op's own type rule says.
  void check_types(int64_t index, const Node& node, const std::vector<TensorType>& types) {
    try {
      std::vector<TensorType> declared;
      for (const Result& r : node.results) declared.push_back(r.type);
      const Types inferred = infer_types(*node.op, types, node.attrs, symbols_, declared);
      if (inferred.size() != declared.size()) {
        fault(index, "Number of results (", declared.size(), ") is not ", inferred.size(), ".");
        return;
      }
      for (size_t r = 0; r < inferred.size(); ++r)
        if (!same_type(declared[r], inferred[r]))
          fault(index, "Declared type ", declared[r], " of result ", r, " is not the inferred ", inferred[r], ".");
    } catch (const Error& e) {
      fault(index, e.message());
    }
  }

  void check_names() {  // V7
    std::set<std::string> seen;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!is_named_leaf(*node.op)) continue;
      const std::string& name = node.attrs.as<ops::LeafAttrs>().name;
      if (!seen.insert(name).second)
        fault(static_cast<int64_t>(i), "Name '", name, "' is used by another input, param or state.");
    }
    std::set<std::string> outputs;
    for (const Output& o : graph_.outputs())
      if (!outputs.insert(o.name).second) fault(-1, "Output name '", o.name, "' is used twice.");
  }

  void check_outputs() {  // V4
    for (const Output& o : graph_.outputs())
      if (!graph_.contains(o.value)) fault(-1, "Output '", o.name, "' names a value that does not exist.");
  }

  void check_updates() {  // V15
    if (is_region_ && !graph_.updates().empty()) fault(-1, "A region updates a state.");
    std::set<ValueId> updated;
    for (const StateUpdate& u : graph_.updates()) {
      if (!graph_.contains(u.state) || !graph_.contains(u.value)) {
        fault(-1, "A state update names a value that does not exist.");
        continue;
      }
      const std::string label = graph_.label(u.state);
      if (graph_.node_of(u.state).op != &ops::state) fault(-1, "Update of ", label, ", which is not a state.");
      if (!updated.insert(u.state).second) fault(-1, "State ", label, " is updated twice.");
      if (graph_.type(u.state) != graph_.type(u.value))
        fault(-1, "State ", label, " of type ", graph_.type(u.state), " is updated by ", graph_.label(u.value),
              " of type ", graph_.type(u.value), ".");
    }
  }

  const Graph& graph_;
  bool is_region_;
  SymbolTable symbols_;  // a copy: inferring may add symbols
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> find_faults(const Graph& graph) { return Verifier(graph, false).run(); }

void verify(const Graph& graph) {
  const std::vector<Fault> faults = find_faults(graph);
  if (faults.empty()) return;
  const auto place = [&](const Fault& f) {
    if (f.node < 0) return std::string();
    const Node& node = graph.nodes()[static_cast<size_t>(f.node)];
    return str(" at ", node.results.empty() ? std::string("?") : graph.label(node.results[0].id), " (", node.op->name,
               ")");
  };
  std::string text;
  for (const Fault& f : faults)
    text += str(text.empty() ? "" : "\n", f.message, place(f).empty() ? "" : "  [",
                place(f).empty() ? "" : place(f).substr(1), place(f).empty() ? "" : "]");
  if (faults.size() == 1) fail(ErrorKind::kInvalid, str("Graph '", graph.name(), "' is not valid: ", text));
  fail(ErrorKind::kInvalid, str("Graph '", graph.name(), "' has ", faults.size(), " faults:\n", text));
}

}  // namespace rlx
