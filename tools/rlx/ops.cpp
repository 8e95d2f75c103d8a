#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include <map>
#include "backends/reference/table.h"
#include "backends/webgpu/backend.h"

#include "common.h"
#include "import/onnx/node.h"
#include "ir/text.h"

namespace rlx::cli {

namespace {

struct OpsArgs {
  bool markdown = false, json = false;
  bool onnx = false;
};

// As the specification orders them (10, 4); a category it does not know comes last.
constexpr std::string_view kCategories[] = {"Leaves",
                                            "Elementwise",
                                            "Regions",
                                            "Linear algebra",
                                            "Normalisation",
                                            "Attention",
                                            "Shape",
                                            "Gather and scatter",
                                            "Reductions",
                                            "Sampling",
                                            "Convolution",
                                            "Quantised",
                                            "Sequence state",
                                            "FFT",
                                            "Audio",
                                            "Backward",
                                            "Fused",
                                            "Control flow",
                                            "Gaussian splatting",
                                            "Custom"};

enum class Oracle { kLeaf, kKernel, kDecomposition, kNone };
constexpr std::string_view kOracleNames[] = {"leaf", "kernel", "decomposition", "none"};

Oracle oracle_of(const OpDef& op) {
  if (op.traits.leaf) return Oracle::kLeaf;  // given or stored: there is nothing to compute
  if (reference::find_kernel(op) != nullptr) return Oracle::kKernel;
  return op.decompose != nullptr ? Oracle::kDecomposition : Oracle::kNone;
}
std::string_view oracle_name(const OpDef& op) { return kOracleNames[static_cast<size_t>(oracle_of(op))]; }

struct Attribute {
  std::string name, value;              // the default, as the text form prints it
  std::vector<std::string_view> names;  // of an enum
};
std::vector<Attribute> attributes_of(const OpDef& op) {
  const std::shared_ptr<void> defaults = op.attrs->make();
  std::vector<Field> fields;
  op.attrs->fields(defaults.get(), fields);
  std::vector<Attribute> out;
  for (const Field& f : fields) {
    Attribute a{std::string(f.name), print_field(f.ref), {}};
    if (const auto* e = std::get_if<EnumField>(&f.ref)) a.names.assign(e->names.begin(), e->names.end());
    out.push_back(std::move(a));
  }
  return out;
}

std::string operands_text(const OpDef& op) {
  if (op.min_inputs == op.max_inputs) return str(op.min_inputs);
  if (op.max_inputs == kVariadic) return str(op.min_inputs, " or more");
  return str(op.min_inputs, op.max_inputs == op.min_inputs + 1 ? " or " : " to ", op.max_inputs);
}

std::vector<std::pair<std::string_view, std::vector<const OpDef*>>> by_category() {
  std::vector<std::pair<std::string_view, std::vector<const OpDef*>>> out;
  for (const std::string_view c : kCategories) out.push_back({c, {}});
  for (const OpDef* op : all_ops()) {
    auto it = std::find_if(out.begin(), out.end(), [&](const auto& c) { return c.first == op->category; });
    if (it == out.end()) it = out.insert(out.end(), {op->category, {}});
    it->second.push_back(op);
  }
  std::erase_if(out, [](const auto& c) { return c.second.empty(); });
  return out;
}

struct Coverage {
  int64_t counts[4] = {};  // by Oracle
  std::string missing;

  int64_t total() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
  double percent() const {
    // 100 only when nothing is missing: one op of many is not to be rounded away.
    const int64_t missed = counts[static_cast<size_t>(Oracle::kNone)];
    const int64_t tenths = total() == 0 ? 1000 : 1000 * (total() - missed) / total();
    return static_cast<double>(tenths) / 10;
  }
  std::string text() const {
    std::string out = str(total(), " ops: ", counts[1], " with a kernel, ", counts[2], " by decomposition, ", counts[0],
                          " leaves, ", counts[3], " missing");
    if (!missing.empty()) out += str(" (", missing, ")");
    return out + str("; the oracle runs ", number_text(percent()), " % of them.");
  }
};

Coverage coverage() {
  Coverage c;
  for (const OpDef* op : all_ops()) {
    ++c.counts[static_cast<size_t>(oracle_of(*op))];
    if (oracle_of(*op) == Oracle::kNone) c.missing += str(c.missing.empty() ? "" : ", ", op->name);
  }
  return c;
}

// How many ops a GPU runs in each way, by the word in front of a reason; and which on the host.
struct WebGpuCoverage {
  std::map<std::string, int64_t> counts;
  std::string on_host;

