// Scorer: how likely a decoder finds a text, token by token.
#pragma once

#include <span>
#include <vector>

#include "generate/decoder.h"

namespace rlx::generate {

class Scorer {
 public:
  Scorer(const models::ModelSource& source, const CompileOptions& compile, const DecoderOptions& options);

  int64_t context() const { return decoder_.context; }
  // -ln p of tokens[i + 1] behind tokens[0 … i], for every i but the last.
  std::vector<float> surprises(std::span<const int32_t> tokens);

 private:
  Decoder decoder_;
  Executable executable_;
};

// As llama.cpp counts it: the text in pieces of a whole context, each begun with `bos` where the model has one; the
// second half of each piece counts.
struct Perplexity {
  double value = 0;
  double error = 0;  // standard, of the estimate
  int64_t tokens = 0, pieces = 0;
};
Perplexity perplexity(Scorer& scorer, std::span<const int32_t> tokens, std::optional<int32_t> bos);

}  // namespace rlx::generate
