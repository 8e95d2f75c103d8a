#include <algorithm>
#include <map>
#include <span>

#include "core/write_file.h"
#include "graph_page.h"
#include "ir/text.h"
#include "model_access.h"
#include "plan_text.h"
#include "rlx/ops/leaves.h"

namespace rlx::cli {

namespace {

struct InfoArgs {
  std::string path, page;
  TargetArgs target;
  std::vector<std::string> dims;
  bool params = false, ops = false, plan = false, schedule = false, graph_text = false, json = false;
};

constexpr size_t kFewParams = 12;  // more are listed on request only

// Counts of a graph and its regions.
struct Counts {
  int64_t nodes = 0, region_nodes = 0, constant_bytes = 0;
  std::map<std::string, int64_t> ops;
};

void count(const Graph& graph, bool is_region, Counts& counts) {
  for (const Node& node : graph.nodes()) {
    ++(is_region ? counts.region_nodes : counts.nodes);
    ++counts.ops[std::string(node.op->name)];
    if (node.op == &ops::constant)
      counts.constant_bytes += static_cast<int64_t>(node.attrs.as<ops::ConstantAttrs>().value.bytes().size());
    for (const GraphPtr& region : node.attrs.graphs()) count(*region, true, counts);
  }
}

// Descending count, then name.
std::vector<std::pair<std::string, int64_t>> histogram(const Counts& counts) {
  std::vector<std::pair<std::string, int64_t>> out(counts.ops.begin(), counts.ops.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

struct Sizes {
  int64_t bytes = 0, elements = 0;
  int64_t unknown = 0;  // ports whose size is a symbol
};
Sizes sizes_of(const std::vector<Port>& ports) {
  Sizes s;
  for (const Port& p : ports) {
    if (!p.type.shape.is_static()) {
      ++s.unknown;
      continue;
    }
    s.bytes = checked_add(s.bytes, p.type.size_bytes());
    s.elements = checked_add(s.elements, p.type.shape.num_elements());
  }
  return s;
}

std::string ports_text(const Graph& graph, std::string_view title, const std::vector<Port>& ports,
                       size_t most = std::string::npos) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < ports.size() && i < most; ++i)
    rows.push_back({ports[i].name, type_text(graph, ports[i].type)});
  if (ports.size() > most) rows.push_back({str("and ", ports.size() - most, " more, which --params lists")});
  return ports.empty() ? str(title, ": none\n") : str(title, ":\n", table_text(rows));
}

struct Symbol {
  uint32_t id;
  std::string name, definition;  // both may be empty
};
std::vector<Symbol> symbols_of(const Graph& graph) {
  static constexpr const char* kSigns[] = {" + ", " * ", " / "};
  std::map<uint32_t, Symbol> out;
  for (const uint32_t id : graph.dynamic_symbols()) out[id].id = id;
  for (const auto& [id, name] : graph.symbols().names()) {
    out[id].id = id;
    out[id].name = name;
  }
  for (const auto& [id, def] : graph.symbols().derived()) {
    out[id].id = id;
    out[id].definition = str(def.lhs, kSigns[static_cast<int>(def.kind)], def.rhs);
  }
  std::vector<Symbol> list;
  for (auto& [id, symbol] : out) list.push_back(std::move(symbol));
  return list;
}

std::string symbols_text(const Graph& graph) {
  std::vector<std::vector<std::string>> rows;
  for (const Symbol& s : symbols_of(graph))
    rows.push_back({str("?", s.id), s.name.empty() ? std::string("-") : s.name,
                    s.definition.empty() ? std::string() : "= " + s.definition});
  for (const DimConstraint& c : graph.symbols().constraints())
    rows.push_back({str(c.dim), "-", str("is 1 or ", c.one_or)});
  return rows.empty() ? std::string("symbols: none\n") : "symbols:\n" + table_text(rows);
}

Json symbols_json(const Graph& graph) {
  Json out = Json::array();
  for (const Symbol& s : symbols_of(graph))
    out.push_back({{"symbol", str("?", s.id)},
                   {"name", s.name.empty() ? Json() : Json(s.name)},
                   {"definition", s.definition.empty() ? Json() : Json(s.definition)}});
  return out;
}

// Unlike a run, a plan has no inputs to take sizes from.
Executable compiled(const Graph& graph, const CompileOptions& options) {
  std::string unknown;
  const DimBinding sizes = graph.symbols().complete(options.dims);
  for (const uint32_t id : graph.dynamic_symbols())
    if (!sizes.find(id) && !graph.symbols().derived().contains(id))
      unknown += str(unknown.empty() ? "" : ", ", symbol_text(graph, id));
  require(unknown.empty(), "Symbols without a size (", unknown, ") leave no plan to show; give them with --dim.");
  return compile(graph, options);
}

std::string amount_text(double amount, std::string_view unit) {
  static constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T"};
  size_t i = 0;
  for (; amount >= 1000 && i < 4; ++i) amount /= 1000;
  return str(number_text(amount), " ", kPrefixes[i], unit);
}

Json counts_json(const Counts& counts) {
  Json ops = Json::array();
  for (const auto& [name, n] : histogram(counts)) ops.push_back({{"op", name}, {"count", n}});
  return ops;
}

// Every op of either graph: how often it occurs before the passes and after them.
std::string before_after_text(const Counts& before, const Counts& after, const std::string& device) {
  Counts both = before;
  for (const auto& [name, n] : after.ops) both.ops.emplace(name, 0);
  const auto of = [](const Counts& counts, const std::string& name) {
    const auto it = counts.ops.find(name);
    return it == counts.ops.end() ? std::string("-") : str(it->second);
  };
  std::vector<std::vector<std::string>> rows = {{"op", "before", str("after the passes of ", device)}};
  for (const auto& [name, n] : histogram(both)) rows.push_back({name, of(before, name), of(after, name)});
  rows.push_back({"all", str(before.nodes + before.region_nodes), str(after.nodes + after.region_nodes)});
  return table_text(rows);
}

int info(const InfoArgs& args, std::string& out) {
  const ModelFile model(args.path);
  const Graph& graph = model.graph();
  const DimBinding dims = parse_dims(graph, args.dims);
  const CompileOptions options = compile_options(args.target, dims);
  const Graph shown = dims.empty() ? graph : bind(graph, dims);
  const Manifest m = manifest_of(shown);
  Counts counts, after_counts;
  count(shown, false, counts);
  const Sizes params = sizes_of(m.params);
  const auto cost = cost_of_graph(shown);
  std::optional<OptimizedGraph> after;
  if (args.ops || !args.page.empty()) {
    after = optimized(shown, options);
    count(after->graph, false, after_counts);
  }
  const std::string device(choose_backend(options.device).name);

  Json json;
  std::string text;
  if (args.json) {
    json = {{"graph", graph.name()},
            {"inputs", ports_json(m.inputs)},
            {"outputs", ports_json(m.outputs)},
            {"params", ports_json(m.params)},
            {"states", ports_json(m.states)},
            {"symbols", symbols_json(graph)},
            {"nodes", counts.nodes},
            {"region_nodes", counts.region_nodes},
            {"ops", counts_json(counts)},
            {"param_elements", params.elements},
            {"param_bytes", params.bytes},
            {"params_of_unknown_size", params.unknown},
            {"constant_bytes", counts.constant_bytes},
            {"flops", cost ? Json(cost->flops) : Json()},
            {"traffic_bytes", cost ? Json(cost->bytes) : Json()}};
    if (args.ops) {
      json["device"] = device;
      json["ops_after"] = counts_json(after_counts);
    }
  } else {
    std::vector<std::vector<std::string>> ops;
    for (const auto& [name, n] : histogram(counts)) ops.push_back({name, str(n)});
    text = str("graph: ", graph.name(), "\n", ports_text(shown, "inputs", m.inputs),
               ports_text(shown, "outputs", m.outputs),
               ports_text(shown, "params", m.params, args.params ? m.params.size() : kFewParams),
               ports_text(shown, "states", m.states), symbols_text(graph), "nodes: ", counts.nodes,
               counts.region_nodes > 0 ? str(", and ", counts.region_nodes, " in regions") : std::string(), "\n",
               args.ops ? before_after_text(counts, after_counts, device) : table_text(ops),
               "param bytes: ", bytes_text(params.bytes),
               params.unknown > 0 ? str(", and ", params.unknown, " params of unknown size") : std::string(),
               "\nparam elements: ", params.elements, "\nconstant bytes: ", bytes_text(counts.constant_bytes),
               "\nflops of a run: ", cost ? amount_text(cost->flops, "FLOP") : "unknown without all sizes (--dim)",
               cost ? str(", ", bytes_text(static_cast<int64_t>(cost->bytes)), " of operands and results") : "", "\n");
  }
  if (args.plan || args.schedule) {
    const Executable executable = compiled(graph, options);
    const PlanInfo plan = executable.plan();
    json["device"] = executable.device();
    if (args.plan || args.json) json["plan"] = plan_json(plan);
    if (args.plan) text += plan_text(plan, executable.device());
    if (args.schedule) {
      json["passes"] = passes_json(executable.report());
      text += passes_text(executable.report()) + fusion_text(executable.report()) +
              dispatch_text(executable.report(), plan) + (args.plan ? std::string() : schedule_text(plan));
    }
  }
  if (args.graph_text) {
    json["text"] = print(shown);
    text += print(shown);
  }
  if (!args.page.empty()) {
    const std::string page =
        graph_page(args.path, {{"before passes", &shown}, {str("after passes for ", device), &after->graph}});
    write_file(args.page, {std::as_bytes(std::span(page))});
    json["page"] = args.page;
    text += str("graph before and after the passes: ", args.page, "\n");
  }
  out += args.json ? dump(json) : text;
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("info", "show a model's interface, ops, sizes, memory plan and graph");
  auto args = std::make_shared<InfoArgs>();
  add_model_option(*sub, args->path);
  sub->add_flag("--params", args->params, str("list all params, not the first ", kFewParams, " only"));
  sub->add_flag("--ops", args->ops, "count the ops before the passes and after them");
  sub->add_flag("--plan", args->plan, "compile, and show the memory plan and the schedule");
  sub->add_flag("--schedule", args->schedule, "compile, and show which kernel runs each step, and what the passes did");
  add_value(*sub, "--graph", args->page, "FILE.html",
            "write a page that shows the graph before and after the passes; any browser opens it, no network needed");
  sub->add_flag("--graph-text", args->graph_text, "print the graph in its text form");
  add_dim_option(*sub, args->dims);
  add_target_options(*sub, args->target);
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer(
      "Sizes given with --dim take the place of their symbols in what is shown. KB, MB and GB are powers of 1024. "
      "flops\n"
      "count a multiply-add as two, and one per element of cheap ops; RLX_FUSION_REPORT=1 says what was not fused and "
      "why.\n"
      "\n"
      "Examples:\n"
      "  rlx info examples/mlp.rlx --ops\n"
      "  rlx info examples/mlp.rlx --plan --dim batch=4\n"
      "  rlx info examples/mlp.rlx --graph mlp.html\n"
      "  rlx info examples/mlp.rlx --graph-text --dim ?0=4");
  sub->callback([&work, args] { work = [args](std::string& out) { return info(*args, out); }; });
}

}  // namespace rlx::cli
