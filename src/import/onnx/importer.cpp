#include "import/onnx/importer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backends/reference/evaluate.h"
#include "core/aligned.h"
#include "import/onnx/node.h"
#include "rlx/log.h"
#include "rlx/ops/leaves.h"

namespace rlx::onnx {

namespace {

constexpr int kMaxDepth = 200;            // of functions that call functions and bodies within bodies
constexpr int64_t kMaxNodes = 1'000'000;  // that one import builds: a small file can ask for any number

constexpr int64_t kMaxKnownBytes = 256 << 20;  // of what is computed to learn a value while a model is imported

// Ops whose result is as large as a few numbers say: a shape, pads, a length. A file of 1 KB can claim any size that
// way: what is larger than this, and many times what the op was given, is refused.
constexpr int64_t kMaxMadeBytes = int64_t{1} << 30, kMaxMadeRatio = 64;
constexpr std::array<std::string_view, 25> kMakers = {"AveragePool",   "CenterCropPad",
                                                      "Col2Im",        "ConstantOfShape",
                                                      "Conv",          "ConvInteger",
                                                      "ConvTranspose", "DFT",
                                                      "DeformConv",    "Expand",
                                                      "EyeLike",       "FeatureVectorizer",
                                                      "FusedConv",     "GroupQueryAttention",
                                                      "LpPool",        "MaxPool",
                                                      "MaxUnpool",     "OneHot",
                                                      "Pad",           "QLinearConv",
                                                      "Range",         "Resize",
                                                      "RoiAlign",      "Tile",
                                                      "Upsample"};

// 0 when symbols decide it.
int64_t bytes_of(const TensorType& type) {
  if (!type.shape.is_static()) return 0;
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const int64_t elements = type.shape.try_elements().value_or(kLargest);
  const auto size = static_cast<int64_t>(size_of(type.dtype));
  return elements > kLargest / size ? kLargest : elements * size;
}

std::string label(const NodeProto& node) {
  return str("importing node '", node.name, "' (", node.domain.empty() ? "" : str(node.domain, "."), node.op_type, ")");
}

// What the graph's nodes are called after: the name, or what an unnamed node gives.
std::string origin_of(const NodeProto& node) {
  if (!node.name.empty()) return std::string(node.name);
  return str(node.op_type, " -> ", node.outputs.empty() ? std::string_view() : node.outputs[0]);
}

struct Nesting {
  explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  int& depth_;
};

}  // namespace

Importer::Importer(const ModelSource& model) : model_(model) {
  for (const OpsetId& id : model.proto.opsets) opsets_[id.domain] = id.version;
  if (!opsets_.contains("")) opsets_[""] = 1;
}

// ---- values

Item Importer::item(const Value& value, ElemType elem) {
  Item it;
  it.kind = Item::Kind::kTensor;
  it.elem = elem == ElemType::kUndefined ? elem_of(value.dtype()) : elem;
  it.slot = std::make_shared<Slot>(Slot{value.id()});
  slots_.push_back(it.slot);
  return it;
}

Item Importer::item(const HostValue& value) {
  Item it;
  it.elem = value.elem;
  switch (value.kind) {
    case HostValue::Kind::kAbsent: break;
    case HostValue::Kind::kTensor: return item(constant(value.tensor), value.elem);
    case HostValue::Kind::kStrings:
      it.kind = Item::Kind::kStrings;
      it.strings = std::make_shared<Strings>(value.strings);
      break;
    case HostValue::Kind::kSequence: {
      it.kind = Item::Kind::kSequence;
      auto items = std::make_shared<std::vector<Item>>();
      for (const HostValue& v : value.items) items->push_back(item(v));
      it.items = std::move(items);
      break;
    }
  }
  return it;
}

Value Importer::constant(const Tensor& value) { return graph_.constant(value); }

Value Importer::value(const Item& item) {
  require(item.kind == Item::Kind::kTensor, "A tensor of numbers is expected here.");
  if (graph_.contains(item.slot->id)) return graph_.value(item.slot->id);
  return graph_.value(capture(item.slot->id, outer_.size()));
}

// The value of an outer graph as one of the graph at `level` (outer_.size(): the innermost).
ValueId Importer::capture(ValueId id, size_t level) {
  RLX_ASSERT(level > 0);
  OuterGraph& outer = *outer_[level - 1];
  const auto found = outer.captured.find(id);
  if (found != outer.captured.end()) return found->second;
  Graph& inner = level == outer_.size() ? graph_ : outer_[level]->graph;
  const ValueId outer_id = outer.graph.contains(id) ? id : capture(id, level - 1);
  const Node& node = outer.graph.node_of(outer_id);
  ValueId inner_id = 0;
  if (node.op == &ops::constant) {
    inner_id = inner.constant(node.attrs.as<ops::ConstantAttrs>().value).id();
  } else {
    inner_id = inner.input(str("outer", outer.captures.size()), outer.graph.type(outer_id)).id();
    outer.captures.push_back(outer_id);
  }
  outer.captured.emplace(id, inner_id);
  return inner_id;
}

Importer::Region Importer::build_region(const std::function<void()>& build) {
  Graph region = graph_.empty_revision();
  outer_.push_back(std::make_unique<OuterGraph>());
  outer_.back()->graph = std::exchange(graph_, std::move(region));
  const auto known = known_;  // by id: ids of the region are used again when it is done
  const auto leave = [&] {
    known_ = known;
    is_constant_.clear();
    std::unique_ptr<OuterGraph> outer = std::move(outer_.back());
    outer_.pop_back();
    Graph inner = std::exchange(graph_, std::move(outer->graph));
    return Region{std::move(inner), std::move(outer->captures)};
  };
  try {
    build();
  } catch (...) {
    leave();
    throw;
  }
  return leave();
}

bool Importer::is_constant(ValueId id) {
  // Depth first with a stack of its own: chains of nodes are as long as the model.
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId v = stack.back();
    if (is_constant_.contains(v)) {
      stack.pop_back();
      continue;
    }
    const Node& node = graph_.node_of(v);
    if (known_.contains(v) || node.op == &ops::constant) {
      is_constant_[v] = true;
    } else if (!graph_.type(v).shape.is_static()) {
      is_constant_[v] = false;
    } else if (node.op->traits.leaf) {
      is_constant_[v] = node.op == &ops::dim_value && node.attrs.as<ops::DimValueAttrs>().dim.is_static();
    } else {
      bool all = true, ready = true;
      for (const ValueId in : node.inputs) {
        const auto it = is_constant_.find(in);
        if (it == is_constant_.end()) {
          stack.push_back(in);
          ready = false;
        } else {
          all &= it->second;
        }
      }
      if (!ready) continue;
      is_constant_[v] = all;
    }
    stack.pop_back();
  }
  return is_constant_[id];
}

