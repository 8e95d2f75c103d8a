// Compares every backend with the plain evaluator, node by node.
//
// Keeping every value makes each one an output, so that the first wrong node can be named; but it also takes from the
// memory plan what could go wrong with it (nothing is reused) and from backends their fusions. So the graph also runs
// as it is, planned in several ways, and its outputs and new states are compared.
#include <algorithm>
#include <unordered_map>

#include "backends/reference/evaluate.h"
#include "common.h"
#include "compare.h"
#include "feed.h"
#include "rlx/ops/leaves.h"
#include "runtime/device_program.h"

namespace rlx::cli {

namespace {

struct CheckArgs {
  std::string path;
  FeedArgs feed;
  uint64_t seed = 0;
  bool json = false;
};

// A value of the graph, and what the evaluator says it is.
struct Expected {
  ValueId id;
  std::string node, op;
  Tensor value;
};

struct Finding {
  std::string node, op;
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

struct Outcome {
  std::string device, way;
  int64_t values = 0;
  std::optional<Finding> worst, first_wrong;
  std::string error;  // it could not be run
  bool ok() const { return error.empty() && !first_wrong; }
};

void judge(const Expected& expected, const Tensor& actual, Outcome& outcome) {
  const Finding f{expected.node, expected.op, expected.value.type(), compare(actual, expected.value)};
  ++outcome.values;
  if (!outcome.worst || f.diff.max_rel > outcome.worst->diff.max_rel) outcome.worst = f;
  if (!f.diff.ok() && !outcome.first_wrong) outcome.first_wrong = f;
}

class Checker {
 public:
  Checker(Graph graph, Feed feed) : graph_(std::move(graph)), feed_(std::move(feed)) {
    for (const Node& node : graph_.nodes())
      if (!node.op->traits.leaf)
        for (const Result& r : node.results) kept_.push_back(r.id);
    evaluate();
  }

  Outcome run(const std::string& device, const Way& way) const {
    Outcome outcome{.device = device, .way = way.name};
    try {
      CompileOptions options;  // not the environment's: each way says what it is
      options.device = device;
      options.dims = feed_.dims;
      way.apply(options);
      Executable executable = compile(way.keep_all ? keeping(kept_) : graph_, options);
      for (const auto& [name, tensor] : feed_.params) executable.set_param(name, tensor);
      const NamedTensors results = executable.run(feed_.inputs);
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
    for (size_t i = 0; i < ids.size(); ++i)
      expected_[ids[i]] = {ids[i], graph_.label(ids[i]), std::string(graph_.node_of(ids[i]).op->name),
                           std::move(values[i])};
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
  Feed feed_;
  std::vector<ValueId> kept_;  // what is computed, in topological order
  std::unordered_map<ValueId, Expected> expected_;
};

std::string finding_text(const Finding& f) {
  return str(f.node, " (", f.op, ", ", f.type, "), max abs ", number_text(f.diff.max_abs), ", max rel ",
             number_text(f.diff.max_rel));
}

Json finding_json(const std::optional<Finding>& f) {
  if (!f) return {};
  Json out = {{"node", f->node}, {"op", f->op}};
  out.update(type_json(f->type));
  out["max_abs"] = f->diff.max_abs;  // infinity: null
  out["max_rel"] = f->diff.max_rel;
  out["limit"] = f->diff.limit;
  return out;
}

std::string outcome_text(const Outcome& o) {
  std::string out = str(o.device, ", ", o.way, ": ");
  if (!o.error.empty()) return out + str("FAILED, ", o.error, "\n");
  out += str(o.ok() ? "ok, " : "FAILED, ", o.values, o.values == 1 ? " value" : " values");
  if (o.worst) out += o.worst->diff.max_abs == 0 ? std::string(", all equal") : ", worst " + finding_text(*o.worst);
  if (o.first_wrong)
    out += str("\n  first wrong: ", finding_text(*o.first_wrong), ", limit ", number_text(o.first_wrong->diff.limit));
  return out + "\n";
}

int check(CheckArgs args, std::string& out) {
  args.feed.random_inputs = args.feed.random_params = args.seed;
  Graph graph = load(args.path);
  verify(graph);
  Feed feed = make_feed(graph, args.feed);
  const Checker checker(std::move(graph), std::move(feed));

  std::vector<Outcome> outcomes;
  for (const DeviceInfo& d : devices())
    if (d.available)
      for (const Way& way : kWays) outcomes.push_back(checker.run(d.name, way));

  int64_t failed = 0;
  Json list = Json::array();
  std::string text;
  for (const Outcome& o : outcomes) {
    failed += o.ok() ? 0 : 1;
    text += outcome_text(o);
    list.push_back({{"device", o.device},
                    {"way", o.way},
                    {"ok", o.ok()},
                    {"values", o.values},
                    {"worst", finding_json(o.worst)},
                    {"first_wrong", finding_json(o.first_wrong)},
                    {"error", o.error.empty() ? Json() : Json(o.error)}});
  }
  text += failed == 0 ? str("ok: ", outcomes.size(), " ways agree with the plain evaluator\n")
                      : str("FAILED: ", failed, " of ", outcomes.size(), " ways differ from the plain evaluator\n");
  out += args.json ? dump({{"graph", args.path}, {"seed", args.seed}, {"ok", failed == 0}, {"checks", list}}) : text;
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("check", "compare every backend with the plain evaluator, node by node");
  auto args = std::make_shared<CheckArgs>();
  add_graph_option(*sub, args->path);
  add_feed_options(*sub, args->feed);
  sub->add_option("--seed", args->seed, "of the inputs and params that are not given; by default 0")->option_text("N");
  sub->add_flag("--json", args->json, "write JSON; an infinite difference is null");
  sub->footer(
      "Each available device runs the graph with every value kept, as planned, without reuse of memory, with poisoned\n"
      "memory and in source order; states start at zero. A value is wrong when it differs by more than 1e-4 of the\n"
      "largest (f16: 2^-9, bf16: 2^-6); integers must be equal. The first wrong node is named and the exit code is 1.\n"
      "\n"
      "Examples:\n"
      "  rlx check examples/mlp.rlx --dim batch=4\n"
      "  rlx check examples/mlp.rlx --input x=x.npy --params weights.npz --json");
  sub->callback([&work, args] { work = [args](std::string& out) { return check(*args, out); }; });
}

}  // namespace rlx::cli
