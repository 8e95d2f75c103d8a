#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "ir/text.h"
#include "rlx/graph.h"
#include "rlx/ops/leaves.h"

namespace rlx {

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return str(bytes, " B");
  static constexpr const char* kUnits[] = {"KB", "MB", "GB"};
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be rounded to 1024.0 of the smaller unit.
  while (size >= 1023.95 && unit < 2) {
    size /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %s", size, kUnits[unit]);
  return text;
}

uint64_t stable_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

std::string quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_plain_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == ':'; });
}

void append_text(std::string& out, const ChainStep& step) {
  out += str(step.op->name, "(");
  for (size_t i = 0; i < step.operands.size(); ++i)
    out += str(i > 0 ? ", " : "", step.operands[i].is_step ? 's' : 'i', step.operands[i].index);
  if (step.to) out += str(", ", *step.to);
  out += ')';
}

namespace {

void append_hex(std::string& out, const uint8_t* data, size_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < size; ++i) {
    out += kHex[data[i] >> 4];
    out += kHex[data[i] & 15];
  }
  out += '"';
}

// Few elements as numbers, many (and NaN, whose bits text would lose) as bytes in hex.
void append_tensor(std::string& out, const Tensor& tensor) {
  constexpr int64_t kMostNumbers = 16;
  bool numbers = tensor.num_elements() <= kMostNumbers && !is_complex(tensor.dtype());
  const Tensor t = numbers ? tensor.clone() : tensor;  // borrowed bytes may stand at any address
  if (numbers && is_float(t.dtype()))
    for (const double x : t.to_doubles()) numbers &= x == x;
  if (!numbers) {
    append_hex(out, reinterpret_cast<const uint8_t*>(t.bytes().data()), t.bytes().size());
    return;
  }
  out += '[';
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (i > 0) out += ", ";
    if (t.dtype() == DType::I64)
      append_text(out, t.values<int64_t>()[static_cast<size_t>(i)]);
    else if (t.dtype() == DType::U64)
      append_text(out, t.values<uint64_t>()[static_cast<size_t>(i)]);
    else if (t.dtype() == DType::F32)
      append_text(out, t.values<float>()[static_cast<size_t>(i)]);
    else
      append_text(out, t.at(i));
  }
  out += ']';
}

std::string print_graph(const Graph& graph, int indent, bool annotated = false);

struct FieldPrinter {
  std::string& out;
  int indent;

  void operator()(const bool* v) const { append_text(out, *v); }
  void operator()(const int64_t* v) const { append_text(out, *v); }
  void operator()(const uint64_t* v) const { append_text(out, *v); }
  void operator()(const float* v) const { append_text(out, *v); }
  void operator()(const DType* v) const { append_text(out, *v); }
  void operator()(const Dim* v) const { append_text(out, *v); }
  void operator()(const std::string* v) const { out += quoted(*v); }
  void operator()(const Bytes* v) const { append_hex(out, v->data.data(), v->data.size()); }
  template <class T>
  void operator()(const std::vector<T>* v) const {
    append_text(out, *v);
  }
  template <class T>
  void operator()(const std::optional<T>* v) const {
    if (v->has_value())
      append_text(out, **v);
    else
      out += "none";
  }
  void operator()(const Tensor* v) const { append_tensor(out, *v); }
  void operator()(const GraphPtr* v) const { out += *v ? print_graph(**v, indent) : "none"; }
  void operator()(const EnumField& v) const { out += v.names[static_cast<size_t>(*v.value)]; }
};

std::string print_fields(const std::vector<Field>& fields, const std::vector<Field>& defaults, int indent) {
  std::string out;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string text = print_field(fields[i].ref, indent);
    if (text == print_field(defaults[i].ref, indent)) continue;
    out += str(out.empty() ? "{" : ", ", fields[i].name, "=", text);
  }
  return out.empty() ? out : out + "}";
}

// Counts, bytes of all values whose sizes are known, and how often each op occurs.
std::string header(const Graph& graph) {
  int64_t bytes = 0;
  std::map<std::string_view, int64_t> counts;
  for (const Node& node : graph.nodes()) {
    ++counts[node.op->name];
    for (const Result& r : node.results)
      if (r.type.shape.try_elements()) bytes += r.type.size_bytes();
  }
  std::vector<std::pair<std::string_view, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out =
      str("# ", graph.nodes().size(), " nodes, ", graph.outputs().size(), " outputs, ", bytes_text(bytes), "\n");
  for (const auto& [op, n] : sorted) out += str("#   ", n, " ", op, "\n");
  return out;
}