std::optional<Tensor> Importer::try_known(ValueId id) {
  if (const auto it = known_.find(id); it != known_.end()) return it->second;
  if (const Node& node = graph_.node_of(id); node.op == &ops::constant) {
    const Tensor& value = node.attrs.as<ops::ConstantAttrs>().value;
    if (is_aligned(value)) return value;
    return known_[id] = value.clone();  // builders read its elements
  }
  if (!is_constant(id)) return std::nullopt;
  // The part of the graph that the value follows from, in the graph's order.
  std::vector<int64_t> places;
  std::unordered_set<int64_t> seen;
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    const int64_t place = graph_.place(v).node;
    if (!seen.insert(place).second) continue;
    places.push_back(place);
    if (!known_.contains(v))
      for (const ValueId in : graph_.nodes()[static_cast<size_t>(place)].inputs) stack.push_back(in);
  }
  std::sort(places.begin(), places.end());
  int64_t bytes = 0;
  for (const int64_t place : places)
    for (const Result& r : graph_.nodes()[static_cast<size_t>(place)].results)
      if (bytes <= kMaxKnownBytes) bytes += std::min(bytes_of(r.type), kMaxKnownBytes + 1);
  if (bytes > kMaxKnownBytes) {  // a stage of a run computes it, if that can be had
    is_constant_[id] = false;
    return std::nullopt;
  }
  Graph part = graph_.empty_revision();
  for (const int64_t place : places) {
    const Node& node = graph_.nodes()[static_cast<size_t>(place)];
    const auto it = node.results.size() == 1 ? known_.find(node.results[0].id) : known_.end();
    if (it == known_.end()) {
      part.append(node);
    } else {
      part.append(Node{&ops::constant, Attrs(ops::ConstantAttrs{it->second}), {}, node.results, "", ""});
    }
  }
  part.output(part.value(id), "value");
  Tensor value = reference::evaluate(part, {}).at(0);
  known_[id] = value;
  return value;
}

void Importer::find_demands(ValueId id, std::vector<ValueId>& out, std::unordered_set<ValueId>& seen) const {
  std::unordered_set<ValueId> slots;
  for (const auto& weak : slots_)
    if (const auto slot = weak.lock()) slots.insert(slot->id);
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    const Node& node = graph_.node_of(v);
    const auto constant = is_constant_.find(v);
    if (constant != is_constant_.end() && constant->second) continue;
    if (slots.contains(v) || node.op == &ops::input) {
      out.push_back(v);
    } else {
      for (const ValueId in : node.inputs) stack.push_back(in);
    }
  }
}