  std::string text() const {
    std::string out = "On webgpu:";
    for (const auto& [how, n] : counts) out += str(&how == &counts.begin()->first ? " " : ", ", n, " ", how);
    return out + (on_host.empty() ? "." : str("; on the host, each for a reason: ", on_host, "."));
  }
};

WebGpuCoverage webgpu_coverage() {
  WebGpuCoverage c;
  for (const OpDef* op : all_ops()) {
    const std::string how = webgpu::how_it_runs(*op);
    ++c.counts[how.substr(0, how.find(':'))];
    if (how.starts_with("host")) c.on_host += str(c.on_host.empty() ? "" : ", ", op->name);
  }
  return c;
}

// "axis=-1, kind=add of add, sub": the choices stand in parentheses behind an enum's default.
std::string attributes_text(const OpDef& op, bool markdown) {
  std::string out;
  for (const Attribute& a : attributes_of(op)) {
    const std::string tick = markdown ? "`" : "";
    out += str(out.empty() ? "" : ", ", tick, a.name, "=", a.value, tick);
    for (size_t i = 0; i < a.names.size(); ++i) out += str(i == 0 ? " (" : ", ", a.names[i]);
    if (!a.names.empty()) out += ')';
  }
  return out;
}

// A cell of a Markdown table: '|' would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_text() {
  std::string out =
      "# Ops\n\n"
      "Written by `rlx ops --markdown` from the op table; do not edit. Attributes show their defaults. \"Oracle\" says "
      "how the reference backend runs the op: its own kernel, the op's exact decomposition, or as a leaf, which needs "
      "no computation. \"Webgpu\" says the same of a GPU: a view is a part of another value's bytes, a loop runs its "
      "regions on the device, and what runs on the host has a reason.\n";
  for (const auto& [category, ops] : by_category()) {
    out += str("\n## ", category,
               "\n\n| op | operands | attributes | oracle | webgpu | meaning |\n|---|---|---|---|---|---|\n");
    for (const OpDef* op : ops)
      out += str("| `", op->name, "` | ", operands_text(*op), " | ", cell(attributes_text(*op, true)), " | ",
                 oracle_name(*op), " | ", cell(webgpu::how_it_runs(*op)), " | ", cell(op->doc), " |\n");
  }
  return out + "\n" + coverage().text() + " " + webgpu_coverage().text() + "\n";
}

std::string plain_text() {
  std::string out;
  for (const auto& [category, ops] : by_category()) {
    out += str(category, "\n");
    for (const OpDef* op : ops) {
      const std::string attributes = attributes_text(*op, false);
      out += str("  ", op->name, ": ", op->doc, "\n    operands: ", operands_text(*op), "; oracle: ", oracle_name(*op),
                 "; webgpu: ", webgpu::how_it_runs(*op),
                 attributes.empty() ? std::string() : str("\n    attributes: ", attributes), "\n");
    }
  }
  return out + coverage().text() + "\n" + webgpu_coverage().text() + "\n";
}

Json ops_json() {
  Json list = Json::array();
  for (const auto& [category, ops] : by_category())
    for (const OpDef* op : ops) {
      Json attributes = Json::array();
      for (const Attribute& a : attributes_of(*op)) {
        Json entry = {{"name", a.name}, {"default", a.value}};
        if (!a.names.empty()) entry["choices"] = a.names;
        attributes.push_back(entry);
      }
      list.push_back({{"name", op->name},
                      {"category", category},
                      {"min_operands", op->min_inputs},
                      {"max_operands", op->max_inputs == kVariadic ? Json() : Json(op->max_inputs)},
                      {"attributes", attributes},
                      {"oracle", oracle_name(*op)},
                      {"webgpu", webgpu::how_it_runs(*op)},
                      {"doc", op->doc}});
    }
  const Coverage c = coverage();
  return {{"ops", list},
          {"summary",
           {{"ops", c.total()},
            {"kernels", c.counts[1]},
            {"decompositions", c.counts[2]},
            {"leaves", c.counts[0]},
            {"missing", c.counts[3]},
            {"percent", c.percent()},
            {"webgpu", webgpu_coverage().counts}}}};
}

// ONNX ops by domain: each with the opsets from which on another builder reads it.
std::map<std::string, std::map<std::string, std::vector<int64_t>>> onnx_ops() {
  std::map<std::string, std::map<std::string, std::vector<int64_t>>> all;
  for (const onnx::Domain& domain : onnx::all_builders())
    for (const onnx::OpRow& row : domain.rows)
      all[domain.name.empty() ? "ai.onnx" : std::string(domain.name)][std::string(row.op_type)].push_back(row.since);
  return all;
}

Json onnx_json() {
  Json json = Json::object();
  for (const auto& [domain, ops] : onnx_ops())
    for (const auto& [name, since] : ops) json[domain][name] = since;
  return json;
}

std::string onnx_text() {
  std::string text;
  for (const auto& [domain, ops] : onnx_ops()) {
    text += str(domain, ": ", ops.size(), " ops\n");
    for (const auto& [name, since] : ops) {
      text += str("  ", name, " since ");
      for (size_t i = 0; i < since.size(); ++i) text += str(i > 0 ? ", " : "", since[i]);
      text += "\n";
    }
  }
  return text;
}

}  // namespace

void add_ops(CLI::App& app, Work& work) {
  CLI::App* sub =
      app.add_subcommand("ops", "list the ops there are, and whether the oracle and webgpu have kernels for them");
  auto args = std::make_shared<OpsArgs>();
  CLI::Option* markdown = sub->add_flag("--markdown", args->markdown, "print the list as docs/ops.md has it");
  sub->add_flag("--json", args->json, "write JSON")->excludes(markdown)->option_text(" ");
  sub->add_flag("--onnx", args->onnx, "list the ONNX ops that models may use, with the opsets whose meaning differs")
      ->excludes(markdown)
      ->option_text(" ");
  markdown->option_text(" ");  // not the line about what excludes what
  sub->footer("Examples:\n  rlx ops\n  rlx ops --onnx\n  rlx ops --markdown > docs/ops.md");
  sub->callback([&work, args] {
    work = [args](std::string& out) {
      if (args->onnx) {
        out += args->json ? dump(onnx_json()) : onnx_text();
        return 0;
      }
      out += args->json ? dump(ops_json()) : args->markdown ? markdown_text() : plain_text();
      return 0;
    };
  });
}

}  // namespace rlx::cli
