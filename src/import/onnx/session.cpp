#include "import/onnx/session.h"

#include <algorithm>
#include <unordered_set>

#include "backends/reference/evaluate.h"
#include "import/onnx/elem_type.h"
#include "rlx/log.h"
#include "rlx/ops/leaves.h"

namespace rlx::onnx {

namespace {

constexpr size_t kMaxBranches = 64;            // of one step, and of sizes of inputs: what is kept for later runs
constexpr int64_t kMaxSteps = 4096;            // that are kept in all
constexpr int64_t kMaxSideElements = 1 << 14;  // a value that needs no more than this is computed on the side

// The nodes that the outputs need, and nothing else.
Graph prune(const Graph& graph, const std::vector<Output>& outputs) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<int64_t> stack;
  const auto need = [&](ValueId id) {
    const int64_t node = graph.place(id).node;
    if (!needed[static_cast<size_t>(node)]) {
      needed[static_cast<size_t>(node)] = true;
      stack.push_back(node);
    }
  };
  for (const Output& o : outputs) need(o.value);
  while (!stack.empty()) {
    const Node& node = graph.nodes()[static_cast<size_t>(stack.back())];
    stack.pop_back();
    for (const ValueId in : node.inputs) need(in);
  }
  Graph part = graph.empty_revision();
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) part.append(graph.nodes()[i]);
  part.set_outputs(outputs);
  return part;
}

// Is computing it by the oracle cheaper than to end a stage?
bool is_small(const Graph& part) {
  int64_t elements = 0;
  for (const Node& node : part.nodes()) {
    if (node.op->traits.compute_heavy || !node.attrs.graphs().empty()) return false;
    if (node.op->traits.leaf) continue;
    for (const Result& r : node.results) {
      elements += std::min(r.type.shape.try_elements().value_or(kMaxSideElements), kMaxSideElements + 1);
      if (elements > kMaxSideElements) return false;
    }
  }
  return true;
}

bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string shape_text(const TypeProto& type) {
  if (type.kind != TypeProto::Kind::kTensor) return "a sequence or optional";
  if (!type.shape) return str(name(type.elem), " of any shape");
  std::string text = str(name(type.elem), " [");
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const DimProto& d = (*type.shape)[i];
    text += str(i > 0 ? ", " : "", d.value > 0 ? str(d.value) : d.param.empty() ? "?" : std::string(d.param));
  }
  return text + "]";
}

}  // namespace

// Where a value comes from: an input of the run (step -1), or an output of a step.
struct Session::Feed {
  int step = -1;
  std::string name;
};

struct Session::Branch {
  std::vector<Tensor> values;
  std::unique_ptr<Step> next;
};

// A part of a recorded run.
struct Session::Step {
  std::unique_ptr<Executable> executable;  // ends a stage; or the last step
  std::optional<Graph> side;               // or: a small part whose value is needed, run by the oracle
  std::vector<std::pair<std::string, Feed>> feeds;
  std::vector<Feed> observed;  // the values on which the next step depends
  std::vector<Branch> branches;

  // Of the last step: how its outputs make the model's.
  struct Result {
    HostValue known;  // where nothing has to be computed
    ElemType elem = ElemType::kUndefined;
    std::optional<Feed> feed;
    std::vector<Result> items;
    bool is_sequence = false;
  };
  bool last = false;
  std::vector<Result> results;

  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  // One after the other: a loop that is observed leaves a chain as long as its iterations.
  ~Step() {
    std::vector<std::unique_ptr<Step>> steps;
    const auto take = [&](Step& step) {
      for (Branch& b : step.branches)
        if (b.next) steps.push_back(std::move(b.next));
    };
    take(*this);
    while (!steps.empty()) {
      const std::unique_ptr<Step> step = std::move(steps.back());
      steps.pop_back();
      take(*step);
    }
  }
};

// Follows an import: answers demands from the steps of earlier runs, then with new ones.
class Session::Recorder : public Observer {
 public:
  Recorder(Session& session, std::unique_ptr<Step>* place, Produced& produced, const NamedTensors& inputs)
      : session_(session), place_(place), produced_(produced), inputs_(inputs) {}

  void declare_input(const std::string& name) { sources_[name] = {-1, name}; }

