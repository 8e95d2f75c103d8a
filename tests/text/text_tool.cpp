// What the Python tests drive: a JSON request per line in, a JSON answer per line out. An rlx::Error is {"error":
// sentence}.
//   {"load": "tokenizer.json", "config": "tokenizer_config.json"}   {"load_gguf": "vocabulary.json"} (gguf_reader.py's)
//   {"text": "…", "parse_special": true, "add_special": false}      {"hex": "ff41"}: text that is not UTF-8
//   {"decode": [1, 2], "skip_special": false}                       {"stream": [1, 2], "context": []}: {"pieces": […]}
//   {"template": "…", "messages": […], "options": {…}}              {"ends": true}: ids where generation stops
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "rlx/error.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using Json = nlohmann::ordered_json;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  rlx::require(file.good(), "The file '", path, "' cannot be read.");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

rlx::GgufVocabulary read_vocabulary(const Json& json) {
  rlx::GgufVocabulary v;
  v.model = json.at("model");
  v.pre = json.value("pre", "");
  v.name = json.value("name", "");
  v.architecture = json.value("architecture", "");
  v.tokens = json.value("tokens", v.tokens);
  v.scores = json.value("scores", v.scores);
  v.types = json.value("types", v.types);
  v.merges = json.value("merges", v.merges);
  v.precompiled_charsmap = from_hex(json.value("precompiled_charsmap", ""));
  const auto id = [&](const char* key, std::optional<int32_t>& field) {
    if (json.contains(key)) field = json[key].get<int32_t>();
  };
  id("bos", v.bos), id("eos", v.eos), id("eot", v.eot), id("eom", v.eom), id("unk", v.unk), id("sep", v.sep),
      id("pad", v.pad), id("mask", v.mask);
  const auto flag = [&](const char* key, std::optional<bool>& field) {
    if (json.contains(key)) field = json[key].get<bool>();
  };
  flag("add_bos", v.add_bos), flag("add_eos", v.add_eos), flag("add_sep", v.add_sep),
      flag("add_space_prefix", v.add_space_prefix);
  flag("remove_extra_whitespaces", v.remove_extra_whitespaces), flag("lowercase", v.lowercase),
      flag("strip_accents", v.strip_accents);
  return v;
}

std::string render(const Json& request) {
  rlx::ChatOptions options;
  const Json& o = request.at("options");
  options.add_generation_prompt = o.value("add_generation_prompt", false);
  options.bos_token = o.value("bos_token", "");
  options.eos_token = o.value("eos_token", "");
  options.now = o.value("now", int64_t{0});
  if (o.contains("variables")) options.variables_json = o["variables"].dump();
  return rlx::ChatTemplate(request.at("template").get<std::string>())
      .render_json(request.at("messages").dump(), options);
}

Json answer(const Json& request, std::optional<rlx::Tokenizer>& tokenizer) {
  if (request.contains("template")) return {{"text", render(request)}};
  if (request.contains("load") || request.contains("load_gguf")) {
    const auto start = std::chrono::steady_clock::now();
    tokenizer.reset();
    if (request.contains("load"))
      tokenizer = rlx::Tokenizer::from_json(read_file(request["load"]),
                                            request.contains("config") ? read_file(request["config"]) : "");
    else
      tokenizer = rlx::Tokenizer::from_gguf(read_vocabulary(Json::parse(read_file(request["load_gguf"]))));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {{"size", tokenizer->size()}, {"seconds", seconds.count()}};
  }
  rlx::require(tokenizer.has_value(), "No tokenizer is loaded.");
  if (request.contains("decode")) {
    const std::vector<int32_t> ids = request["decode"];
    return {{"text", tokenizer->decode(ids, request.value("skip_special", true))}};
  }
  if (request.contains("stream")) {
    const std::vector<int32_t> ids = request["stream"], context = request.value("context", std::vector<int32_t>{});
    rlx::StreamDecoder stream(*tokenizer, context, request.value("skip_special", true));
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(stream.push(id));
    pieces.push_back(stream.finish());
    return {{"pieces", pieces}};
  }
  if (request.contains("ends")) {
    Json ids = Json::array();
    for (int32_t id = 0; id < tokenizer->size(); ++id)
      if (tokenizer->is_end(id)) ids.push_back(id);
    return {{"ids", ids},
            {"bos", tokenizer->bos().value_or(-1)},
            {"eos", tokenizer->eos().value_or(-1)},
            {"adds_bos", tokenizer->adds_bos()}};
  }
  const std::string text = request.contains("hex") ? from_hex(request["hex"]) : request.at("text").get<std::string>();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> ids = tokenizer->encode(text, {.parse_special = request.value("parse_special", false),
                                                            .add_special = request.value("add_special", false)});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"ids", ids}, {"seconds", seconds.count()}};
}

}  // namespace

int main() {
  std::optional<rlx::Tokenizer> tokenizer;
  for (std::string line; std::getline(std::cin, line);) {
    Json out;
    try {
      out = answer(Json::parse(line), tokenizer);
    } catch (const rlx::Error& e) {
      out = {{"error", e.what()}};
    }
    std::cout << out.dump() << std::endl;
  }
}