Tensor Importer::known(ValueId id) {
  if (std::optional<Tensor> value = try_known(id)) return *value;
  Demand demand;
  std::unordered_set<ValueId> seen;
  find_demands(id, demand.values, seen);
  throw demand;
}

Tensor Importer::known_now(const Item& item) {
  for (;;) {
    try {
      return known(value(item).id());
    } catch (const Demand& demand) {
      satisfy(demand);
    }
  }
}

std::vector<Dim> Importer::dims(ValueId id) {
  if (std::optional<std::vector<Dim>> sizes = try_dims(id)) return *sizes;
  const Tensor value = known(id).cast(DType::I64);
  return {value.values<int64_t>().begin(), value.values<int64_t>().end()};
}

void Importer::satisfy(const Demand& demand) {
  if (demand.values.empty() || !observer_ || !outer_.empty())
    fail(ErrorKind::kUnsupported, "It needs a value that is only known when the model runs.");
  const std::vector<Tensor> values = observer_->observe(*this, demand.values);
  RLX_ASSERT(values.size() == demand.values.size());
  is_constant_.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    ValueId id = demand.values[i];
    if (!graph_.contains(id)) id = renamed_.at(id);  // the observer cut the graph
    // Nodes that are there already go on reading the computed value; what is built from now on reads the constant.
    known_[id] = values[i];
    const ValueId made = constant(values[i]).id();
    for (const auto& weak : slots_)
      if (const auto slot = weak.lock(); slot && slot->id == id) slot->id = made;
  }
}

std::vector<ValueId> Importer::live_values() const {
  std::vector<ValueId> live;
  std::unordered_set<ValueId> seen;
  for (const auto& weak : slots_) {
    const auto slot = weak.lock();
    if (slot && graph_.node_of(slot->id).op != &ops::constant && seen.insert(slot->id).second) live.push_back(slot->id);
  }
  return live;
}

void Importer::cut(Graph next, const std::unordered_map<ValueId, ValueId>& renamed) {
  for (const auto& weak : slots_) {
    const auto slot = weak.lock();
    if (!slot) continue;
    const auto it = renamed.find(slot->id);
    if (it != renamed.end()) {
      slot->id = it->second;
    } else {
      const Node& node = graph_.node_of(slot->id);
      RLX_ASSERT(node.op == &ops::constant);
      slot->id = next.constant(node.attrs.as<ops::ConstantAttrs>().value).id();
    }
  }
  std::erase_if(slots_, [](const auto& weak) { return weak.expired(); });
  graph_ = std::move(next);
  renamed_ = renamed;
  known_.clear();
  is_constant_.clear();
}

// ---- graphs

Item Importer::lookup(std::string_view name, const Frame& frame) const {
  if (name.empty()) return {};
  for (const Frame* f = &frame; f; f = f->outer)
    if (const auto it = f->names.find(name); it != f->names.end()) return it->second;
  fail(ErrorKind::kInvalid, str("Name '", name, "' is read, but nothing produces it."));
}

const std::vector<std::string_view>& Importer::free_names(const GraphProto& graph) {
  if (const auto it = free_names_.find(&graph); it != free_names_.end()) return it->second;
  std::unordered_set<std::string_view> own, free;
  std::vector<std::string_view> result;
  for (const ValueInfo& v : graph.inputs) own.insert(v.name);
  for (const TensorProto& t : graph.initializers) own.insert(t.name);
  for (const NodeProto& n : graph.nodes)
    for (const std::string_view out : n.outputs) own.insert(out);
  const auto add = [&](std::string_view name) {
    if (!name.empty() && !own.contains(name) && free.insert(name).second) result.push_back(name);
  };
  for (const NodeProto& n : graph.nodes)
    for (const std::string_view name : reads(n)) add(name);
  for (const ValueInfo& v : graph.outputs) add(v.name);
  return free_names_[&graph] = std::move(result);
}

std::vector<std::string_view> Importer::reads(const NodeProto& node) {
  std::vector<std::string_view> names = node.inputs;
  for (const AttributeProto& a : node.attributes)
    for (const auto& g : a.graphs) {
      const std::vector<std::string_view>& inner = free_names(*g);
      names.insert(names.end(), inner.begin(), inner.end());
    }
  if (node.op_type == "Gradient")  // the one op that reads a value by an attribute
    for (const AttributeProto& a : node.attributes)
      if (a.name == "y") names.push_back(a.s);
  return names;
}