  std::vector<Tensor> observe(Importer& importer, const std::vector<ValueId>& ids) override {
    const Graph& graph = importer.graph();
    const bool fresh = *place_ == nullptr;
    if (fresh) *place_ = session_.new_step();
    Step& step = **place_;
    const int index = next_step_++;
    std::vector<Output> wanted;
    std::vector<Feed> observed;
    for (const ValueId id : ids) {
      const Node& node = graph.node_of(id);
      if (node.op == &ops::input) {
        observed.push_back(sources_.at(node.name));
      } else {
        const std::string name = str("observed", wanted.size());
        wanted.push_back({name, id});
        observed.push_back({index, name});
      }
    }
    if (!wanted.empty()) {
      Graph part = prune(graph, wanted);
      if (is_small(part)) {
        if (fresh) {
          step.feeds = feeds_of(part);
          step.side = std::move(part);
        }
      } else {
        cut(importer, step, index, wanted, fresh);
      }
    }
    if (fresh) step.observed = observed;
    if (static_cast<size_t>(index) >= produced_.size()) session_.execute(step, produced_, inputs_);
    std::vector<Tensor> values;
    for (const Feed& feed : observed) values.push_back(find(feed));
    auto branch = std::find_if(step.branches.begin(), step.branches.end(),
                               [&](const Branch& b) { return same_values(b.values, values); });
    if (branch == step.branches.end()) {
      if (step.branches.size() >= kMaxBranches) step.branches.erase(step.branches.begin());
      step.branches.push_back({values, nullptr});
      branch = std::prev(step.branches.end());
    }
    place_ = &branch->next;
    return values;
  }

  // The rest of the import is the last step.
  Step& finish(Importer& importer, const std::vector<Item>& outputs) {
    if (*place_ == nullptr) {
      auto step = session_.new_step();
      step->last = true;
      std::vector<Output> wanted;
      for (const Item& item : outputs) step->results.push_back(result(importer, item, wanted));
      if (!wanted.empty()) compile_into(*step, prune(importer.graph(), wanted));
      *place_ = std::move(step);
    }
    if (static_cast<size_t>(next_step_) >= produced_.size()) session_.execute(**place_, produced_, inputs_);
    return **place_;
  }

  const Tensor& find(const Feed& feed) const {
    return feed.step < 0 ? inputs_.at(feed.name) : produced_.at(static_cast<size_t>(feed.step)).at(feed.name);
  }

 private:
  std::vector<std::pair<std::string, Feed>> feeds_of(const Graph& part) const {
    std::vector<std::pair<std::string, Feed>> feeds;
    for (const Node* leaf : part.leaves(ops::input)) feeds.emplace_back(leaf->name, sources_.at(leaf->name));
    return feeds;
  }

  void compile_into(Step& step, Graph part) {
    step.feeds = feeds_of(part);
    step.executable = std::make_unique<Executable>(compile(std::move(part), session_.options_));
    ++session_.stage_compiles_;
  }

  void cut(Importer& importer, Step& step, int index, std::vector<Output> wanted, bool fresh) {
    const Graph& graph = importer.graph();
    std::unordered_set<ValueId> named;
    for (const Output& o : wanted) named.insert(o.value);
    Graph next = graph.empty_revision();
    std::unordered_map<ValueId, ValueId> renamed;
    std::map<std::string, Feed> sources;
    const auto unique = [&](std::string name) {  // a user's input may be called so already
      while (sources_.contains(name)) name += '_';
      return name;
    };
    const auto hand_on = [&](ValueId id, const std::string& name, Feed feed) {
      renamed[id] = next.input(name, graph.type(id)).id();
      sources[name] = std::move(feed);
    };
    for (const Output& o : wanted) hand_on(o.value, unique(str("s", index, "_", o.name)), {index, o.name});
    for (const ValueId id : importer.live_values()) {
      if (renamed.contains(id)) continue;
      const Node& node = graph.node_of(id);
      if (node.op == &ops::input) {
        hand_on(id, node.name, sources_.at(node.name));
      } else {
        const std::string name = str("v", wanted.size());
        wanted.push_back({name, id});
        hand_on(id, unique(str("s", index, "_", name)), {index, name});
      }
    }
    if (fresh) compile_into(step, prune(graph, wanted));
    sources_ = std::move(sources);
    importer.cut(std::move(next), renamed);
  }

