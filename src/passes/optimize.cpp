// The driver: runs passes, times them, checks what they leave behind.
#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "passes/pipeline.h"
#include "rlx/log.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

namespace {

constexpr int kMostRounds = 16;  // of a repeated pass; ranks of decompositions are far fewer

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Which structs of attributes have a field for a region: asked per node, answered once per struct.
class RegionOwners {
 public:
  bool operator()(const Node& node) {
    const auto [it, is_new] = known_.emplace(&node.attrs.type(), false);
    if (is_new)
      for (const Field& f : node.attrs.fields()) it->second |= std::holds_alternative<GraphPtr*>(f.ref);
    return it->second;
  }

 private:
  std::unordered_map<const AttrsType*, bool> known_;
};

class Runner {
 public:
  Runner(const Pass& pass, const PassContext& context, PassRecord& record)
      : pass_(pass), context_(context), record_(record) {}

  std::optional<Graph> run(const Graph& graph, bool is_region) {
    std::optional<Graph> current;
    if (pass_.in_regions) current = run_regions(graph);
    for (int round = 0;; ++round) {
      if (round == kMostRounds)
        fail(ErrorKind::kInternal,
             str("Pass '", pass_.name, "' still finds something to replace after ", kMostRounds, " rounds."));
      Rewriter rw(current ? *current : graph, context_, pass_.name, is_region);
      pass_.run(rw);
      std::optional<Graph> next = rw.finish();
      take_misses(rw, next.has_value());
      if (!next) break;
      if (!is_region) record_.remap.then(graph, rw.remap());
      record_.run.stats.replaced += rw.stats().replaced;
      current = std::move(next);
      if (!pass_.repeat) break;
    }
    return current;
  }

 private:
  // The same graph, with the bodies of its nodes rewritten. Value ids stay.
  std::optional<Graph> run_regions(const Graph& graph) {
    std::unordered_map<size_t, Attrs> changed;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (!owns_region_(graph.nodes()[i])) continue;
      bool any = false;
      const Attrs attrs = graph.nodes()[i].attrs.map_graphs([&](const GraphPtr& body) {
        std::optional<Graph> next = run(*body, true);
        if (!next) return body;
        any = true;
        return GraphPtr(std::make_shared<const Graph>(std::move(*next)));
      });
      if (any) changed.emplace(i, attrs);
    }
    if (changed.empty()) return std::nullopt;
    Graph out = graph.empty_revision();
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      Node node = graph.nodes()[i];
      if (const auto it = changed.find(i); it != changed.end()) node.attrs = it->second;
      out.append(std::move(node));
    }
    out.set_outputs(graph.outputs());
    out.set_updates(graph.updates());
    return out;
  }

  // A repeated pass sees the same near-matches in every round: those of the last one count.
  void take_misses(const Rewriter& rw, bool changed) {
    if (changed && pass_.repeat) return;
    record_.misses.insert(record_.misses.end(), rw.misses().begin(), rw.misses().end());
  }

  const Pass& pass_;
  const PassContext& context_;
  PassRecord& record_;
  RegionOwners owns_region_;
};

// C2: what callers see of a graph is not a pass's to change.
void check_interface(const Graph& before, const Graph& after) {
  require(before.outputs().size() == after.outputs().size(), "The number of outputs changes from ",
          before.outputs().size(), " to ", after.outputs().size(), ".");
  for (size_t i = 0; i < before.outputs().size(); ++i) {
    const Output &was = before.outputs()[i], &is = after.outputs()[i];
    require(was.name == is.name && before.type(was.value) == after.type(is.value), "Output '", was.name, "' (",
            before.type(was.value), ") becomes '", is.name, "' (", after.type(is.value), ").");
  }
  require(before.updates().size() == after.updates().size(), "The number of state updates changes from ",
          before.updates().size(), " to ", after.updates().size(), ".");
  // Leaves keep their order; inputs and params may be missing, params of regions may appear.
  for (const OpDef* kind : {static_cast<const OpDef*>(&ops::input), static_cast<const OpDef*>(&ops::state)}) {
    const auto was = before.leaves(*kind), is = after.leaves(*kind);
    size_t next = 0;
    for (const Node* leaf : is) {
      const std::string& name = leaf->attrs.as<ops::LeafAttrs>().name;
      while (next < was.size() && was[next]->attrs.as<ops::LeafAttrs>().name != name) ++next;
      require(next < was.size(), "There is a new or moved ", kind->name, " '", name, "'.");
      require(was[next]->results[0].type == leaf->results[0].type, "Type of ", kind->name, " '", name,
              "' changes from ", was[next]->results[0].type, " to ", leaf->results[0].type, ".");
    }
  }
  require(before.leaves(ops::state).size() == after.leaves(ops::state).size(), "A state is missing.");
}

std::map<std::string_view, int64_t> count_ops(const Graph& graph) {
  std::map<std::string_view, int64_t> counts;
  for (const Node& node : graph.nodes()) ++counts[node.op->name];
  return counts;
}

}  // namespace

std::optional<Graph> run_pass(const Graph& graph, const Pass& pass, const PassContext& context, PassRecord& record) {
  record.run.pass = pass.name;
  record.run.stats.nodes_before = record.run.stats.nodes_after = static_cast<int64_t>(graph.nodes().size());
  const auto start = Clock::now();
  std::optional<Graph> after;
  try {
    after = Runner(pass, context, record).run(graph, false);
  } catch (Error& e) {
    e.add_context(str("running pass '", pass.name, "' on graph '", graph.name(), "'"));
    throw;
  }
  record.run.ms = ms_since(start);
  if (!after) return after;
  const auto checked = Clock::now();
  try {
    verify(*after);
    check_interface(graph, *after);
  } catch (const Error& e) {
    fail(ErrorKind::kInternal, str("Pass '", pass.name, "' breaks the graph. ", e.message()));
  }
  record.run.verify_ms = ms_since(checked);
  record.run.changed = true;
  record.run.stats.nodes_after = static_cast<int64_t>(after->nodes().size());
  return after;
}

OptimizeResult optimize(Graph graph, const PassContext& context) {
  OptimizeResult result{.graph = std::move(graph)};
  const std::vector<std::string>& skip = context.options.skip;
  for (const std::string& name : skip) require(find_pass(name) != nullptr, "There is no pass '", name, "' to skip.");
  const Graph user = result.graph;
  result.report.before = count_ops(user);
  const auto of = static_cast<double>(pipeline().size());
  for (const Pass& pass : pipeline()) {
    progress("compiling", static_cast<double>(&pass - pipeline().data()) / of);
    if (std::find(skip.begin(), skip.end(), pass.name) != skip.end()) continue;
    if (pass.wanted != nullptr && !pass.wanted(context)) continue;
    PassRecord record;
    if (std::optional<Graph> after = run_pass(result.graph, pass, context, record)) {
      result.remap.then(user, record.remap);
      result.graph = std::move(*after);
      if (context.dump) context.dump(pass.name, result.graph);
    }
    result.report.misses.insert(result.report.misses.end(), record.misses.begin(), record.misses.end());
    result.runs.push_back(record.run);
  }
  result.report.after = count_ops(result.graph);
  return result;
}

}  // namespace rlx::passes