// The order of the file where that is possible, else one in which every name is produced before it is read.
std::vector<size_t> Importer::execution_order(const std::vector<NodeProto>& nodes, const Frame& frame) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view out : nodes[i].outputs) {
      if (out.empty()) continue;
      require(producer.emplace(out, i).second && !frame.names.contains(out), "Name '", out,
              "' is produced more than once.");
    }
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(nodes.size(), Mark::kNew);
  std::vector<size_t> order;
  order.reserve(nodes.size());
  struct Visit {
    size_t node;
    std::vector<std::string_view> reads;
    size_t next = 0;
  };
  for (size_t root = 0; root < nodes.size(); ++root) {
    if (marks[root] != Mark::kNew) continue;
    std::vector<Visit> stack;
    stack.push_back({root, reads(nodes[root])});
    marks[root] = Mark::kOpen;
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.next == visit.reads.size()) {
        marks[visit.node] = Mark::kDone;
        order.push_back(visit.node);
        stack.pop_back();
        continue;
      }
      const auto it = producer.find(visit.reads[visit.next++]);
      if (it == producer.end()) continue;
      require(marks[it->second] != Mark::kOpen, "The nodes form a cycle through '", it->first, "'.");
      if (marks[it->second] == Mark::kNew) {
        marks[it->second] = Mark::kOpen;
        stack.push_back({it->second, reads(nodes[it->second])});
      }
    }
  }
  return order;
}

void Importer::import_nodes(const std::vector<NodeProto>& nodes, Frame& frame,
                            const std::vector<std::string_view>& outputs) {
  const std::vector<size_t> order = execution_order(nodes, frame);
  // A name is forgotten after its last use, so that a stage hands on only what is still needed.
  std::unordered_map<std::string_view, size_t> last_use;
  for (size_t i = 0; i < order.size(); ++i)
    for (const std::string_view name : reads(nodes[order[i]])) last_use[name] = i;
  for (const std::string_view name : outputs) last_use[name] = std::numeric_limits<size_t>::max();
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeProto& node = nodes[order[i]];
    if (depth_ == 0) progress("importing", static_cast<double>(i) / static_cast<double>(order.size()));
    try {
      import_node(node, frame);
    } catch (Error& e) {
      e.add_context(label(node));
      throw;
    }
    for (const std::string_view name : reads(node))
      if (const auto it = last_use.find(name); it != last_use.end() && it->second == i) frame.names.erase(name);
    for (const std::string_view name : node.outputs)
      if (!last_use.contains(name)) frame.names.erase(name);
  }
}

void Importer::import_node(const NodeProto& node, Frame& frame) {
  require(++nodes_built_ <= kMaxNodes, "The model is more than ", kMaxNodes,
          " nodes when its functions and loops are written out.");
  std::vector<Item> results;
  for (;;) {
    try {
      graph_.set_origin(origin_of(node));
      results = build(node, frame);
      break;
    } catch (const Demand& demand) {
      satisfy(demand);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size())
      fail(ErrorKind::kUnsupported, str("Output ", i, " ('", node.outputs[i], "') is not supported."));
    frame.names[node.outputs[i]] = results[i];
  }
}

std::vector<Item> Importer::build(const NodeProto& node, Frame& frame) {
  const auto version = frame.opsets->find(node.domain);
  const int64_t opset = version == frame.opsets->end() ? 1 : version->second;
  const auto function = model_.functions.find(str(node.domain, ":", node.op_type, ":", node.overload));
  const OpRow* row = find_builder(node.domain, node.op_type, opset);
  if (!row && function != model_.functions.end()) return call_function(*function->second, node, frame);
  if (!row)
    fail(ErrorKind::kUnsupported, str("Op '", node.domain.empty() ? "" : str(node.domain, "."), node.op_type,
                                      "' of opset ", opset, " is not supported."));
  std::vector<Item> inputs;
  for (const std::string_view name : node.inputs) inputs.push_back(lookup(name, frame));
  OnnxNode onnx_node(*this, node, frame, inputs, opset);
  std::vector<Item> results = row->build(onnx_node).items(*this);
  check_claims(node, inputs, results);
  return results;
}