// What a line's node is to the graph's callers: [input "x"], [param "w"], ["name"], -> output "y".
std::string tags(const Graph& graph, const Node& node) {
  std::string out;
  if (&node.attrs.type() == &attrs_type<ops::LeafAttrs>)
    out += str(" [", node.op->name, " ", quoted(node.attrs.as<ops::LeafAttrs>().name), "]");
  else if (!node.name.empty())
    out += str(" [", quoted(node.name), "]");
  for (const Output& o : graph.outputs())
    for (const Result& r : node.results)
      if (r.id == o.value) out += str(" -> output ", quoted(o.name));
  return out.empty() ? out : "  #" + out;
}

std::string print_graph(const Graph& graph, int indent, bool annotated) {
  const std::string pad(static_cast<size_t>(indent) + 2, ' ');
  // A name that two nodes share cannot label either: both are printed by index.
  std::set<std::string> seen, repeated;
  for (const Node& node : graph.nodes())
    if (!node.name.empty() && !seen.insert(node.name).second) repeated.insert(node.name);
  const auto label = [&](ValueId id) {
    if (!graph.contains(id)) return graph.label(id);
    const ValuePlace p = graph.place(id);
    if (!repeated.contains(graph.nodes()[static_cast<size_t>(p.node)].name)) return graph.label(id);
    return str('%', p.node, p.result > 0 ? str('#', p.result) : std::string());
  };

  std::string out = str("graph @", is_plain_name(graph.name()) ? graph.name() : quoted(graph.name()), " {\n");
  const SymbolTable& symbols = graph.symbols();
  for (const auto& [id, name] : symbols.names()) out += str(pad, "symbol ?", id, " = ", quoted(name), "\n");
  for (const auto& [id, def] : symbols.derived()) {
    static constexpr const char* kSigns[] = {" + ", " * ", " / "};
    out += str(pad, "symbol ?", id, " = ", def.lhs, kSigns[static_cast<int>(def.kind)], def.rhs, "\n");
  }
  for (const DimConstraint& c : symbols.constraints()) out += str(pad, "require ", c.dim, " in {1, ", c.one_or, "}\n");

  for (const Node& node : graph.nodes()) {
    out += str(pad, node.results.empty() ? std::string("%?") : label(node.results[0].id), " = ", node.op->name, "(");
    for (size_t i = 0; i < node.inputs.size(); ++i) out += str(i > 0 ? ", " : "", label(node.inputs[i]));
    out += ')';
    Attrs attrs = node.attrs;
    if (&attrs.type() == &attrs_type<ops::LeafAttrs> && attrs.as<ops::LeafAttrs>().name == node.name &&
        !repeated.contains(node.name))
      attrs = ops::LeafAttrs{};  // the label says it
    const std::string text = print_attrs(attrs, indent + 2);
    if (!text.empty()) out += ' ' + text;
    for (size_t i = 0; i < node.results.size(); ++i) out += str(i == 0 ? " : " : ", ", node.results[i].type);
    if (annotated) out += tags(graph, node);
    out += '\n';
  }
  for (const StateUpdate& u : graph.updates()) out += str(pad, "update ", label(u.state), " = ", label(u.value), "\n");
  out += pad + "return";
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Output& o = graph.outputs()[i];
    const std::string value = label(o.value);
    out += i == 0 ? " " : ", ";
    if (!graph.contains(o.value) || default_output_name(graph, o.value) != o.name)
      out += (is_plain_name(o.name) ? o.name : quoted(o.name)) + "=";
    out += value;
  }
  return out + "\n" + std::string(static_cast<size_t>(indent), ' ') + "}";
}

}  // namespace

std::string print_field(const FieldRef& ref, int indent) {
  std::string out;
  std::visit(FieldPrinter{out, indent}, ref);
  return out;
}

std::string print_attrs(const Attrs& attrs, int indent) {
  const std::shared_ptr<void> fresh = attrs.type().make();
  std::vector<Field> defaults;
  attrs.type().fields(fresh.get(), defaults);
  return print_fields(attrs.fields(), defaults, indent);
}

std::string default_output_name(const Graph& graph, ValueId id) {
  const ValuePlace p = graph.place(id);
  const std::string& name = graph.nodes()[static_cast<size_t>(p.node)].name;
  return str(name.empty() ? str(p.node) : name, p.result > 0 ? str('#', p.result) : std::string());
}

std::string print(const Graph& graph) { return print_graph(graph, 0) + "\n"; }
std::string print_annotated(const Graph& graph) { return header(graph) + print_graph(graph, 0, true) + "\n"; }

}  // namespace rlx
