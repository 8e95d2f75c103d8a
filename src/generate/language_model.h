// A language model's file with its tokenizer and chat template.
#pragma once

#include <memory>
#include <string>

#include "import/gguf/gguf.h"
#include "models/source.h"
#include "text/tokenizer.h"

namespace rlx::generate {

struct LanguageModel {
  std::unique_ptr<models::ModelSource> source;
  Tokenizer tokenizer;
  std::string chat_template;  // Jinja; empty: the file has none
};

// A .gguf file, or a Hugging Face folder. Error names the file and what is wrong with it.
LanguageModel open_language_model(const std::string& path);

// The tokenizer's part of a file's metadata.
GgufVocabulary vocabulary_of(const gguf::File& file);

}  // namespace rlx::generate
