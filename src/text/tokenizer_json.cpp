// Hugging Face's tokenizer.json.
#include <algorithm>
#include <limits>

#include "text/json_reader.h"
#include "text/post_processor.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace rlx {
namespace {

using namespace text;

struct JsonTokenizer : Tokenizer::Impl {
  Vocabulary model_vocabulary;  // without the added tokens: the model must not find those
  AddedTokens added, added_normalized;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::unique_ptr<Model> model;
  std::vector<PostProcessor> post_processors;

  void encode(std::string_view input, EncodeOptions options, std::vector<int32_t>& ids) const override {
    const std::string text = to_valid_utf8(input);
    WordCache cache(*model);
    for (const Fragment& fragment : added.find(text, options.parse_special)) {
      if (fragment.id >= 0) {
        ids.push_back(fragment.id);
        continue;
      }
      const std::string normalized = run_normalizers(normalizers, text.substr(fragment.start, fragment.size));
      for (const Fragment& part : added_normalized.find(normalized, options.parse_special)) {
        if (part.id >= 0) {
          ids.push_back(part.id);
          continue;
        }
        Word whole{normalized.substr(part.start, part.size), fragment.start == 0 && part.start == 0};
        for (const Word& word : run_pre_tokenizers(pre_tokenizers, std::move(whole)))
          if (!word.text.empty()) cache.encode(word.text, ids);
      }
    }
    if (options.add_special)
      for (const PostProcessor& step : post_processors) step(ids);
  }
};

void read_vocabulary(const JsonReader& json, Vocabulary& vocabulary) {
  require(json.json().is_object() && !json.json().empty(), "'", json.path(), "' is not an object with tokens.");
  for (const auto& [piece, id] : json.json().items()) {
    // The place in the file is written only for an error: vocabularies are large.
    if (!id.is_number_integer())
      fail(ErrorKind::kInvalid, str("'", json.path(), "['", excerpt(piece), "']' is not an integer."));
    vocabulary.add(piece, id.is_number_unsigned() && id.get<uint64_t>() > INT64_MAX ? -1 : id.get<int64_t>());
  }
}

Merges read_merges(const JsonReader& json) {
  Merges merges;
  merges.reserve(json.array_size());
  const auto no_pair = [&](size_t i) {
    fail(ErrorKind::kInvalid, str("'", json.path(), "[", i, "]' is not a pair of tokens."));
  };
  for (size_t i = 0; i < json.array_size(); ++i) {
    const Json& entry = json.json()[i];
    if (entry.is_array()) {  // ["a", "b"]
      if (entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string()) no_pair(i);
      merges.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
      continue;
    }
    if (!entry.is_string()) no_pair(i);
    const auto& text = entry.get_ref<const std::string&>();  // "a b"
    if (text.starts_with("#version")) continue;
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) no_pair(i);
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

int32_t read_unk(const JsonReader& json, const Vocabulary& vocabulary) {
  return json.has("unk_token") ? vocabulary.find(json.at("unk_token").string()).value_or(-1) : -1;
}

std::unique_ptr<Model> read_unigram(const JsonReader& json, Vocabulary& vocabulary) {
  const JsonReader entries = json.at("vocab");
  std::vector<ScoredPiece> pieces;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < entries.array_size(); ++i) {
    const Json& entry = entries.json()[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      fail(ErrorKind::kInvalid, str("'", entries.path(), "[", i, "]' is not a token and its score."));
    pieces.push_back({entry[0].get<std::string>(), static_cast<int32_t>(i), entry[1].get<double>()});
    vocabulary.add(pieces.back().piece, static_cast<int64_t>(i));
    lowest = std::min(lowest, pieces.back().score);
  }
  require(!pieces.empty(), "'", entries.path(), "' has no tokens.");
  const int64_t unk = json.integer_or("unk_id", -1);
  require(unk < vocabulary.size(), "'", json.path(), ".unk_id' (", unk, ") is not below the size of the vocabulary.");
  constexpr double kUnkPenalty = 10;
  return make_unigram(vocabulary, pieces,
                      {.unk = static_cast<int32_t>(std::max<int64_t>(unk, -1)),
                       .unk_score = lowest - kUnkPenalty,
                       .byte_fallback = json.boolean_or("byte_fallback", false)});
}

std::unique_ptr<Model> read_model(const JsonReader& json, Vocabulary& vocabulary) {
  std::string type = json.string_or("type", "");
  if (type.empty()) {  // older files do not say
    const bool scores = json.at("vocab").json().is_array();
    type = scores                                  ? "Unigram"
           : json.has("merges")                    ? "BPE"
           : json.has("continuing_subword_prefix") ? "WordPiece"
                                                   : "WordLevel";
  }
  if (type == "Unigram") return read_unigram(json, vocabulary);
  if (type != "BPE" && type != "WordPiece" && type != "WordLevel") json.unsupported("model");
  read_vocabulary(json.at("vocab"), vocabulary);
  if (type == "BPE") {
    return make_bpe(vocabulary, read_merges(json.at("merges")),
                    {.unk = json.string_or("unk_token", ""),
                     .prefix = json.string_or("continuing_subword_prefix", ""),
                     .suffix = json.string_or("end_of_word_suffix", ""),
                     .fuse_unk = json.boolean_or("fuse_unk", false),
                     .byte_fallback = json.boolean_or("byte_fallback", false),
                     .ignore_merges = json.boolean_or("ignore_merges", false)});
  }
  if (type == "WordPiece")
    return make_word_piece(vocabulary, {.unk = read_unk(json, vocabulary),
                                        .prefix = json.string_or("continuing_subword_prefix", "##"),
                                        .max_characters = json.integer_or("max_input_chars_per_word", 100)});
  return make_word_level(vocabulary, read_unk(json, vocabulary));
}

void read_added_tokens(const JsonReader& json, JsonTokenizer& tokenizer) {
  for (size_t i = 0; i < json.array_size(); ++i) {
    const JsonReader entry = json.element(i);
    AddedToken token{.content = entry.at("content").string(),
                     .single_word = entry.boolean_or("single_word", false),
                     .lstrip = entry.boolean_or("lstrip", false),
                     .rstrip = entry.boolean_or("rstrip", false),
                     .special = entry.boolean_or("special", false)};
    token.normalized = entry.boolean_or("normalized", !token.special);
    if (token.content.empty()) continue;
    const auto known = tokenizer.vocabulary.find(token.content);
    if (!known) tokenizer.vocabulary.add(token.content, entry.at("id").integer());
    token.id = *tokenizer.vocabulary.find(token.content);
    if (token.special) tokenizer.special.insert(token.id);
    if (token.normalized) {
      const std::string written = run_normalizers(tokenizer.normalizers, token.content);
      if (written != token.content) tokenizer.written.insert_or_assign(token.id, written);
      tokenizer.added_normalized.add(std::move(token), written);
    } else {
      const std::string written = token.content;
      tokenizer.added.add(std::move(token), written);
    }
  }
}

// "eos_token": "</s>", or an object with "content".
std::optional<int32_t> read_special(const JsonReader& config, const char* key, const Vocabulary& vocabulary) {
  if (!config.has(key)) return std::nullopt;
  const JsonReader value = config.at(key);
  return vocabulary.find(value.json().is_object() ? value.at("content").string() : value.string());
}

JsonReader part(const JsonReader& json, const char* key) {
  static const Json kNothing;
  return json.has(key) ? json.at(key) : JsonReader(kNothing, key);
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
  const Json file = parse_json(tokenizer_json, "The tokenizer");
  const JsonReader json(file, "");
  require(file.is_object(), "The tokenizer is not a JSON object.");
  auto tokenizer = std::make_shared<JsonTokenizer>();
  tokenizer->normalizers = read_normalizers(part(json, "normalizer"));
  tokenizer->pre_tokenizers = read_pre_tokenizers(part(json, "pre_tokenizer"));
  tokenizer->model = read_model(json.at("model"), tokenizer->model_vocabulary);
  tokenizer->vocabulary = tokenizer->model_vocabulary;
  if (const auto added = json.find("added_tokens")) read_added_tokens(*added, *tokenizer);
  tokenizer->post_processors = read_post_processors(part(json, "post_processor"), tokenizer->vocabulary);
  tokenizer->decoder = read_decoder(part(json, "decoder"));

  if (!tokenizer_config_json.empty()) {
    const Json config_file = parse_json(tokenizer_config_json, "The tokenizer's configuration");
    const JsonReader config(config_file, "");
    require(config_file.is_object(), "The tokenizer's configuration is not a JSON object.");
    tokenizer->bos = read_special(config, "bos_token", tokenizer->vocabulary);
    if (!tokenizer->bos) tokenizer->bos = read_special(config, "cls_token", tokenizer->vocabulary);
    tokenizer->eos = read_special(config, "eos_token", tokenizer->vocabulary);
    if (!tokenizer->eos) tokenizer->eos = read_special(config, "sep_token", tokenizer->vocabulary);
    tokenizer->pad = read_special(config, "pad_token", tokenizer->vocabulary);
    tokenizer->unk = read_special(config, "unk_token", tokenizer->vocabulary);
  }
  tokenizer->find_ends();
  std::vector<int32_t> around;
  for (const PostProcessor& step : tokenizer->post_processors) step(around);
  tokenizer->adds_bos = tokenizer->bos && !around.empty() && around.front() == *tokenizer->bos;
  return Tokenizer(std::move(tokenizer));
}

}  // namespace rlx
