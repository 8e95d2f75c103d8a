#include "common.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace rlx::cli {

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json type_json(const TensorType& type) {
  Json shape = Json::array();
  for (const Dim& d : type.shape) {
    if (d.is_static())
      shape.push_back(d.value());
    else
      shape.push_back(str(d));
  }
  return {{"shape", shape}, {"dtype", name(type.dtype)}};
}

Json ports_json(const std::vector<Port>& ports) {
  Json out = Json::array();
  for (const Port& p : ports) {
    Json port = {{"name", p.name}};
    port.update(type_json(p.type));
    out.push_back(port);
  }
  return out;
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";  // its sign says nothing, and differs between devices
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", number);
  return text;
}

std::string symbol_text(const Graph& graph, uint32_t id) {
  const std::string* name = graph.symbols().find_name(id);
  return name ? str("?", id, " ('", *name, "')") : str("?", id);
}

std::string type_text(const Graph& graph, const TensorType& type) {
  std::string dims;
  for (const Dim& d : type.shape) {
    dims += dims.empty() ? "" : ", ";
    const std::string* name = d.is_static() ? nullptr : graph.symbols().find_name(d.symbol_id());
    if (name == nullptr) {
      dims += str(d);
      continue;
    }
    dims += *name;
    if (d.scale() != 1) dims += str("*", d.scale());
    if (d.offset() != 0) dims += str(d.offset() > 0 ? "+" : "", d.offset());
  }
  return str("[", dims, "] ", type.dtype);
}

const Port& find_port(const std::vector<Port>& ports, std::string_view name, std::string_view kind) {
  std::string known;
  for (const Port& p : ports) {
    if (p.name == name) return p;
    known += str(known.empty() ? "" : ", ", "'", p.name, "'");
  }
  fail(ErrorKind::kInvalid,
       str("There is no ", kind, " '", name, "'",
           known.empty() ? std::string("; the graph has none.") : str("; there are: ", known, ".")));
}

std::pair<std::string, std::string> split_name(std::string_view option, const std::string& text) {
  const size_t equals = text.find('=');
  require(equals != text.npos && equals > 0, "Option ", option, " '", text, "' is not of the form NAME=VALUE.");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

namespace {

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A name that the graph gives wins over a well-known one.
std::optional<uint32_t> find_symbol(const Graph& graph, const std::string& name) {
  for (const auto& [id, given] : graph.symbols().names())
    if (given == name) return id;
  if (name.starts_with('?')) {
    const auto id = to_integer(std::string_view(name).substr(1));
    if (id && *id >= 0 && *id <= UINT32_MAX) return static_cast<uint32_t>(*id);
  }
  static constexpr std::pair<const char*, uint32_t> kWellKnown[] = {
      {"batch", symbols::kBatch}, {"seq", symbols::kSeq}, {"rows", symbols::kRows}, {"past_seq", symbols::kPastSeq}};
  for (const auto& [known, id] : kWellKnown)
    if (name == known) return id;
  return std::nullopt;
}

}  // namespace

DimBinding parse_dims(const Graph& graph, const std::vector<std::string>& dims) {
  std::vector<uint32_t> used = graph.dynamic_symbols();
  for (const auto& [id, name] : graph.symbols().names()) used.push_back(id);
  // Symbols that occur only in the definition of a derived one are used too.
  for (const auto& [id, def] : graph.symbols().derived()) {
    used.push_back(id);
    for (const Dim& d : {def.lhs, def.rhs})
      if (!d.is_static()) used.push_back(d.symbol_id());
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());

  DimBinding binding;
  for (const std::string& text : dims) {
    const auto [name, value] = split_name("--dim", text);
    const auto id = find_symbol(graph, name);
    if (!id || !std::binary_search(used.begin(), used.end(), *id)) {
      std::string known;
      for (const uint32_t u : used) known += str(known.empty() ? "" : ", ", symbol_text(graph, u));
      fail(ErrorKind::kInvalid,
           str("There is no symbol '", name, "'",
               known.empty() ? std::string("; all sizes of the graph are known.") : str("; there are: ", known, ".")));
    }
    const auto size = to_integer(value);
    require(size && *size >= 0, "Size '", value, "' of symbol ", symbol_text(graph, *id),
            " is not a whole number from 0.");
    require(!binding.find(*id), "Symbol ", symbol_text(graph, *id), " is given twice.");
    binding.set(*id, *size);
  }
  return binding;
}

CLI::Option* add_model_option(CLI::App& app, std::string& path) {
  return app.add_option("MODEL", path, "the model, FILE.onnx or FILE.rlx (a graph as text)")
      ->required()
      ->option_text(" ");
}

CLI::Option* add_dim_option(CLI::App& app, std::vector<std::string>& dims) {
  return add_repeated(app, "--dim", dims, "SYMBOL=N",
                      "size of a symbol, by name (batch=4) or by number (?0=4); repeatable");
}

CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& value_name, const std::string& doc) {
  return app.add_option(name, values, doc)->allow_extra_args(false)->option_text(value_name);
}

CLI::Option* add_value(CLI::App& app, const std::string& name, std::string& value, const std::string& value_name,
                       const std::string& doc) {
  return app.add_option(name, value, doc)->option_text(value_name);
}

void add_seed(CLI::App& app, const std::string& name, std::optional<uint64_t>& seed, const std::string& doc) {
  const auto take = [&seed](const std::string& text) {
    if (text == "true") {  // what CLI11 calls a flag without a value
      seed = 0;
      return std::string();
    }
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return str("the seed '", text, "' is not a whole number from 0");
    seed = value;
    return std::string();
  };
  app.add_flag(name, doc)->check(CLI::Validator(take, ""))->option_text("[SEED]");
}

}  // namespace rlx::cli
