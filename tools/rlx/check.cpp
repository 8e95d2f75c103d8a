// Compares every backend with the plain evaluator, node by node.
//
// Keeping every value makes each one an output, so that the first wrong node can be named; but it also takes from the
// memory plan what could go wrong with it (nothing is reused) and from backends their fusions. So the graph also runs
// as it is, planned in several ways, and its outputs and new states are compared; and the graph that the passes make of
// it is checked like a graph of its own, so that a wrong fused node has a name too.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "backends/reference/evaluate.h"
#include "compare.h"
#include "model_access.h"
#include "passes/pipeline.h"
#include "rlx/log.h"
#include "rlx/ops/leaves.h"

namespace rlx::cli {

namespace {

struct CheckArgs {
  std::string path;
  TargetArgs target;
  FeedArgs feed;
  uint64_t seed = 0;
  size_t worst = 5;  // nodes to list
  bool json = false;
};

// A value of the graph, and what the evaluator says it is.
struct Expected {
  std::string node, origin, op;
  Tensor value;
};

struct Finding {
  std::string node, origin, op;
  TensorType type;
  Difference diff;
};

// One way of running the graph.
struct Way {
  std::string name;
  bool keep_all = false;
  void (*apply)(CompileOptions&) = nullptr;
};
const Way kWays[] = {
    {"every value kept", true, [](CompileOptions&) {}},
    {"planned", false, [](CompileOptions& o) { o.verify_plan = true; }},
    {"no_reuse", false, [](CompileOptions& o) { o.no_reuse = true; }},
    {"poison", false, [](CompileOptions& o) { o.poison = true; }},
    {"schedule=source", false, [](CompileOptions& o) { o.schedule = ScheduleOrder::kSource; }},
};
// Of the graph that the passes have made.
const Way kAfterPasses = {"after the passes, every value kept", true, [](CompileOptions& o) {
                            for (const passes::Pass& pass : passes::pipeline()) o.skip_passes.emplace_back(pass.name);
                          }};

struct Outcome {
  std::string device, way;
  std::vector<Finding> findings;  // one per value, in topological order
  std::string error;              // it could not be run

  const Finding* worst() const {
    const auto it = std::max_element(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
      return a.diff.max_rel < b.diff.max_rel;
    });
    return it == findings.end() ? nullptr : &*it;
  }
  const Finding* first_wrong() const {
    const auto it = std::find_if(findings.begin(), findings.end(), [](const Finding& f) { return !f.diff.ok(); });
    return it == findings.end() ? nullptr : &*it;
  }
  bool ok() const { return error.empty() && first_wrong() == nullptr; }
};

void judge(const Expected& expected, const Tensor& actual, Outcome& outcome) {
  outcome.findings.push_back(
      {expected.node, expected.origin, expected.op, expected.value.type(), compare(actual, expected.value)});
}

class Checker {
 public:
  Checker(Graph graph, const Feed& feed, const TargetArgs& target)
      : graph_(std::move(graph)), feed_(feed), target_(target) {
    for (const Node& node : graph_.nodes())
      if (!node.op->traits.leaf)
        for (const Result& r : node.results) kept_.push_back(r.id);
    evaluate();
  }

  const Graph& graph() const { return graph_; }

  Outcome run(const std::string& device, const Way& way) const {
    Outcome outcome{.device = device, .way = way.name};
    progress(str("checking ", device, ", ", way.name), -1);
    try {
      Executable executable = compile(way.keep_all ? keeping(kept_) : graph_, options_for(device, way));
      for (const Port& p : executable.params()) executable.set_param(p.name, feed_.params.at(p.name));
      NamedTensors inputs;
      for (const Port& p : executable.inputs()) inputs[p.name] = feed_.inputs.at(p.name);
      const NamedTensors results = executable.run(inputs);
      if (way.keep_all) {
        for (const ValueId id : kept_) judge(expected_.at(id), results.at(output_name(id)), outcome);
      } else {
        compare_outputs(executable, results, outcome);
      }
    } catch (const Error& e) {
      outcome.error = e.what();
    }
    return outcome;
  }

  CompileOptions options_for(const std::string& device, const Way& way) const {
    CompileOptions options = CompileOptions::from_environment();
    options.device = target_.device.starts_with(device + ":") ? target_.device : device;  // with its adapter
    if (target_.threads > 0) options.threads = target_.threads;
    options.dims = feed_.dims;
    way.apply(options);
    return options;
  }

  // Are the outputs and new states of `other`, which passes have made of this graph, the same? Both as the evaluator
  // sees them.
  Outcome compare_with(const Checker& other, const std::string& device) const {
    Outcome outcome{.device = device, .way = "the passes alone, on the evaluator"};
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      judge(expected_.at(graph_.outputs()[i].value), other.expected_.at(other.graph_.outputs()[i].value).value,
            outcome);
    for (size_t i = 0; i < graph_.updates().size(); ++i)
      judge(expected_.at(graph_.updates()[i].value), other.expected_.at(other.graph_.updates()[i].value).value,
            outcome);
    return outcome;
  }