void Importer::check_claims(const NodeProto& node, const std::vector<Item>& inputs, const std::vector<Item>& results) {
  if (!std::binary_search(kMakers.begin(), kMakers.end(), node.op_type)) return;
  for (const Item& it : results) {
    if (it.kind != Item::Kind::kTensor) continue;
    const TensorType type = value(it).type();
    const int64_t bytes = bytes_of(type);
    if (bytes <= kMaxMadeBytes) continue;
    int64_t given = 0;
    for (const Item& in : inputs)
      if (in.kind == Item::Kind::kTensor) given = std::max(given, bytes_of(value(in).type()));
    if (bytes / kMaxMadeRatio > given)
      fail(ErrorKind::kMemory, str("Its result (", type, ") would be made of ", given, " bytes; more than ",
                                   kMaxMadeRatio, " times that is refused beyond ", kMaxMadeBytes, " bytes."));
  }
}

std::vector<Item> Importer::call_function(const FunctionProto& function, const NodeProto& node, Frame& frame) {
  const Nesting nesting(depth_);
  require(depth_ < kMaxDepth, "Functions call each other more than ", kMaxDepth, " deep.");
  Opsets opsets;
  for (const OpsetId& id : function.opsets) opsets[id.domain] = id.version;
  for (const auto& [domain, version] : *frame.opsets) opsets.emplace(domain, version);
  // Arguments: what the node gives (references to the caller's own attributes resolved), then the defaults.
  std::vector<AttributeProto> attributes;
  for (const AttributeProto& a : node.attributes) {
    if (a.ref_name.empty()) {
      attributes.push_back(a);
    } else if (frame.function_attributes) {
      for (const AttributeProto& given : *frame.function_attributes)
        if (given.name == a.ref_name) {
          attributes.push_back(given);
          attributes.back().name = a.name;
        }
    }
  }
  for (const AttributeProto& a : function.default_attributes)
    if (std::none_of(attributes.begin(), attributes.end(), [&](const auto& g) { return g.name == a.name; }))
      attributes.push_back(a);
  Frame body;
  body.opsets = &opsets;
  body.function_attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    body.names[function.inputs[i]] = i < node.inputs.size() ? lookup(node.inputs[i], frame) : Item();
  import_nodes(function.nodes, body, function.outputs);
  std::vector<Item> results;
  for (const std::string_view name : function.outputs) results.push_back(lookup(name, body));
  return results;
}

void Importer::add_initializers(const GraphProto& graph, Frame& frame) {
  if (graph.has_sparse_initializers) fail(ErrorKind::kUnsupported, "Sparse initializers are not supported.");
  for (const TensorProto& t : graph.initializers) {
    require(!t.name.empty(), "An initializer has no name.");
    if (frame.names.contains(t.name)) continue;  // an input with a default, and it is given
    try {
      frame.names[t.name] = item(model_.tensors.value(t));
    } catch (Error& e) {
      e.add_context(str("reading initializer '", t.name, "'"));
      throw;
    }
  }
}

std::vector<Item> Importer::import_main(const std::map<std::string, Item, std::less<>>& inputs) {
  const GraphProto& graph = *model_.proto.graph;
  Frame frame;
  frame.opsets = &opsets_;
  for (const auto& [name, given] : inputs) {
    const auto it =
        std::find_if(graph.inputs.begin(), graph.inputs.end(), [&, &n = name](const auto& v) { return v.name == n; });
    RLX_ASSERT(it != graph.inputs.end());
    frame.names[it->name] = given;
  }
  add_initializers(graph, frame);
  std::vector<std::string_view> outputs;
  for (const ValueInfo& v : graph.outputs) outputs.push_back(v.name);
  import_nodes(graph.nodes, frame, outputs);
  std::vector<Item> results;
  for (const std::string_view name : outputs) results.push_back(lookup(name, frame));
  return results;
}

std::vector<Item> Importer::import_body(const GraphProto& body, std::span<const Item> inputs, const Frame& outer) {
  const Nesting nesting(depth_);
  require(depth_ < kMaxDepth, "Graphs nest more than ", kMaxDepth, " deep.");
  Frame frame;
  frame.outer = &outer;
  frame.opsets = outer.opsets;
  frame.function_attributes = outer.function_attributes;
  require(inputs.size() <= body.inputs.size(), "The body '", body.name, "' has ", body.inputs.size(),
          " inputs, but gets ", inputs.size(), ".");
  for (size_t i = 0; i < inputs.size(); ++i) frame.names[body.inputs[i].name] = inputs[i];
  add_initializers(body, frame);
  std::vector<std::string_view> outputs;
  for (const ValueInfo& v : body.outputs) outputs.push_back(v.name);
  import_nodes(body.nodes, frame, outputs);
  std::vector<Item> results;
  for (const std::string_view name : outputs) results.push_back(lookup(name, frame));
  return results;
}

}  // namespace rlx::onnx
