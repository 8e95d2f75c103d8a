// The loop around a Generator: tokens to text as it comes, until the model ends, a stop text appears or enough is said.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generate/generator.h"
#include "text/tokenizer.h"

namespace rlx::generate {

struct AnswerOptions {
  int64_t max_tokens = -1;         // less than 0: until the context is full
  std::vector<std::string> stops;  // texts that end the answer; they are not part of it
  bool ignore_end = false;         // go on behind the model's own end
  bool special = false;            // show special tokens as text
};

enum class StopReason { kEnd, kStopText, kLength, kContext, kInterrupted };
std::string_view name_of(StopReason reason);  // end, stop, length, context, interrupted

struct Answer {
  std::vector<int32_t> ids;  // the end token is not among them
  std::string text;
  StopReason reason = StopReason::kLength;
  int64_t prompt_tokens = 0, reused_tokens = 0;  // of the prompt, those that the caches had already
  double prompt_s = 0, decode_s = 0;             // until the first token, and from then on
  double prompt_tokens_per_s() const;
  double tokens_per_s() const;  // of those behind the first
};

// Error(kInvalid) where there is nothing to answer, or too much: answer() begins with it.
void check_prompt(const Generator& generator, const std::vector<int32_t>& prompt);

// `prompt`: the whole text so far; what the generator's sequence has in common with it is not computed again.
// `on_text` takes pieces of whole characters; false stops the answer.
Answer answer(Generator& generator, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
              const AnswerOptions& options, const std::function<bool(std::string_view)>& on_text = {});

}  // namespace rlx::generate
