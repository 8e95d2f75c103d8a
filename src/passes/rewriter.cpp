#include "passes/rewriter.h"

#include <algorithm>

#include "rlx/ops/leaves.h"

namespace rlx::passes {

namespace {

bool is_interface(const OpDef& op) { return &op == &ops::input || &op == &ops::param || &op == &ops::state; }

}  // namespace

void Remap::then(const Graph& first, const Remap& next) {
  for (const Node& node : first.nodes())
    for (const Result& r : node.results) {
      const Entry was = find(r.id);
      if (was.id == 0) continue;
      const Entry is = next.find(was.id);
      if (is.id != was.id || is.absorbed) set(r.id, {is.id, was.absorbed || is.absorbed});
    }
}

Rewriter::Rewriter(const Graph& graph, const PassContext& context, std::string_view pass, bool is_region)
    : before_(graph), context_(context), pass_(pass), is_region_(is_region) {
  stats_.nodes_before = stats_.nodes_after = static_cast<int64_t>(graph.nodes().size());
}

const UseInfo& Rewriter::uses() {
  if (!uses_) uses_.emplace(before_);
  return *uses_;
}

bool Rewriter::is_static(ValueId old) {
  if (static_.empty()) {
    static_.reserve(before_.nodes().size());
    for (const Node& node : before_.nodes()) {
      const bool of_static =
          !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
            return static_[static_cast<size_t>(before_.place(id).node)];
          });
      static_.push_back(node.op == &ops::param || node.op == &ops::constant || of_static);
    }
  }
  return static_[static_cast<size_t>(before_.place(old).node)];
}

bool Rewriter::claims(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  if (!context_.claims) return true;
  if (!trial_symbols_) trial_symbols_ = before_.symbols();
  try {
    const Types outputs = infer_types(op, inputs, attrs, *trial_symbols_);
    return context_.claims({op, attrs, inputs, outputs});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalid) throw;
    return false;
  }
}

bool Rewriter::claims(const Node& node) const {
  if (!context_.claims) return true;
  std::vector<TensorType> inputs, outputs;
  for (const ValueId id : node.inputs) inputs.push_back(before_.type(id));
  for (const Result& r : node.results) outputs.push_back(r.type);
  return context_.claims({*node.op, node.attrs, inputs, outputs});
}

void Rewriter::for_each(const std::function<std::optional<Values>(const Node&)>& visit) {
  RLX_ASSERT(!walked_ && "a pass walks its graph once");
  walked_ = true;
  for (current_ = 0; current_ < before_.nodes().size(); ++current_) {
    if (started() && done_[current_]) continue;  // moved forward already
    const Node& node = before_.nodes()[current_];
    const size_t first_made = made_.size();
    const bool was_started = started();
    const std::optional<Values> values = visit(node);
    if (values)
      replace(node, *values, was_started ? first_made : 0);
    else if (started() && !done_[current_])
      keep(current_);
  }
}

// Everything up to the node being visited, as it is.
void Rewriter::start() {
  out_.emplace(before_.empty_revision());
  done_.assign(before_.nodes().size(), false);
  for (size_t i = 0; i < current_; ++i) keep(i);
}

Graph& Rewriter::out() {
  if (!started()) start();
  made_.resize(out_->nodes().size());
  return *out_;
}

void Rewriter::keep(size_t index) {
  made_.resize(out_->nodes().size());  // what builders made since
  Node copy = before_.nodes()[index];
  for (ValueId& id : copy.inputs) {
    if (!done_[static_cast<size_t>(before_.place(id).node)]) pull(id);
    id = now(id);
  }
  made_.resize(out_->nodes().size());
  out_->append(std::move(copy));
  made_.push_back({.kept_from = static_cast<int64_t>(index)});
  done_[index] = true;
}

// Builds the node of a value before its turn, and first what it reads. A chain of moved nodes may be long: no
// recursion.
void Rewriter::pull(ValueId old) {
  std::vector<size_t> stack = {static_cast<size_t>(before_.place(old).node)};
  while (!stack.empty()) {
    const size_t index = stack.back();
    if (done_[index]) {
      stack.pop_back();
      continue;
    }
    if (index == current_) fail(ErrorKind::kInternal, str("Pass '", pass_, "' reads a value before it can exist."));
    bool ready = true;
    for (const ValueId id : before_.nodes()[index].inputs) {
      const auto producer = static_cast<size_t>(before_.place(id).node);
      if (done_[producer]) continue;
      stack.push_back(producer);
      ready = false;
    }
    if (!ready) continue;
    keep(index);
    stack.pop_back();
  }
}

ValueId Rewriter::now(ValueId old) const {
  const auto it = map_.find(old);
  return it == map_.end() ? old : it->second;
}

const Node& Rewriter::producer_now(ValueId old) const {
  return started() ? out_->node_of(now(old)) : before_.node_of(old);
}

Value Rewriter::in(ValueId old) {
  Graph& graph = out();
  if (!done_[static_cast<size_t>(before_.place(old).node)]) pull(old);
  return graph.value(now(old));
}

Values Rewriter::in_all(const Node& node) {
  Values values;
  values.reserve(node.inputs.size());
  for (const ValueId id : node.inputs) values.push_back(in(id));
  return values;
}

bool Rewriter::can_have(ValueId old) const {
  const ValuePlace place = before_.place(old);
  return static_cast<size_t>(place.node) < current_ ||
         before_.nodes()[static_cast<size_t>(place.node)].op->traits.leaf ||
         (started() && done_[static_cast<size_t>(place.node)]);
}

