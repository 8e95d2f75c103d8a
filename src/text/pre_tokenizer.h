// How a tokenizer cuts text into words before its model sees them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/json_reader.h"
#include "text/pattern.h"

namespace rlx::text {

struct Word {
  std::string text;
  bool first = false;  // starts where the whole text starts: Metaspace asks
};

using PreTokenizer = std::function<std::vector<Word>(const Word&)>;

// The "pre_tokenizer" of a tokenizer.json: steps in order.
std::vector<PreTokenizer> read_pre_tokenizers(const JsonReader& json);

// A step that cuts with a pattern: matches and what lies between them are words.
PreTokenizer split_isolated(std::string_view regex);
PreTokenizer byte_level_characters();

std::vector<Word> run_pre_tokenizers(const std::vector<PreTokenizer>& steps, Word text);

enum class Prepend { kAlways, kFirst, kNever };
Prepend read_prepend_scheme(const JsonReader& metaspace);

}  // namespace rlx::text
