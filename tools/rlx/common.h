// What the subcommands share: how they are added and run, and how they write sizes, types and JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text_table.h"
#include "rlx/graph.h"
#include "rlx/runtime.h"

namespace CLI {  // CLI/CLI.hpp takes seconds to compile: those that add options include it
class App;
class Option;
}  // namespace CLI

namespace rlx::cli {

// The work of a subcommand: appends what goes to standard output and returns the exit code. main() writes the text
// after it has returned, so that an error leaves nothing half written.
using Work = std::function<int(std::string& out)>;

// Each adds its subcommand, which sets `work` when it is the one on the command line.
void add_run(CLI::App& app, Work& work);
void add_info(CLI::App& app, Work& work);
void add_check(CLI::App& app, Work& work);
void add_ops(CLI::App& app, Work& work);
void add_bench(CLI::App& app, Work& work);
void add_devices(CLI::App& app, Work& work);
void add_test_onnx(CLI::App& app, Work& work);
void add_trace(CLI::App& app, Work& work);
void add_embed(CLI::App& app, Work& work);
void add_generate(CLI::App& app, Work& work);
void add_chat(CLI::App& app, Work& work);
void add_tokenize(CLI::App& app, Work& work);
void add_perplexity(CLI::App& app, Work& work);
void add_quantize(CLI::App& app, Work& work);

using Json = nlohmann::ordered_json;
std::string dump(const Json& json);  // indented, ends with a newline; names that are not UTF-8 are repaired
Json type_json(const TensorType& type);
Json ports_json(const std::vector<Port>& ports);

std::string number_text(double number);                             // six digits
std::string symbol_text(const Graph& graph, uint32_t id);           // ?0 ('batch')
std::string type_text(const Graph& graph, const TensorType& type);  // [batch, 4] f32: symbols by the graph's names

// Throws with the names there are when there is no port of that name.
const Port& find_port(const std::vector<Port>& ports, std::string_view name, std::string_view kind);

// "x=rest" as {"x", "rest"}: a name ends at the first '='. Throws when there is none, or when the name is empty.
std::pair<std::string, std::string> split_name(std::string_view option, const std::string& text);

// --dim batch=4, --dim ?1=7: by a name the graph gives, a well-known name (batch, seq, rows, past_seq) or by number.
DimBinding parse_dims(const Graph& graph, const std::vector<std::string>& dims);

// Options that several subcommands have.
CLI::Option* add_model_option(CLI::App& app, std::string& path);
CLI::Option* add_dim_option(CLI::App& app, std::vector<std::string>& dims);
CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& value_name, const std::string& doc);
CLI::Option* add_value(CLI::App& app, const std::string& name, std::string& value, const std::string& value_name,
                       const std::string& doc);
// --name, --name=SEED or --name SEED (main() joins the last form).
void add_seed(CLI::App& app, const std::string& name, std::optional<uint64_t>& seed, const std::string& doc);

}  // namespace rlx::cli
