// Graph: nodes in topological order, values with stable ids, outputs and state updates (spec 10, 3).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rlx/op.h"
#include "rlx/tensor.h"

namespace rlx {

// Identity of a value: unique within a graph and its rewrites, never reused.
using ValueId = uint64_t;

struct Result {
  ValueId id = 0;
  TensorType type;
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<Result> results;
  std::string name;    // optional; unique when given. Text prints it as %name
  std::string origin;  // optional: the node of a model file it comes from, and the passes that made it of that
};

// A value as a builder sees it: one result of a node of a graph under construction.
class Value {
 public:
  Value(Graph& graph, ValueId id) : graph_(&graph), id_(id) {}
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  Value result(int64_t index) const;  // another result of the same node: topk(x).result(1)

 private:
  Graph* graph_;
  ValueId id_;
};

// What a decomposition sees: the node's operands as values of the graph that is being built.
class DecomposeCall {
 public:
  DecomposeCall(std::span<const Value> inputs, const Attrs& attrs) : inputs_(inputs), attrs_(attrs) {}
  int64_t num_inputs() const { return static_cast<int64_t>(inputs_.size()); }
  const Value& input(int64_t i) const { return inputs_[static_cast<size_t>(i)]; }
  std::span<const Value> inputs() const { return inputs_; }
  template <class A>
  const A& attrs() const {
    return attrs_.as<A>();
  }

 private:
  std::span<const Value> inputs_;
  const Attrs& attrs_;
};

struct Output {
  std::string name;
  ValueId value = 0;
};

// When a run ends, `state` takes the value of `value` (spec 10, 3.8).
struct StateUpdate {
  ValueId state = 0;
  ValueId value = 0;
};

// Where a value comes from in this revision of the graph.
struct ValuePlace {
  int64_t node = 0;
  int64_t result = 0;
};

class Graph {
 public:
  explicit Graph(std::string name = "main") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // Leaves. The name is the node's name too.
  Value input(std::string name, TensorType type);
  Value param(std::string name, TensorType type);
  Value state(std::string name, TensorType type);
  Value constant(const Tensor& value, std::string name = "");
  Value dim_value(Dim dim);

  void output(const Value& value, std::string name);
  void update(const Value& state, const Value& value);

  // Appends a node whose types are inferred; throws when they cannot be.
  Value add(const OpDef& op, std::span<const Value> inputs, Attrs attrs, std::string name = "");
  // Appends a node as told, for importers and the parser: verify() checks it later.
  Value add_node(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, std::vector<TensorType> types,
                 std::string name = "", std::string origin = "");
  // The origin of nodes that are added from now on without one of their own, for importers.
  void set_origin(std::string origin) { origin_ = std::move(origin); }
  // Appends a copy of a node with its value ids kept, for rewrites that build a new revision of a graph.
  void append(Node node);
  // A new revision with the same name, symbols and id counter, and nothing in it yet.
  Graph empty_revision() const;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  void set_outputs(std::vector<Output> outputs) { outputs_ = std::move(outputs); }
  void set_updates(std::vector<StateUpdate> updates) { updates_ = std::move(updates); }

  bool contains(ValueId id) const { return places_.contains(id); }
  ValuePlace place(ValueId id) const;  // throws on an unknown id
  const Node& node_of(ValueId id) const { return nodes_[static_cast<size_t>(place(id).node)]; }
  const TensorType& type(ValueId id) const;
  Value value(ValueId id) { return Value(*this, id); }
  std::string label(ValueId id) const;  // as text prints it: %x, %7, %7#1

  // Leaves of one kind in declaration order, and by name (null when absent).
  std::vector<const Node*> leaves(const OpDef& kind) const;
  const Node* find_leaf(const OpDef& kind, std::string_view name) const;

  SymbolTable& symbols() { return symbols_; }
  const SymbolTable& symbols() const { return symbols_; }
  std::vector<uint32_t> dynamic_symbols() const;  // of all types and attributes, sorted

  // Deep: ops, attributes, types, names, edges, outputs, updates, symbols. Value ids and origins do not count.
  bool operator==(const Graph& other) const;
  // Equal graphs have equal hashes, on every platform.
  uint64_t hash() const;

 private:
  ValueId new_id() { return next_id_++; }

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  std::vector<StateUpdate> updates_;
  std::unordered_map<ValueId, ValuePlace> places_;  // looked up, never iterated
  SymbolTable symbols_;
  ValueId next_id_ = 1;
  std::string origin_;
};

// The definition of an op and its builder in one: softmax(x, {.axis = 1}). Returns result 0; Value::result gives the
// others.
template <class A>
struct Op : OpDef {
  using AttrsStruct = A;
  constexpr Op(OpDef def) : OpDef(def) { attrs = &attrs_type<A>; }

  Value operator()(const Value& x, A a = {}) const { return build({{x}}, std::move(a)); }
  Value operator()(const Value& x, const Value& y, A a = {}) const { return build({{x, y}}, std::move(a)); }
  Value operator()(const Value& x, const Value& y, const Value& z, A a = {}) const {
    return build({{x, y, z}}, std::move(a));
  }
  Value operator()(const Value& x, const Value& y, const Value& z, const Value& u, A a = {}) const {
    return build({{x, y, z, u}}, std::move(a));
  }
  Value operator()(const Value& x, const Value& y, const Value& z, const Value& u, const Value& v, A a = {}) const {
    return build({{x, y, z, u, v}}, std::move(a));
  }
  Value operator()(std::span<const Value> inputs, A a = {}) const { return build(inputs, std::move(a)); }
  Value operator()(const Values& inputs, A a = {}) const { return build(inputs, std::move(a)); }

 private:
  Value build(std::span<const Value> inputs, A a) const {
    require(!inputs.empty(), "Op '", name, "' needs at least one operand to know its graph.");
    return inputs[0].graph().add(*this, inputs, Attrs(std::move(a)));
  }
};

// Lists every fault of the graph (spec 10, 3.5), empty when there is none; verify throws them as one Error.
struct Fault {
  int64_t node = -1;  // -1: of the graph itself
  std::string message;
};
std::vector<Fault> find_faults(const Graph& graph);
void verify(const Graph& graph);

// Text form (spec 10, 3.7): print, parse, print is the identity.
std::string print(const Graph& graph);
// The same with comments: counts, bytes, a histogram of ops, names and outputs. It parses as well.
std::string print_annotated(const Graph& graph);
Graph parse(std::string_view text, std::string_view where = "text");  // `where` names the source in errors
Graph load(const std::string& path);                                  // a .rlx file

// Symbols replaced by sizes in every type and attribute, sub-graphs included, all types inferred anew and verified.
Graph bind(const Graph& graph, const DimBinding& binding);

// The types of a node from its operands; throws with the op's name.
Types infer_types(const OpDef& op, std::span<const TensorType> inputs, const Attrs& attrs, SymbolTable& symbols,
                  std::span<const TensorType> declared = {});

// Appends a copy of `body` to `graph`, its inputs replaced by `inputs` in declaration order; returns its outputs.
Values inline_graph(Graph& graph, const Graph& body, std::span<const Value> inputs);

// Replaces every node that `chosen` chooses by its op's decomposition, if it has one; repeatedly.
using ChooseNode = std::function<bool(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                                      std::span<const TensorType> outputs)>;
Graph decompose(const Graph& graph, const ChooseNode& chosen);

}  // namespace rlx