Value Rewriter::param(const std::string& name, const TensorType& type) {
  if (!params_known_) {
    params_known_ = true;
    for (const Node* leaf : before_.leaves(ops::param))
      params_.emplace(leaf->attrs.as<ops::LeafAttrs>().name, leaf->results[0].id);
  }
  Graph& graph = out();
  const auto it = params_.find(name);
  if (it == params_.end()) return graph.value(params_[name] = graph.param(name, type).id());
  const Value value = before_.contains(it->second) ? in(it->second) : graph.value(it->second);
  require(value.type() == type, "Param '", name, "' is ", value.type(), " in one graph and ", type, " in a region.");
  return value;
}

void Rewriter::replace(const Node& node, const Values& values, size_t first_made) {
  RLX_ASSERT(values.size() == node.results.size() && "one value per result");
  Graph& graph = out();
  for (size_t r = 0; r < values.size(); ++r) {
    RLX_ASSERT(&values[r].graph() == &graph && "the value is of the graph being built");
    if (values[r].type() != node.results[r].type)
      fail(ErrorKind::kInternal,
           str("Pass '", pass_, "' replaces ", before_.label(node.results[r].id), " (", node.op->name, ") of type ",
               node.results[r].type, " by a value of type ", values[r].type(), "."));
    map_[node.results[r].id] = values[r].id();
  }
  for (size_t i = first_made; i < made_.size(); ++i)
    if (made_[i].kept_from < 0 && made_[i].made_for < 0) made_[i].made_for = static_cast<int64_t>(current_);
  const ValuePlace place = graph.place(values[0].id());
  if (!node.name.empty() && place.result == 0) {
    const Node& target = graph.nodes()[static_cast<size_t>(place.node)];
    Made& made = made_[static_cast<size_t>(place.node)];
    if (target.name.empty() && made.named_after < 0) made.named_after = static_cast<int64_t>(current_);
  }
  done_[current_] = true;
  ++stats_.replaced;
}

void Rewriter::miss(const Node& node, std::string_view guard, std::string_view hint) {
  misses_.push_back({.pass = pass_,
                     .node = before_.label(node.results[0].id),
                     .op = std::string(node.op->name),
                     .guard = std::string(guard),
                     .hint = std::string(hint)});
}

std::vector<bool> Rewriter::needed_nodes(const std::vector<Output>& outputs, const std::vector<StateUpdate>& updates) {
  const std::vector<Node>& nodes = out_->nodes();
  std::vector<bool> needed(nodes.size(), false);
  const auto need = [&](ValueId id) { needed[static_cast<size_t>(out_->place(id).node)] = true; };
  for (const Output& o : outputs) need(o.value);
  for (const StateUpdate& u : updates) {
    need(u.state);
    need(u.value);
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    const OpDef& op = *nodes[i].op;
    // A state keeps its value between runs whether it is read or not; a region's inputs are bound by position.
    bool keep = needed[i] || &op == &ops::state || (is_region_ && &op == &ops::input);
    if (!keep && !drop_dead_) {
      keep = is_interface(op);
      // Dead before the pass: not this pass's business.
      if (const int64_t from = made_[i].kept_from; !keep && from >= 0) {
        const std::vector<Result>& results = before_.nodes()[static_cast<size_t>(from)].results;
        keep = std::all_of(results.begin(), results.end(), [&](const Result& r) { return uses().edges(r.id) == 0; });
      }
    }
    needed[i] = keep;
    if (keep)
      for (const ValueId id : nodes[i].inputs) need(id);
  }
  return needed;
}

Graph Rewriter::rebuild(const std::vector<bool>& needed, std::vector<Output> outputs,
                        std::vector<StateUpdate> updates) {
  Graph after = out_->empty_revision();
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    Node node = out_->nodes()[i];
    const Made& made = made_[i];
    if (made.kept_from < 0) {
      static const std::string kNone;
      const std::string& origin =
          made.made_for < 0 ? kNone : before_.nodes()[static_cast<size_t>(made.made_for)].origin;
      node.origin = origin.empty() ? pass_ : str(origin, "/", pass_);
    }
    if (made.named_after >= 0 && node.name.empty())
      node.name = before_.nodes()[static_cast<size_t>(made.named_after)].name;
    after.append(std::move(node));
  }
  after.set_outputs(std::move(outputs));
  after.set_updates(std::move(updates));
  return after;
}

std::optional<Graph> Rewriter::finish() {
  if (stats_.replaced == 0 && !drop_dead_) return std::nullopt;
  current_ = before_.nodes().size();
  out();
  std::vector<Output> outputs = before_.outputs();
  for (Output& o : outputs) o.value = now(o.value);
  std::vector<StateUpdate> updates = before_.updates();
  for (StateUpdate& u : updates) u.value = now(u.value);
  const std::vector<bool> needed = needed_nodes(outputs, updates);
  if (stats_.replaced == 0 && std::all_of(needed.begin(), needed.end(), [](bool b) { return b; })) return std::nullopt;
  Graph after = rebuild(needed, std::move(outputs), std::move(updates));
  fill_remap(after);
  stats_.nodes_after = static_cast<int64_t>(after.nodes().size());
  return after;
}

// Backwards, so that what became of a reader is known before its operands are asked about.
void Rewriter::fill_remap(const Graph& after) {
  for (auto node = before_.nodes().rbegin(); node != before_.nodes().rend(); ++node)
    for (const Result& r : node->results) {
      const ValueId id = now(r.id);
      if (after.contains(id)) {
        if (id != r.id) remap_.set(r.id, {id, false});
        continue;
      }
      Remap::Entry entry{0, true};
      for (const int64_t reader : uses().consumers(r.id)) {
        const ValueId result = before_.nodes()[static_cast<size_t>(reader)].results[0].id;
        entry = {remap_.find(result).id, true};
        if (entry.id != 0) break;
      }
      remap_.set(r.id, entry);
    }
}

}  // namespace rlx::passes
