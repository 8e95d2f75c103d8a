#include "generate/language_model.h"

#include <filesystem>

#include "core/mapped_file.h"
#include "import/json.h"
#include "models/gguf_source.h"
#include "rlx/error.h"

namespace rlx::generate {

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

namespace {

std::optional<std::string> text_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  const auto file = MappedFile::open(path.string());
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

// A file of its own, or in tokenizer_config.json: a text, or a list of named ones.
std::string chat_template_of(const std::filesystem::path& folder, const std::string& config) {
  if (std::optional<std::string> own = text_of(folder / "chat_template.jinja")) return *own;
  if (config.empty()) return "";
  const Json json = parse_json(config, (folder / "tokenizer_config.json").string());
  const auto found = json.is_object() ? json.find("chat_template") : json.end();
  if (!json.is_object() || found == json.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array())
    for (const Json& named : *found)
      if (named.is_object() && named.contains("name") && named["name"] == "default" && named.contains("template") &&
          named["template"].is_string())
        return named["template"].get<std::string>();
  return "";
}

}  // namespace

LanguageModel open_language_model(const std::string& path) {
  std::unique_ptr<models::ModelSource> source = models::open_source(path);
  try {
    if (const auto* gguf = dynamic_cast<const models::GgufSource*>(source.get())) {
      Tokenizer tokenizer = Tokenizer::from_gguf(vocabulary_of(gguf->file()));
      std::string chat = gguf->file().text("tokenizer.chat_template").value_or("");
      return {std::move(source), std::move(tokenizer), std::move(chat)};
    }
    // path() of a folder's source is the folder, whichever of its files was named.
    const std::filesystem::path folder = source->path();
    const std::string config = text_of(folder / "tokenizer_config.json").value_or("");
    const std::optional<std::string> json = text_of(folder / "tokenizer.json");
    if (!json) fail(ErrorKind::kUnavailable, str("Folder '", source->path(), "' has no tokenizer.json."));
    Tokenizer tokenizer = Tokenizer::from_json(*json, config);
    return {std::move(source), std::move(tokenizer), chat_template_of(folder, config)};
  } catch (Error& e) {
    e.add_context(str("reading the tokenizer of ", path));
    throw;
  }
}

}  // namespace rlx::generate