 private:
  static std::string output_name(ValueId id) { return str("v", id); }

  Graph keeping(const std::vector<ValueId>& ids) const {
    Graph out = graph_;
    std::vector<Output> outputs;
    for (const ValueId id : ids) outputs.push_back({output_name(id), id});
    out.set_outputs(std::move(outputs));
    return out;
  }

  // Every value, and the leaves that are outputs or new states.
  void evaluate() {
    progress("evaluating", -1);
    std::vector<ValueId> ids = kept_;
    for (const Output& o : graph_.outputs()) ids.push_back(o.value);
    for (const StateUpdate& u : graph_.updates()) ids.push_back(u.value);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const Graph bound = bind(keeping(ids), feed_.dims);
    std::vector<Tensor> inputs;
    NamedTensors states;
    for (const Node* node : bound.leaves(ops::input))
      inputs.push_back(feed_.inputs.at(node->attrs.as<ops::LeafAttrs>().name));
    for (const Node* node : bound.leaves(ops::state)) {
      const TensorType& type = node->results[0].type;
      states[node->attrs.as<ops::LeafAttrs>().name] = Tensor(type.dtype, type.shape.sizes());
    }
    std::vector<Tensor> values = reference::evaluate(bound, inputs, feed_.params, states);
    for (size_t i = 0; i < ids.size(); ++i) {
      const Node& node = graph_.node_of(ids[i]);
      expected_[ids[i]] = {graph_.label(ids[i]), node.origin, std::string(node.op->name), std::move(values[i])};
    }
  }

  // In topological order, so that the first wrong one is the earliest.
  void compare_outputs(const Executable& executable, const NamedTensors& results, Outcome& outcome) const {
    std::vector<std::pair<ValueId, Tensor>> actual;
    for (const Output& o : graph_.outputs()) actual.emplace_back(o.value, results.at(o.name));
    for (const StateUpdate& u : graph_.updates())
      actual.emplace_back(u.value, executable.read_state(graph_.node_of(u.state).attrs.as<ops::LeafAttrs>().name));
    std::stable_sort(actual.begin(), actual.end(), [&](const auto& a, const auto& b) {
      return graph_.place(a.first).node < graph_.place(b.first).node;
    });
    for (const auto& [id, tensor] : actual) judge(expected_.at(id), tensor, outcome);
  }

  Graph graph_;
  const Feed& feed_;
  TargetArgs target_;
  std::vector<ValueId> kept_;  // what is computed, in topological order
  std::unordered_map<ValueId, Expected> expected_;
};

// The graph after a device's passes, node by node, and whether the passes have kept its meaning.
void check_passes(const Checker& whole, const Feed& feed, const CheckArgs& args, const Backend& backend,
                  std::vector<Outcome>& outcomes) {
  if (backend.claims == nullptr) return;  // it has none
  const std::string device(backend.name);
  try {
    const CompileOptions options = with_device(whole.options_for(device, kWays[0]));
    const Checker after(optimize_for(backend, whole.graph(), options).graph, feed, args.target);
    outcomes.push_back(whole.compare_with(after, device));
    outcomes.push_back(after.run(device, kAfterPasses));
  } catch (const Error& e) {
    outcomes.push_back({.device = device, .way = kAfterPasses.name, .error = e.what()});
  }
}

std::string finding_text(const Finding& f) {
  return str(f.node, " (", f.op, ", ", f.type, f.origin.empty() ? "" : ", from '", f.origin,
             f.origin.empty() ? "), max abs " : "'), max abs ", number_text(f.diff.max_abs), ", max rel ",
             number_text(f.diff.max_rel));
}

Json finding_json(const Finding* f) {
  if (f == nullptr) return {};
  Json out = {{"node", f->node}, {"origin", f->origin}, {"op", f->op}};
  out.update(type_json(f->type));
  out["max_abs"] = f->diff.max_abs;  // infinity: null
  out["max_rel"] = f->diff.max_rel;
  out["limit"] = f->diff.limit;
  return out;
}

// The worst nodes, worst first; those that are equal are not listed.
std::string worst_text(const Outcome& o, size_t most) {
  std::vector<const Finding*> list;
  for (const Finding& f : o.findings)
    if (f.diff.max_abs != 0) list.push_back(&f);
  std::stable_sort(list.begin(), list.end(),
                   [](const Finding* a, const Finding* b) { return a->diff.max_rel > b->diff.max_rel; });
  if (list.size() > most) list.resize(most);
  if (list.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"worst nodes", "op", "result", "max abs", "max rel", "limit", "from"}};
  for (const Finding* f : list)
    rows.push_back({f->node, f->op, str(f->type), number_text(f->diff.max_abs), number_text(f->diff.max_rel),
                    str(number_text(f->diff.limit), f->diff.ok() ? "" : "  WRONG"), f->origin});
  return table_text(rows, 4);
}