  Step::Result result(Importer& importer, const Item& item, std::vector<Output>& wanted) {
    Step::Result r;
    r.elem = item.elem;
    if (item.kind == Item::Kind::kStrings) {
      r.known = HostValue(*item.strings);
    } else if (item.kind == Item::Kind::kSequence) {
      r.is_sequence = true;
      for (const Item& i : *item.items) r.items.push_back(result(importer, i, wanted));
    } else if (item.kind == Item::Kind::kTensor) {
      const ValueId id = importer.value(item).id();
      if (const Node& node = importer.graph().node_of(id); node.op == &ops::constant) {
        r.known = HostValue(item.elem, node.attrs.as<ops::ConstantAttrs>().value);
      } else {
        r.feed = {next_step_, str("output", wanted.size())};
        wanted.push_back({r.feed->name, id});
      }
    }
    return r;
  }

  Session& session_;
  std::unique_ptr<Step>* place_;
  Produced& produced_;
  const NamedTensors& inputs_;
  std::map<std::string, Feed> sources_;  // of the inputs of the importer's graph
  int next_step_ = 0;
};

Session::Session(std::shared_ptr<const ModelSource> model, CompileOptions options,
                 const std::map<std::string, int64_t>& sizes)
    : model_(std::move(model)), options_(std::move(options)) {
  const GraphProto& graph = *model_->proto.graph;
  std::unordered_set<std::string_view> initialized;
  for (const TensorProto& t : graph.initializers) initialized.insert(t.name);
  for (const ValueInfo& v : graph.inputs)
    if (!initialized.contains(v.name)) inputs_.push_back({std::string(v.name), v.type});
  for (const ValueInfo& v : graph.outputs) outputs_.push_back({std::string(v.name), v.type});
  for (ModelPort& port : inputs_) describe(port, sizes);
  for (const auto& [name, size] : sizes)
    require(std::any_of(symbols_.names().begin(), symbols_.names().end(),
                        [&, &n = name](const auto& entry) { return entry.second == n; }),
            "The model has no size '", name, "'.");
  for (ModelPort& port : outputs_) describe(port, sizes);
  try {
    guard_memory([&] { import_symbolic(); });
  } catch (const Error& e) {
    graph_.reset();
    why_not_ = e.what();
    log(LogLevel::kInfo, str("The model becomes a graph at its first run: ", why_not_));
  }
}

Session::~Session() = default;

std::unique_ptr<Session::Step> Session::new_step() {
  ++num_steps_;
  return std::make_unique<Step>();
}

int64_t Session::compiles() const { return stage_compiles_ + (executable_ ? executable_->stats().compiles : 0); }

void Session::describe(ModelPort& port, const std::map<std::string, int64_t>& sizes) {
  port.text = shape_text(port.type);
  if (port.type.kind != TypeProto::Kind::kTensor || !port.type.shape || !storage(port.type.elem)) return;
  TensorType type{{}, *storage(port.type.elem)};
  for (size_t axis = 0; axis < port.type.shape->size(); ++axis) {
    const DimProto& d = (*port.type.shape)[axis];
    // Exporters write -1, 0 or "?" where they know nothing.
    const std::string name = d.param.empty() || d.param == "?" ? str(port.name, ".", axis) : std::string(d.param);
    const Dim symbol = d.value > 0 ? Dim(d.value) : symbols_.named(name);
    const auto given = sizes.find(name);
    type.shape.push_back(d.value <= 0 && given != sizes.end() ? Dim(given->second) : symbol);
  }
  port.tensor = type;
}

void Session::import_symbolic() {
  Importer importer(*model_);
  importer.graph().symbols() = symbols_;
  std::map<std::string, Item, std::less<>> given;
  for (const ModelPort& port : inputs_) {
    require(port.tensor.has_value(), "Input '", port.name, "' (", port.text, ") has no known rank.");
    given[port.name] = importer.item(importer.graph().input(port.name, *port.tensor), port.type.elem);
  }
  const std::vector<Item> outputs = importer.import_main(given);
  for (size_t i = 0; i < outputs.size(); ++i) {
    require(outputs[i].kind == Item::Kind::kTensor, "Output '", outputs_[i].name, "' is not a tensor.");
    output_elems_.push_back(outputs[i].elem);
    importer.graph().output(importer.value(outputs[i]), outputs_[i].name);
  }
  graph_ = std::move(importer.graph());
  // What the file declares of its outputs is a hint; the graph knows.
  for (size_t i = 0; i < outputs.size(); ++i) outputs_[i].tensor = graph_->type(graph_->outputs()[i].value);
}

