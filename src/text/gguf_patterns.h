// How the byte-level vocabularies of GGUF files split text, by the name that tokenizer.ggml.pre gives.
#pragma once

#include <string_view>
#include <vector>

namespace rlx::text {

struct GgufPatterns {
  std::vector<std::string_view> patterns;  // each cuts what the one before it left
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
  bool add_sep = false;
};

// Throws for a name that rlx does not know; an empty one is llama.cpp's default.
GgufPatterns patterns_of(std::string_view pre);

}  // namespace rlx::text