std::string outcome_text(const Outcome& o, size_t most) {
  std::string out = str(o.device, ", ", o.way, ": ");
  if (!o.error.empty()) return out + str("FAILED, ", o.error, "\n");
  const size_t values = o.findings.size();
  out += str(o.ok() ? "ok, " : "FAILED, ", values, values == 1 ? " value" : " values");
  if (const Finding* worst = o.worst())
    out += worst->diff.max_abs == 0 ? std::string(", all equal") : ", worst " + finding_text(*worst);
  if (const Finding* wrong = o.first_wrong())
    out += str("\n  first wrong: ", finding_text(*wrong), ", limit ", number_text(wrong->diff.limit));
  out += "\n";
  const bool is_per_node = o.way == kWays[0].name || o.way == kAfterPasses.name;
  return is_per_node && values > 1 ? out + worst_text(o, most) : out;
}

Json outcome_json(const Outcome& o) {
  Json nodes = Json::array();
  for (const Finding& f : o.findings) nodes.push_back(finding_json(&f));
  return {{"device", o.device},
          {"way", o.way},
          {"ok", o.ok()},
          {"values", o.findings.size()},
          {"worst", finding_json(o.worst())},
          {"first_wrong", finding_json(o.first_wrong())},
          {"error", o.error.empty() ? Json() : Json(o.error)},
          {"nodes", nodes}};
}

// A graph with what it runs on: the model, or one stage of it.
std::vector<Outcome> check_graph(const Graph& graph, const Feed& feed, const CheckArgs& args) {
  verify(graph);
  const Checker checker(graph, feed, args.target);
  const std::string& device = args.target.device;
  const Backend* only = device == "auto" ? nullptr : &choose_backend({.device = device});
  const WebGpuOptions machine = CompileOptions::from_environment().webgpu;
  std::vector<Outcome> outcomes;
  for (const Backend& backend : backends()) {
    if (only != nullptr ? &backend != only : backend.unavailable(machine).has_value()) continue;
    for (const Way& way : kWays) outcomes.push_back(checker.run(std::string(backend.name), way));
    check_passes(checker, feed, args, backend, outcomes);
  }
  return outcomes;
}

int check(CheckArgs args, std::string& out) {
  args.feed.random_inputs = args.feed.random_params = args.seed;
  if (args.target.device.empty()) args.target.device = CompileOptions::from_environment().device;
  ModelFile model(args.path, args.target, args.feed);
  std::vector<std::vector<Outcome>> stages;
  if (model.graph() != nullptr) {
    stages.push_back(check_graph(*model.graph(), model.feed(), args));
  } else {
    Session session(model);
    session.run({});
    for (const ModelStage& stage : session.stages())
      stages.push_back(check_graph(stage.executable->graph(), {.inputs = stage.inputs}, args));
  }

  size_t failed = 0, ways = 0;
  Json list = Json::array();
  std::string text;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (stages.size() > 1) text += str("stage ", s + 1, " of ", stages.size(), ":\n");
    for (const Outcome& o : stages[s]) {
      ++ways;
      failed += o.ok() ? 0 : 1;
      text += outcome_text(o, args.worst);
      if (!args.json) continue;
      list.push_back(outcome_json(o));
      list.back()["stage"] = s;
    }
  }
  text += failed == 0 ? str("ok: ", ways, " ways agree with the plain evaluator\n")
                      : str("FAILED: ", failed, " of ", ways, " ways differ from the plain evaluator\n");
  out += args.json ? dump({{"model", args.path}, {"seed", args.seed}, {"ok", failed == 0}, {"checks", list}}) : text;
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("check", "compare every backend with the plain evaluator, node by node");
  auto args = std::make_shared<CheckArgs>();
  add_model_option(*sub, args->path);
  add_feed_options(*sub, args->feed);
  sub->add_option("--seed", args->seed, "of the inputs and params that are not given; by default 0")->option_text("N");
  sub->add_option("--worst", args->worst, "how many of the worst nodes to list; by default 5")->option_text("N");
  add_target_options(*sub, args->target);
  sub->get_option("--device")
      ->description(
          "the only device to check: webgpu, webgpu:ADAPTER (index, part of its name or type), cpu or reference; by "
          "default all");
  sub->add_flag("--json", args->json, "write JSON, every node of every way; an infinite difference is null");
  sub->footer(
      "Each available device (or the one that --device or RLX_DEVICE names) runs the model with every value kept, as\n"
      "planned, without reuse of memory, with poisoned memory and in source order; then the graph that its passes "
      "make\n"
      "is compared with the original and run with every value kept. States start at zero. A value is wrong when it\n"
      "differs by more than 1e-4 of the largest (f16: 2^-9, bf16: 2^-6); integers must be equal. The first wrong node\n"
      "is named and the exit code is 1.\n"
      "\n"
      "Examples:\n"
      "  rlx check examples/mlp.rlx --dim batch=4\n"
      "  rlx check examples/mlp.rlx --input x=x.npy --params weights.npz --json");
  sub->callback([&work, args] { work = [args](std::string& out) { return check(*args, out); }; });
}

}  // namespace rlx::cli