Executable* Session::executable() {
  if (graph_ && !executable_) executable_ = std::make_unique<Executable>(compile(*graph_, options_));
  return executable_.get();
}

void Session::check_inputs(const std::map<std::string, HostValue>& inputs) const {
  std::string missing;
  for (const ModelPort& port : inputs_)
    if (!inputs.contains(port.name) && port.type.kind != TypeProto::Kind::kOptional)
      missing += str(missing.empty() ? "" : ", ", "'", port.name, "' (", shape_text(port.type), ")");
  require(missing.empty(), "These inputs are not given: ", missing, ".");
  for (const auto& [name, value] : inputs) {
    const auto& all = model_->proto.graph->inputs;
    const auto it = std::find_if(all.begin(), all.end(), [&, &n = name](const ValueInfo& v) { return v.name == n; });
    require(it != all.end(), "The model has no input '", name, "'.");
    if (value.kind != HostValue::Kind::kTensor || it->type.kind != TypeProto::Kind::kTensor) continue;
    require(value.elem == it->type.elem || storage(it->type.elem) == value.tensor.dtype(), "Input '", name, "' is ",
            onnx::name(value.elem), ", not ", onnx::name(it->type.elem), ".");
    if (!it->type.shape) continue;
    bool fits = it->type.shape->size() == value.tensor.sizes().size();
    for (size_t i = 0; fits && i < it->type.shape->size(); ++i) {
      const int64_t declared = (*it->type.shape)[i].value;
      fits = declared <= 0 || declared == value.tensor.sizes()[i];  // a name may stand for two sizes, a number may not
    }
    require(fits, "Input '", name, "' has shape ", value.tensor.sizes(), ", but the model wants ", shape_text(it->type),
            ".");
  }
}

std::vector<HostValue> Session::run(const std::map<std::string, HostValue>& inputs, const Watch& watch) {
  watch_ = watch;
  check_inputs(inputs);
  return guard_memory([&] { return run_checked(inputs); });
}

std::vector<HostValue> Session::run_checked(const std::map<std::string, HostValue>& inputs) {
  const bool plain = inputs.size() == inputs_.size() && std::all_of(inputs.begin(), inputs.end(), [](const auto& i) {
                       return i.second.kind == HostValue::Kind::kTensor;
                     });
  if (!graph_ || !plain) return run_staged(inputs);
  NamedTensors tensors;
  for (const auto& [name, value] : inputs) tensors[name] = value.tensor;
  NamedTensors results;
  try {
    results = executable()->run(tensors, {.trace = watch_.trace});
  } catch (const Error& e) {
    // The graph holds for most sizes, not for all: a slice that begins at -3 is cut off where there are only two
    // elements, a name of the file stands for two sizes. Built for these sizes the model may run.
    if (e.kind() != ErrorKind::kInvalid) throw;
    return run_staged(inputs);
  }
  if (watch_.stages != nullptr) watch_.stages->push_back({executable(), tensors});
  std::vector<HostValue> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs.emplace_back(output_elems_[i], results.at(outputs_[i].name));
  return outputs;
}

