#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
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
  FeedArgs feed;
  bool params = false, ops = false, plan = false, schedule = false, graph_text = false, json = false;
};

constexpr size_t kFewParams = 12;  // more are listed on request only

// Counts of a graph and its regions.
struct Counts {
  int64_t nodes = 0, region_nodes = 0, constants = 0, constant_elements = 0, constant_bytes = 0;
  std::map<std::string, int64_t> ops;
};

void count(const Graph& graph, bool is_region, Counts& counts) {
  for (const Node& node : graph.nodes()) {
    ++(is_region ? counts.region_nodes : counts.nodes);
    ++counts.ops[std::string(node.op->name)];
    if (node.op == &ops::constant) {
      const Tensor& value = node.attrs.as<ops::ConstantAttrs>().value;
      ++counts.constants;
      counts.constant_elements += value.num_elements();
      counts.constant_bytes += static_cast<int64_t>(value.bytes().size());
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
std::string dim_text(const Dim& d) {  // as a part of a sum, product or quotient
  return d.is_static() || (d.scale() == 1 && d.offset() == 0) ? str(d) : str("(", d, ")");
}
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
    out[id].definition = str(dim_text(def.lhs), kSigns[static_cast<int>(def.kind)], dim_text(def.rhs));
  }
  std::vector<Symbol> list;
  for (auto& [id, symbol] : out) list.push_back(std::move(symbol));
  return list;
}

std::string symbols_text(const Graph& graph) {
  constexpr size_t kFewDefined = 8;  // a deep network has a size of its own in every layer
  std::vector<std::vector<std::string>> rows;
  size_t defined = 0;
  for (const Symbol& s : symbols_of(graph)) {
    if (s.name.empty() && !s.definition.empty() && ++defined > kFewDefined) continue;
    rows.push_back({str("?", s.id), s.name.empty() ? std::string("-") : s.name,
                    s.definition.empty() ? std::string() : "= " + s.definition});
  }
  if (defined > kFewDefined) rows.push_back({str("and ", defined - kFewDefined, " more that follow from these")});
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

// One graph of the model: the model itself, or a stage of it.
struct Part {
  const Graph* graph;
  Graph shown;  // with the sizes that are known
  std::optional<Executable> compiled;
  const Executable* executable = nullptr;  // where one was asked for
};

// Unlike a run, a plan has no inputs to take sizes from.
void require_sizes(const Graph& graph, const DimBinding& dims) {
  std::string unknown;
  const DimBinding sizes = graph.symbols().complete(dims);
  for (const uint32_t id : graph.dynamic_symbols())
    if (!sizes.find(id) && !graph.symbols().derived().contains(id))
      unknown += str(unknown.empty() ? "" : ", ", symbol_text(graph, id));
  require(unknown.empty(), "Symbols without a size (", unknown, ") leave no plan to show; give them with --dim.");
}

TensorType with_sizes(const TensorType& type, const DimBinding& sizes) { return {type.shape.bind(sizes), type.dtype}; }

Json model_ports_json(const std::vector<ModelPort>& ports, const DimBinding& sizes) {
  Json out = Json::array();
  for (const ModelPort& p : ports) {
    Json port = {{"name", p.name}};
    port.update(p.type ? type_json(with_sizes(*p.type, sizes)) : Json{{"shape", nullptr}, {"dtype", nullptr}});
    port["text"] = p.text;
    out.push_back(port);
  }
  return out;
}

std::string model_ports_text(const Graph& graph, std::string_view title, const std::vector<ModelPort>& ports,
                             const DimBinding& sizes) {
  std::vector<std::vector<std::string>> rows;
  for (const ModelPort& p : ports)
    rows.push_back({p.name, p.type ? type_text(graph, with_sizes(*p.type, sizes)) : p.text});
  return ports.empty() ? str(title, ": none\n") : str(title, ":\n", table_text(rows));
}

class Info {
 public:
  Info(const InfoArgs& args, ModelFile& model) : args_(args), model_(model) {}

  void run(std::string& out) {
    const Graph& face = model_.interface();
    const DimBinding sizes = face.symbols().complete(model_.options().dims);
    json_ = {{"model", model_.path()},
             {"graph", face.name()},
             {"inputs", model_ports_json(model_.inputs(), sizes)},
             {"outputs", model_ports_json(model_.outputs(), sizes)},
             {"symbols", symbols_json(face)},
             {"staged", model_.graph() == nullptr}};
    text_ = str("graph: ", face.name(), "\n", model_ports_text(face, "inputs", model_.inputs(), sizes),
                model_ports_text(face, "outputs", model_.outputs(), sizes), symbols_text(face));
    if (model_.graph() == nullptr) {
      json_["why_staged"] = model_.why_staged();
      text_ += str("stages: the graph depends on sizes or data of a run. ", model_.why_staged(), "\n");
    }
    find_parts();
    for (size_t i = 0; i < parts_.size(); ++i) {
      Json json;
      if (parts_.size() > 1) text_ += str("stage ", i + 1, " of ", parts_.size(), ":\n");
      add_part(parts_[i], json);
      if (model_.graph() != nullptr)
        json_.update(json);
      else
        json_["stages"].push_back(json);
    }
    if (!args_.page.empty()) write_page();
    out += args_.json ? dump(json_) : text_;
  }

 private:
  bool compiles() const { return args_.plan || args_.schedule; }
  bool wants_stages() const {
    return compiles() || args_.ops || args_.graph_text || !args_.page.empty() || !args_.feed.inputs.empty();
  }

  void find_parts() {
    if (const Graph* graph = model_.graph()) {
      const DimBinding& dims = model_.options().dims;
      parts_.push_back({graph, dims.empty() ? *graph : bind(*graph, dims)});
      if (!compiles()) return;
      require_sizes(*graph, dims);
      parts_[0].compiled = compile(*graph, model_.options());
      parts_[0].executable = &*parts_[0].compiled;
    } else if (wants_stages()) {  // only a run shows them
      session_.emplace(model_);
      session_->run({});
      for (const ModelStage& stage : session_->stages())
        parts_.push_back({&stage.executable->graph(), stage.executable->graph(), {}, stage.executable});
    } else {
      text_ += "--ops, --plan, --schedule, --graph and --input run it once, and show what it is compiled to\n";
    }
  }

  void add_part(Part& part, Json& json) {
    const Manifest m = manifest_of(part.shown);
    const std::string device(choose_backend(model_.options()).name);
    Counts counts;
    count(part.shown, false, counts);
    const Sizes params = sizes_of(m.params);
    const auto cost = cost_of_graph(part.shown);
    json = {{"params", ports_json(m.params)},
            {"states", ports_json(m.states)},
            {"nodes", counts.nodes},
            {"region_nodes", counts.region_nodes},
            {"ops", counts_json(counts)},
            {"param_elements", params.elements},
            {"param_bytes", params.bytes},
            {"params_of_unknown_size", params.unknown},
            {"constants", counts.constants},
            {"constant_elements", counts.constant_elements},
            {"constant_bytes", counts.constant_bytes},
            {"flops", cost ? Json(cost->flops) : Json()},
            {"traffic_bytes", cost ? Json(cost->bytes) : Json()}};
    text_ += str(ports_text(part.shown, "params", m.params, args_.params ? m.params.size() : kFewParams),
                 ports_text(part.shown, "states", m.states), "nodes: ", counts.nodes,
                 counts.region_nodes > 0 ? str(", and ", counts.region_nodes, " in regions") : std::string(), "\n");
    if (args_.ops) {
      Counts after;
      count(optimized(part.shown, model_.options()).graph, false, after);
      json["device"] = device;
      json["ops_after"] = counts_json(after);
      text_ += before_after_text(counts, after, device);
    } else {
      std::vector<std::vector<std::string>> ops;
      for (const auto& [name, n] : histogram(counts)) ops.push_back({name, str(n)});
      text_ += table_text(ops);
    }
    text_ +=
        str("param bytes: ", bytes_text(params.bytes), ", ", params.elements, " elements",
            params.unknown > 0 ? str(", and ", params.unknown, " params of unknown size") : std::string(),
            "\nconstant bytes: ", bytes_text(counts.constant_bytes), ", ", counts.constant_elements, " elements in ",
            counts.constants, counts.constants == 1 ? " constant" : " constants",
            "\nflops of a run: ", cost ? amount_text(cost->flops, "FLOP") : "unknown without all sizes (--dim)",
            cost ? str(", ", bytes_text(static_cast<int64_t>(cost->bytes)), " of operands and results") : "", "\n");
    if (compiles()) add_plan(*part.executable, json);
    if (args_.graph_text) {
      json["text"] = print(part.shown);
      text_ += print(part.shown);
    }
  }

  void add_plan(const Executable& executable, Json& json) {
    const PlanInfo plan = executable.plan();
    json["device"] = executable.device();
    json["plan"] = plan_json(plan);
    if (args_.plan) text_ += plan_text(plan, executable.device());
    if (!args_.schedule) return;
    json["passes"] = passes_json(executable.report());
    text_ += passes_text(executable.report()) + fusion_text(executable.report()) +
             dispatch_text(executable.report(), plan) + (args_.plan ? std::string() : schedule_text(plan));
  }

  void write_page() {
    const std::string device(choose_backend(model_.options()).name);
    std::vector<Graph> after;  // all of them before the views point at them
    for (const Part& part : parts_) after.push_back(optimized(part.shown, model_.options()).graph);
    std::vector<GraphView> views;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const std::string stage = parts_.size() > 1 ? str("stage ", i + 1, " ") : "";
      views.push_back({stage + "before passes", &parts_[i].shown});
      views.push_back({str(stage, "after passes for ", device), &after[i]});
    }
    const std::string page = graph_page(model_.path(), views);
    write_file(args_.page, {std::as_bytes(std::span(page))});
    json_["page"] = args_.page;
    text_ += str("graph before and after the passes: ", args_.page, "\n");
  }

  const InfoArgs& args_;
  ModelFile& model_;
  std::optional<Session> session_;
  std::vector<Part> parts_;
  Json json_;
  std::string text_;
};

int info(InfoArgs args, std::string& out) {
  if (args.feed.inputs.empty()) {
    ModelFile model(args.path, args.target, args.feed.dims);
    const bool runs = args.ops || args.plan || args.schedule || args.graph_text || !args.page.empty();
    if (model.graph() != nullptr || !runs) {
      Info(args, model).run(out);
      return 0;
    }
  }
  args.feed.random_inputs = args.feed.random_params = 0;
  ModelFile model(args.path, args.target, args.feed);
  Info(args, model).run(out);
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
  add_input_options(*sub, args->feed);
  add_target_options(*sub, args->target);
  sub->add_flag("--json", args->json, "write JSON");
  sub->footer(
      "A model whose shapes depend on data is run once to show its stages; inputs that are not given are random then.\n"
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
