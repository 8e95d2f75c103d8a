// Turns an ONNX graph into rlx nodes, one ONNX node after the other.
//
// Attributes of rlx ops are fixed when a graph is built, while ONNX passes shapes, axes or a number of rows as tensors.
// A builder that needs such a value asks for it: it is a constant, or follows from constants, or is arithmetic on sizes
// (which may be symbols). What remains depends on the data of a run: a Demand goes to whoever runs the import. With an
// Observer (session.h) the value is computed and the import goes on with it as a constant; without, it is an Error.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/onnx/host_value.h"
#include "import/onnx/proto.h"
#include "import/onnx/tensor_proto.h"
#include "rlx/graph.h"

namespace rlx::onnx {

// A value of the graph under construction. Stages replace the graph; whoever holds the slot sees the new id.
struct Slot {
  ValueId id = 0;
};

// What a name stands for. An optional is its element, or absent.
struct Item {
  enum class Kind { kAbsent, kTensor, kStrings, kSequence };
  Kind kind = Kind::kAbsent;
  ElemType elem = ElemType::kUndefined;
  std::shared_ptr<Slot> slot;              // of a tensor
  std::shared_ptr<const Strings> strings;  // always known
  std::shared_ptr<const std::vector<Item>> items;
};

// Thrown by a builder that asked for values which only a run can give.
struct Demand {
  std::vector<ValueId> values;
};

class Importer;

class Observer {
 public:
  virtual ~Observer() = default;
  // The values, in order. May replace the importer's graph (Importer::cut).
  virtual std::vector<Tensor> observe(Importer& importer, const std::vector<ValueId>& values) = 0;
};

// A model file in memory, checked as far as that goes without building anything.
struct ModelSource {
  ModelProto proto;
  TensorSource tensors;
  std::map<std::string, const FunctionProto*> functions;  // by domain:name:overload
  std::string where;                                      // for messages: the path
};

using Opsets = std::map<std::string_view, int64_t>;  // domain -> version

// The names of one graph, sub-graph or function body.
struct Frame {
  const Frame* outer = nullptr;
  const Opsets* opsets = nullptr;
  std::unordered_map<std::string_view, Item> names;
  const std::vector<AttributeProto>* function_attributes = nullptr;  // what the body's ref_attr_names refer to
};

class Importer {
 public:
  explicit Importer(const ModelSource& model);

  // Builds the model's main graph from its inputs; the outputs in the model's order.
  std::vector<Item> import_main(const std::map<std::string, Item, std::less<>>& inputs);
  // The body of a control-flow node: `inputs` for the graph's inputs, outer names from `outer`.
  std::vector<Item> import_body(const GraphProto& body, std::span<const Item> inputs, const Frame& outer);

  Graph& graph() { return graph_; }
  const ModelSource& model() const { return model_; }
  bool can_observe() const { return observer_ != nullptr && outer_.empty(); }
  // Answers demands from now on; without one they are errors.
  void set_observer(Observer* observer) { observer_ = observer; }

  Item lookup(std::string_view name, const Frame& frame) const;  // throws on an unknown name

  Item item(const Value& value, ElemType elem = ElemType::kUndefined);  // undefined: as the dtype says
  Item item(const HostValue& value);
  Value value(const Item& item);  // throws unless it is a tensor
  Value constant(const Tensor& value);

  // The value, if it follows from constants alone.
  std::optional<Tensor> try_known(ValueId id);
  Tensor known(ValueId id);  // or a Demand
  // The same for builders that import bodies: they hold items, no values, and are not started anew.
  Tensor known_now(const Item& item);
  // The elements of an integer tensor as sizes, when they follow from constants and sizes.
  std::optional<std::vector<Dim>> try_dims(ValueId id);
  std::vector<Dim> dims(ValueId id);  // or a Demand

  // For observers: the values that later nodes may read, constants aside; and the graph that goes on from them.
  std::vector<ValueId> live_values() const;
  void cut(Graph next, const std::unordered_map<ValueId, ValueId>& renamed);

  // Runs `build` with a new graph in place of this one: how regions of control flow are made. Outer values that it
  // reads become inputs of the region, after those that `build` declares; `captures` lists them. Throws when a value is
  // asked for that only a run can give.
  struct Region {
    Graph graph;
    std::vector<ValueId> captures;  // values of the outer graph
  };
  Region build_region(const std::function<void()>& build);

 private:
  void import_nodes(const std::vector<NodeProto>& nodes, Frame& frame, const std::vector<std::string_view>& outputs);
  void import_node(const NodeProto& node, Frame& frame);
  void check_claims(const NodeProto& node, const std::vector<Item>& inputs, const std::vector<Item>& results);
  std::vector<Item> build(const NodeProto& node, Frame& frame);
  std::vector<Item> call_function(const FunctionProto& function, const NodeProto& node, Frame& frame);
  void add_initializers(const GraphProto& graph, Frame& frame);
  void satisfy(const Demand& demand);
  bool is_constant(ValueId id);
  void find_demands(ValueId id, std::vector<ValueId>& out, std::unordered_set<ValueId>& seen) const;
  ValueId capture(ValueId id, size_t level);
  const std::vector<std::string_view>& free_names(const GraphProto& graph);
  std::vector<std::string_view> reads(const NodeProto& node);
  std::vector<size_t> execution_order(const std::vector<NodeProto>& nodes, const Frame& frame);

  const ModelSource& model_;
  Observer* observer_ = nullptr;
  Graph graph_;
  struct OuterGraph {
    Graph graph;
    std::unordered_map<ValueId, ValueId> captured;  // value of `graph` -> input of the region being built in it
    std::vector<ValueId> captures;
  };
  std::vector<std::unique_ptr<OuterGraph>> outer_;  // innermost last; not empty while a region is built
  Opsets opsets_;
  std::vector<std::weak_ptr<Slot>> slots_;
  std::unordered_map<ValueId, Tensor> known_;
  std::unordered_map<ValueId, ValueId> renamed_;  // by the last cut
  std::unordered_map<ValueId, bool> is_constant_;
  std::unordered_map<const GraphProto*, std::vector<std::string_view>> free_names_;
  int depth_ = 0;            // of functions and bodies: a function that calls itself is an error
  int64_t nodes_built_ = 0;  // with those of functions and of loops that are written out
};

}  // namespace rlx::onnx
