#include "rlx/graph.h"

#include <algorithm>

#include "ir/text.h"
#include "rlx/ops/leaves.h"

namespace rlx {

// References to a value's type stay valid while nodes are added: they are moved, and their results with them.
static_assert(std::is_nothrow_move_constructible_v<Node>);

const TensorType& Value::type() const { return graph_->type(id_); }

Value Value::result(int64_t index) const {
  const Node& node = graph_->node_of(id_);
  require(index >= 0 && index < static_cast<int64_t>(node.results.size()), "Op '", node.op->name, "' has ",
          node.results.size(), " results, not a result ", index, ".");
  return Value(*graph_, node.results[static_cast<size_t>(index)].id);
}

Value Graph::input(std::string name, TensorType type) {
  return add_node(ops::input, {}, ops::LeafAttrs{name}, {std::move(type)}, name);
}
Value Graph::param(std::string name, TensorType type) {
  return add_node(ops::param, {}, ops::LeafAttrs{name}, {std::move(type)}, name);
}
Value Graph::state(std::string name, TensorType type) {
  return add_node(ops::state, {}, ops::LeafAttrs{name}, {std::move(type)}, name);
}
Value Graph::constant(const Tensor& value, std::string name) {
  return add_node(ops::constant, {}, ops::ConstantAttrs{value}, {value.type()}, std::move(name));
}
Value Graph::dim_value(Dim dim) { return add(ops::dim_value, {}, ops::DimValueAttrs{dim}); }

void Graph::output(const Value& value, std::string name) {
  require(&value.graph() == this, "Output '", name, "' is a value of another graph.");
  outputs_.push_back({std::move(name), value.id()});
}

void Graph::update(const Value& state, const Value& value) {
  require(&state.graph() == this && &value.graph() == this, "A state update names a value of another graph.");
  updates_.push_back({state.id(), value.id()});
}

Value Graph::add(const OpDef& op, std::span<const Value> inputs, Attrs attrs, std::string name) {
  std::vector<TensorType> types;
  std::vector<ValueId> ids;
  for (const Value& v : inputs) {
    require(&v.graph() == this, "Op '", op.name, "' is given a value of another graph ('", v.graph().name(), "').");
    types.push_back(type(v.id()));
    ids.push_back(v.id());
  }
  Types results = infer_types(op, types, attrs, symbols_);
  require(results.size() > 0, "Op '", op.name, "' would have no results.");
  return add_node(op, std::move(ids), std::move(attrs), std::move(results), std::move(name));
}

Value Graph::add_node(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, std::vector<TensorType> types,
                      std::string name, std::string origin) {
  RLX_ASSERT(!types.empty());
  Node node{.op = &op,
            .attrs = std::move(attrs),
            .inputs = std::move(inputs),
            .results = {},
            .name = std::move(name),
            .origin = origin.empty() ? origin_ : std::move(origin)};
  for (TensorType& t : types) node.results.push_back({new_id(), std::move(t)});
  const ValueId first = node.results[0].id;
  append(std::move(node));
  return Value(*this, first);
}

void Graph::append(Node node) {
  for (size_t r = 0; r < node.results.size(); ++r) {
    const auto place = ValuePlace{static_cast<int64_t>(nodes_.size()), static_cast<int64_t>(r)};
    const bool inserted = places_.emplace(node.results[r].id, place).second;
    RLX_ASSERT(inserted && "a value id occurs twice");
    next_id_ = std::max(next_id_, node.results[r].id + 1);
    symbols_.note_used(node.results[r].type.shape);
  }
  nodes_.push_back(std::move(node));
}

Graph Graph::empty_revision() const {
  Graph g(name_);
  g.symbols_ = symbols_;
  g.next_id_ = next_id_;
  return g;
}

ValuePlace Graph::place(ValueId id) const {
  const auto it = places_.find(id);
  require(it != places_.end(), "Graph '", name_, "' has no value with id ", id, ".");
  return it->second;
}

const TensorType& Graph::type(ValueId id) const {
  const ValuePlace p = place(id);
  return nodes_[static_cast<size_t>(p.node)].results[static_cast<size_t>(p.result)].type;
}

std::string Graph::label(ValueId id) const {
  const auto it = places_.find(id);
  if (it == places_.end()) return str("%<missing ", id, ">");
  const ValuePlace p = it->second;
  const Node& node = nodes_[static_cast<size_t>(p.node)];
  std::string text = "%";
  if (node.name.empty())
    append_text(text, p.node);
  else
    text += is_plain_name(node.name) ? node.name : quoted(node.name);
  if (p.result > 0) text += str('#', p.result);
  return text;
}

std::vector<const Node*> Graph::leaves(const OpDef& kind) const {
  std::vector<const Node*> out;
  for (const Node& node : nodes_)
    if (node.op == &kind) out.push_back(&node);
  return out;
}

const Node* Graph::find_leaf(const OpDef& kind, std::string_view name) const {
  for (const Node& node : nodes_)
    if (node.op == &kind && node.attrs.as<ops::LeafAttrs>().name == name) return &node;
  return nullptr;
}

std::vector<uint32_t> Graph::dynamic_symbols() const {
  std::vector<uint32_t> ids;
  const auto take = [&](const Dim& d) {
    if (!d.is_static()) ids.push_back(d.symbol_id());
  };
  for (const Node& node : nodes_) {
    for (const Result& r : node.results)
      for (const Dim& d : r.type.shape) take(d);
    for (const Field& f : node.attrs.fields()) {
      if (const auto* d = std::get_if<Dim*>(&f.ref)) take(**d);
      if (const auto* dims = std::get_if<std::vector<Dim>*>(&f.ref))
        for (const Dim& d : **dims) take(d);
      if (const auto* g = std::get_if<GraphPtr*>(&f.ref); g && **g)
        for (const uint32_t id : (**g)->dynamic_symbols()) ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Graph::operator==(const Graph& other) const { return print(*this) == print(other); }
uint64_t Graph::hash() const { return stable_hash(print(*this)); }

Types infer_types(const OpDef& op, std::span<const TensorType> inputs, const Attrs& attrs, SymbolTable& symbols,
                  std::span<const TensorType> declared) {
  try {
    const auto n = static_cast<int>(inputs.size());
    RLX_ASSERT(op.infer != nullptr);
    if (op.min_inputs == op.max_inputs)
      require(n == op.min_inputs, "Number of operands (", n, ") is not ", op.min_inputs, ".");
    else
      require(n >= op.min_inputs && n <= op.max_inputs, "Number of operands (", n, ") is not between ", op.min_inputs,
              " and ", op.max_inputs == kVariadic ? std::string("any") : str(op.max_inputs), ".");
    return op.infer(InferCall(op, inputs, attrs, symbols, declared));
  } catch (Error& e) {
    std::string types;
    for (const TensorType& t : inputs) types += str(types.empty() ? "" : ", ", t);
    e.add_context(str("inferring the type of ", op.name, "(", types, ")"));
    throw;
  }
}

}  // namespace rlx
