#include "generate/language_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/mapped_file.h"
#include "models/gguf_source.h"
#include "rlx/error.h"

namespace rlx::generate {

namespace fs = std::filesystem;

namespace {

GgufVocabulary vocabulary_of(const gguf::File& file) {
  const auto key = [](std::string_view name) { return str("tokenizer.ggml.", name); };
  const auto id = [&](std::string_view name) -> std::optional<int32_t> {
    const std::optional<int64_t> value = file.integer(key(name));
    if (!value || *value == 0xFFFFFFFF) return std::nullopt;  // -1, as some files say "none"
    require(*value >= 0 && *value <= INT32_MAX, file.path(), ": '", key(name), "' is ", *value, ".");
    return static_cast<int32_t>(*value);
  };
  GgufVocabulary v;
  const std::optional<std::string> model = file.text(key("model"));
  require(model.has_value(), file.path(), " has no tokenizer: metadata 'tokenizer.ggml.model' is missing.");
  v.model = *model;
  v.pre = file.text(key("pre")).value_or("");
  v.name = file.text("general.name").value_or("");
  v.architecture = file.text("general.architecture").value_or("");
  v.tokens = file.texts(key("tokens"));
  require(!v.tokens.empty(), file.path(), " has no vocabulary: metadata 'tokenizer.ggml.tokens' is missing or empty.");
  for (const double s : file.numbers(key("scores"))) v.scores.push_back(static_cast<float>(s));
  for (const int64_t t : file.integers(key("token_type"))) v.types.push_back(static_cast<int32_t>(t));
  v.merges = file.texts(key("merges"));
  v.bos = id("bos_token_id");
  v.eos = id("eos_token_id");
  v.eot = id("eot_token_id");
  v.eom = id("eom_token_id");
  v.unk = id("unknown_token_id");
  v.sep = id("seperator_token_id");  // as GGUF spells it
  v.pad = id("padding_token_id");
  v.mask = id("mask_token_id");
  v.add_bos = file.boolean(key("add_bos_token"));
  v.add_eos = file.boolean(key("add_eos_token"));
  v.add_sep = file.boolean(key("add_sep_token"));
  v.add_space_prefix = file.boolean(key("add_space_prefix"));
  v.remove_extra_whitespaces = file.boolean(key("remove_extra_whitespaces"));
  for (const int64_t byte : file.integers(key("precompiled_charsmap")))
    v.precompiled_charsmap.push_back(static_cast<char>(byte));
  return v;
}

std::string read_if_there(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  const auto mapped = MappedFile::open(file.string());
  return {reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()};
}

// A text, or a list of them with names, of which "default" is for conversations.
std::string template_of(const std::string& config) {
  const auto json = nlohmann::json::parse(config, nullptr, false);
  if (!json.is_object() || !json.contains("chat_template")) return "";
  const auto& chat = json["chat_template"];
  if (chat.is_string()) return chat.get<std::string>();
  if (chat.is_array())
    for (const auto& one : chat)
      if (one.is_object() && one.value("name", "") == "default" && one.contains("template") && one["template"].is_string())
        return one["template"].get<std::string>();
  return "";
}

LanguageModel open_folder(const fs::path& folder) {
  std::unique_ptr<models::ModelSource> source = models::open_source(folder.string());
  const std::string json = read_if_there(folder / "tokenizer.json"), config = read_if_there(folder / "tokenizer_config.json");
  require(!json.empty(), "Folder '", folder.string(), "' has no tokenizer: there is no tokenizer.json in it.");
  std::string chat = read_if_there(folder / "chat_template.jinja");
  if (chat.empty() && !config.empty()) chat = template_of(config);
  return {std::move(source), Tokenizer::from_json(json, config), std::move(chat)};
}

LanguageModel open_gguf(const std::string& path) {
  auto source = std::make_unique<models::GgufSource>(path);
  const gguf::File& file = source->file();
  Tokenizer tokenizer = Tokenizer::from_gguf(vocabulary_of(file));
  std::string chat = file.text("tokenizer.chat_template").value_or("");
  return {std::move(source), std::move(tokenizer), std::move(chat)};
}

}  // namespace

LanguageModel open_language_model(const std::string& path) {
  try {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return open_folder(path);
    if (path.ends_with(".safetensors")) return open_folder(fs::absolute(path).parent_path());
    return open_gguf(path);
  } catch (Error& e) {
    e.add_context(str("opening the model '", path, "'"));
    throw;
  }
}

}  // namespace rlx::generate
