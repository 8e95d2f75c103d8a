#include <algorithm>
#include <map>

#include "common.h"
#include "ir/text.h"
#include "plan_text.h"
#include "rlx/ops/leaves.h"
#include "runtime/device_program.h"

namespace rlx::cli {

namespace {

struct InfoArgs {
  std::string path, device;
  std::vector<std::string> dims;
  bool plan = false, schedule = false, graph_text = false, json = false;
};

// Counts of a graph and its regions.
struct Counts {
  int64_t nodes = 0, region_nodes = 0, constants = 0, constant_bytes = 0;
  std::map<std::string, int64_t> ops;
};

void count(const Graph& graph, bool is_region, Counts& counts) {
  for (const Node& node : graph.nodes()) {
    ++(is_region ? counts.region_nodes : counts.nodes);
    ++counts.ops[std::string(node.op->name)];
    if (node.op == &ops::constant) {
      ++counts.constants;
      counts.constant_bytes += static_cast<int64_t>(node.attrs.as<ops::ConstantAttrs>().value.bytes().size());
    }
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
  int64_t bytes = 0;
  int64_t unknown = 0;  // ports whose size is a symbol
};
Sizes sizes_of(const std::vector<Port>& ports) {
  Sizes s;
  for (const Port& p : ports) {
    if (p.type.shape.is_static())
      s.bytes = checked_add(s.bytes, p.type.size_bytes());
    else
      ++s.unknown;
  }
  return s;
}

std::string ports_text(std::string_view title, const std::vector<Port>& ports) {
  std::vector<std::vector<std::string>> rows;
  for (const Port& p : ports) rows.push_back({p.name, str(p.type)});
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

Executable compiled(const Graph& graph, const InfoArgs& args, const DimBinding& dims) {
  CompileOptions options = CompileOptions::from_environment();
  if (!args.device.empty()) options.device = args.device;
  options.dims = dims;
  std::string unknown;
  const DimBinding sizes = graph.symbols().complete(dims);
  for (const uint32_t id : graph.dynamic_symbols())
    if (!sizes.find(id) && !graph.symbols().derived().contains(id))
      unknown += str(unknown.empty() ? "" : ", ", symbol_text(graph, id));
  require(unknown.empty(), "Symbols without a size (", unknown, ") leave no plan to show; give them with --dim.");
  return compile(graph, options);
}

int info(const InfoArgs& args, std::string& out) {
  const Graph graph = load(args.path);
  const DimBinding dims = parse_dims(graph, args.dims);
  const Graph shown = dims.empty() ? graph : bind(graph, dims);
  const Manifest m = manifest_of(shown);
  Counts counts;
  count(shown, false, counts);
  const Sizes params = sizes_of(m.params);

  Json json;
  std::string text;
  if (args.json) {
    Json ops = Json::array();
    for (const auto& [name, n] : histogram(counts)) ops.push_back({{"op", name}, {"count", n}});
    json = {{"graph", graph.name()},
            {"inputs", ports_json(m.inputs)},
            {"outputs", ports_json(m.outputs)},
            {"params", ports_json(m.params)},
            {"states", ports_json(m.states)},
            {"symbols", symbols_json(graph)},
            {"nodes", counts.nodes},
            {"region_nodes", counts.region_nodes},
            {"ops", ops},
            {"param_bytes", params.bytes},
            {"params_of_unknown_size", params.unknown},
            {"constant_bytes", counts.constant_bytes}};
  } else {
    std::vector<std::vector<std::string>> ops;
    for (const auto& [name, n] : histogram(counts)) ops.push_back({name, str(n)});
    text = str("graph: ", graph.name(), "\n", ports_text("inputs", m.inputs), ports_text("outputs", m.outputs),
               ports_text("params", m.params), ports_text("states", m.states), symbols_text(graph),
               "nodes: ", counts.nodes,
               counts.region_nodes > 0 ? str(", and ", counts.region_nodes, " in regions") : std::string(), "\n",
               table_text(ops), "param bytes: ", bytes_text(params.bytes),
               params.unknown > 0 ? str(", and ", params.unknown, " params of unknown size") : std::string(),
               "\nconstant bytes: ", bytes_text(counts.constant_bytes), "\n");
  }
  if (args.plan || args.schedule) {
    const Executable executable = compiled(graph, args, dims);
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
  out += args.json ? dump(json) : text;
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("info", "show a graph's interface, ops, sizes and memory plan");
  auto args = std::make_shared<InfoArgs>();
  add_graph_option(*sub, args->path);
  sub->add_flag("--schedule", args->schedule, "compile, and show which kernel runs each step, and what the passes did");
  sub->add_flag("--plan", args->plan, "compile, and show the memory plan and the schedule");
  sub->add_flag("--graph-text", args->graph_text, "print the graph in its text form");
  add_dim_option(*sub, args->dims);
  add_value(*sub, "--device", args->device, "NAME", "what to compile for; by default the best device");
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer(
      "Sizes given with --dim take the place of their symbols in what is shown. KB, MB and GB are powers of 1024.\n"
      "\n"
      "Examples:\n"
      "  rlx info examples/mlp.rlx\n"
      "  rlx info examples/mlp.rlx --plan --dim batch=4\n"
      "  rlx info examples/mlp.rlx --graph-text --dim ?0=4");
  sub->callback([&work, args] { work = [args](std::string& out) { return info(*args, out); }; });
}

}  // namespace rlx::cli
