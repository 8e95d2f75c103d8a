#include "text/pre_tokenizer.h"

#include "text/byte_level.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::vector<Word> one(Word word) {
  std::vector<Word> words;
  words.push_back(std::move(word));
  return words;
}

std::vector<Word> cut(const Word& word, const std::vector<Match>& pieces) {
  std::vector<Word> words;
  words.reserve(pieces.size());
  for (const Match& piece : pieces)
    if (piece.end > piece.start)
      words.push_back({word.text.substr(piece.start, piece.end - piece.start), word.first && piece.start == 0});
  return words;
}

PreTokenizer split_at(Pattern pattern, SplitBehavior behavior, bool invert) {
  return [=](const Word& word) { return cut(word, split(pattern.parts(word.text), behavior, invert)); };
}

PreTokenizer split_at(std::function<bool(char32_t)> is_match, SplitBehavior behavior) {
  return [=](const Word& word) { return cut(word, split(character_parts(word.text, is_match), behavior)); };
}

PreTokenizer metaspace(const JsonReader& json) {
  const std::string mark = json.string_or("replacement", "▁");
  require(!mark.empty() && first_character(mark).size == mark.size(), "'", json.path(),
          ".replacement' is not one character.");
  const Prepend prepend = read_prepend_scheme(json);
  const bool splits = json.boolean_or("split", true);
  const char32_t mark_code = first_character(mark).code;
  return [=](const Word& source) {
    Word word{replace_all(source.text, " ", mark), source.first};
    const bool wanted = prepend == Prepend::kAlways || (prepend == Prepend::kFirst && word.first);
    if (wanted && !word.text.starts_with(mark)) word.text = mark + word.text;
    if (!splits) return one(std::move(word));
    return cut(word, split(character_parts(word.text, [=](char32_t c) { return c == mark_code; }),
                           SplitBehavior::kMergedWithNext));
  };
}

void read(const JsonReader& json, std::vector<PreTokenizer>& steps) {
  const std::string type = json.type();
  if (type == "Sequence") {
    const JsonReader parts = json.at("pretokenizers");
    for (size_t i = 0; i < parts.array_size(); ++i) read(parts.element(i), steps);
  } else if (type == "Split") {
    steps.push_back(
        split_at(Pattern(json.at("pattern")), read_behavior(json.at("behavior")), json.boolean_or("invert", false)));
  } else if (type == "ByteLevel") {
    if (json.boolean_or("add_prefix_space", true)) {
      steps.push_back([](const Word& word) {
        return one({word.text.starts_with(' ') ? word.text : ' ' + word.text, word.first});
      });
    }
    if (json.boolean_or("use_regex", true)) steps.push_back(split_isolated(kGpt2));
    steps.push_back(byte_level_characters());
  } else if (type == "Digits") {
    steps.push_back(split_at(is_numeric, json.boolean_or("individual_digits", false) ? SplitBehavior::kIsolated
                                                                                     : SplitBehavior::kContiguous));
  } else if (type == "Punctuation") {
    const auto behavior = json.find("behavior");
    steps.push_back(split_at(is_punctuation, behavior ? read_behavior(*behavior) : SplitBehavior::kIsolated));
  } else if (type == "Whitespace") {  // words of Rust's \w, runs of other visible characters
    constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
    steps.push_back(split_at(Pattern(str("[", kWord, "]+|[^", kWord, "\\s]+")), SplitBehavior::kRemoved, true));
  } else if (type == "WhitespaceSplit") {
    steps.push_back(split_at(is_white_space, SplitBehavior::kRemoved));
  } else if (type == "BertPreTokenizer") {
    steps.push_back(split_at(is_white_space, SplitBehavior::kRemoved));
    steps.push_back(split_at(is_punctuation, SplitBehavior::kIsolated));
  } else if (type == "Metaspace") {
    steps.push_back(metaspace(json));
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = json.at("delimiter").string();
    require(first_character(delimiter).size == delimiter.size(), "'", json.path(), ".delimiter' is not one character.");
    const char32_t code = first_character(delimiter).code;
    steps.push_back(split_at([code](char32_t c) { return c == code; }, SplitBehavior::kRemoved));
  } else {
    json.unsupported("pre-tokenizer");
  }
}

}  // namespace

PreTokenizer split_isolated(std::string_view regex) {
  return split_at(Pattern(regex), SplitBehavior::kIsolated, false);
}

PreTokenizer byte_level_characters() {
  return [](const Word& word) { return one({bytes_as_characters(word.text), word.first}); };
}

Prepend read_prepend_scheme(const JsonReader& metaspace) {
  const std::string scheme = metaspace.string_or("prepend_scheme", "");
  if (scheme == "always") return Prepend::kAlways;
  if (scheme == "first") return Prepend::kFirst;
  if (scheme == "never") return Prepend::kNever;
  require(scheme.empty(), "'", metaspace.path(), ".prepend_scheme' ('", scheme, "') is not always, first or never.");
  return metaspace.boolean_or("add_prefix_space", true) ? Prepend::kAlways : Prepend::kNever;  // older files
}

std::vector<PreTokenizer> read_pre_tokenizers(const JsonReader& json) {
  std::vector<PreTokenizer> steps;
  if (!json.json().is_null()) read(json, steps);
  return steps;
}

std::vector<Word> run_pre_tokenizers(const std::vector<PreTokenizer>& steps, Word text) {
  std::vector<Word> words;
  words.push_back(std::move(text));
  for (const PreTokenizer& step : steps) {
    std::vector<Word> next;
    for (const Word& word : words)
      for (Word& part : step(word)) next.push_back(std::move(part));
    words = std::move(next);
  }
  return words;
}

}  // namespace rlx::text