namespace {

void append_key(std::string& key, const HostValue& value) {
  key += str(static_cast<int>(value.kind), "/", static_cast<int>(value.elem));
  if (value.kind == HostValue::Kind::kTensor) key += str(value.tensor.sizes());
  if (value.kind == HostValue::Kind::kStrings) {
    key += str(value.strings.sizes);
    for (const std::string& s : value.strings.values) key += str(s.size(), ":", s);
  }
  key += '(';
  for (const HostValue& item : value.items) append_key(key, item);
  key += ')';
}

// Tensors of inputs by name, those in sequences as name/0, name/1 …
void collect(const std::string& name, const HostValue& value, NamedTensors& out) {
  if (value.kind == HostValue::Kind::kTensor)
    require(out.emplace(name, value.tensor).second, "Two inputs are called '", name, "'.");
  for (size_t i = 0; i < value.items.size(); ++i) collect(str(name, "/", i), value.items[i], out);
}

Item declare(Importer& importer, const std::string& name, const HostValue& value) {
  if (value.kind == HostValue::Kind::kTensor)
    return importer.item(importer.graph().input(name, value.tensor.type()), value.elem);
  if (value.kind != HostValue::Kind::kSequence) return importer.item(value);
  Item it;
  it.kind = Item::Kind::kSequence;
  auto items = std::make_shared<std::vector<Item>>();
  for (size_t i = 0; i < value.items.size(); ++i)
    items->push_back(declare(importer, str(name, "/", i), value.items[i]));
  it.items = std::move(items);
  return it;
}

}  // namespace

void Session::execute(Step& step, Produced& produced, const NamedTensors& inputs) {
  const auto find = [&](const Feed& feed) -> const Tensor& {
    return feed.step < 0 ? inputs.at(feed.name) : produced.at(static_cast<size_t>(feed.step)).at(feed.name);
  };
  NamedTensors outputs;
  if (step.side) {
    std::vector<Tensor> given;
    for (const auto& [name, feed] : step.feeds) given.push_back(find(feed));
    const std::vector<Tensor> values = reference::evaluate(*step.side, given);
    for (size_t i = 0; i < values.size(); ++i) outputs[step.side->outputs()[i].name] = values[i];
  } else if (step.executable) {
    NamedTensors given;
    for (const auto& [name, feed] : step.feeds) given[name] = find(feed);
    if (watch_.stages != nullptr) watch_.stages->push_back({step.executable.get(), given});
    outputs = step.executable->run(given, {.trace = watch_.trace});
  }
  produced.push_back(std::move(outputs));
}

std::vector<HostValue> Session::run_staged(const std::map<std::string, HostValue>& inputs) {
  NamedTensors tensors;
  std::string key;
  for (const auto& [name, value] : inputs) {
    collect(name, value, tensors);
    key += name + '=';
    append_key(key, value);
  }
  if (num_steps_ > kMaxSteps) {
    roots_.clear();
    num_steps_ = 0;
  }
  if (roots_.size() >= kMaxBranches && !roots_.contains(key)) roots_.erase(roots_.begin());
  std::unique_ptr<Step>* root = &roots_[key];
  Produced produced;
  // Recorded steps, as long as the values are those of an earlier run.
  const Step* last = nullptr;
  for (std::unique_ptr<Step>* place = root; *place;) {
    Step& step = **place;
    execute(step, produced, tensors);
    if (step.last) {
      last = &step;
      break;
    }
    std::vector<Tensor> values;
    for (const Feed& feed : step.observed)
      values.push_back(feed.step < 0 ? tensors.at(feed.name)
                                     : produced.at(static_cast<size_t>(feed.step)).at(feed.name));
    const auto branch = std::find_if(step.branches.begin(), step.branches.end(),
                                     [&](const Branch& b) { return same_values(b.values, values); });
    if (branch == step.branches.end()) break;
    place = &branch->next;
  }
  if (!last) {
    Importer importer(*model_);
    Recorder recorder(*this, root, produced, tensors);
    importer.set_observer(&recorder);
    std::map<std::string, Item, std::less<>> given;
    for (const auto& [name, value] : inputs) given[name] = declare(importer, name, value);
    for (const ModelPort& port : inputs_)
      if (!given.contains(port.name)) given[port.name] = Item();  // an optional that is not given
    for (const auto& [name, tensor] : tensors) recorder.declare_input(name);
    last = &recorder.finish(importer, importer.import_main(given));
  }
  const auto make = [&](const auto& self, const Step::Result& r) -> HostValue {
    if (r.is_sequence) {
      std::vector<HostValue> items;
      for (const Step::Result& i : r.items) items.push_back(self(self, i));
      return HostValue(std::move(items));
    }
    if (!r.feed) return r.known;
    return {r.elem, produced.at(static_cast<size_t>(r.feed->step)).at(r.feed->name)};
  };
  std::vector<HostValue> outputs;
  for (const Step::Result& r : last->results) outputs.push_back(make(make, r));
  return outputs;
}

}  // namespace rlx::onnx
