// What a tokenizer does to text before it is split: Unicode forms, case, accents, replacements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/json_reader.h"

namespace rlx::text {

using Normalizer = std::function<std::string(std::string)>;  // valid UTF-8 in and out

// The "normalizer" of a tokenizer.json: steps in order.
std::vector<Normalizer> read_normalizers(const JsonReader& json);

std::string run_normalizers(const std::vector<Normalizer>& steps, std::string text);

// BERT's text cleaning. llama.cpp's WordPiece uses parts of it.
struct BertOptions {
  bool clean_text = true, chinese = true, strip_accents = true, lowercase = true;
};
std::string bert_normalize(std::string_view text, const BertOptions& options);

}  // namespace rlx::text
