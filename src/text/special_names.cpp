// Tokens that are known by their text alone: no file lists every token that ends an answer. The lists are llama.cpp's.
#include <algorithm>
#include <array>

#include "text/tokenizer_impl.h"

namespace rlx {

static constexpr std::string_view kEnds[] = {"<|eot_id|>",
                                             "<|im_end|>",
                                             "<|end|>",
                                             "<|return|>",
                                             "<|call|>",
                                             "<|flush|>",
                                             "<|calls|>",
                                             "<end_of_turn>",
                                             "<|endoftext|>",
                                             "</s>",
                                             "<|eom_id|>",
                                             "<EOT>",
                                             "_<EOT>",
                                             "[EOT]",
                                             "[EOS]",
                                             "<|end_of_text|>",
                                             "<end_of_utterance>",
                                             "<eos>",
                                             "<turn|>",
                                             "<|tool_response>",
                                             "<｜end▁of▁sentence｜>",
                                             "[e~[",
                                             "<|ifm|im_end|>"};

// Padding, repository and file marks of code models: the first of each kind that a vocabulary has ends an answer too.
using Names = std::array<std::string_view, 9>;
static constexpr Names kEndMarks[] = {{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
                                      {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
                                      {"<|file_sep|>", "<|plamo:file_separator|>"}};

static constexpr Names kFillMarks[] = {{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>",
                                        "▁<PRE>", "<|code_prefix|>", "<|prefix|>", "<|plamo:fim_prefix|>"},
                                       {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>",
                                        "▁<SUF>", "<|code_suffix|>", "<|suffix|>", "<|plamo:fim_suffix|>"},
                                       {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>",
                                        "▁<MID>", "<|code_middle|>", "<|middle|>", "<|plamo:fim_middle|>"}};

static bool is_one_of(std::string_view piece, const auto& names) {
  return !piece.empty() && std::find(std::begin(names), std::end(names), piece) != std::end(names);
}

bool text::looks_like_control(std::string_view piece) {
  if (is_one_of(piece, kEnds)) return true;
  const auto listed = [&](const Names& names) { return is_one_of(piece, names); };
  return std::any_of(std::begin(kEndMarks), std::end(kEndMarks), listed) ||
         std::any_of(std::begin(kFillMarks), std::end(kFillMarks), listed);
}

void Tokenizer::Impl::find_ends() {
  const auto has = [&](std::string_view text) { return vocabulary.find(text).has_value(); };
  for (const std::string_view text : kEnds)
    if (has(text)) ends.insert(*vocabulary.find(text));
  for (const Names& kind : kEndMarks) {
    const auto first =
        std::find_if(kind.begin(), kind.end(), [&](std::string_view text) { return !text.empty() && has(text); });
    if (first != kind.end()) ends.insert(*vocabulary.find(*first));
  }
  if (eos) ends.insert(*eos);
  // Where calls end an answer, <|end|> ends a message alone; where <|tool_response> does, </s> is a normal token.
  const bool calls = has("<|call|>") || has("<|calls|>");
  if (has("<|end|>") && calls && (has("<|return|>") || has("<|flush|>"))) ends.erase(*vocabulary.find("<|end|>"));
  if (has("</s>") && (has("<|tool_response>") || has("<|plamo:eos|>"))) ends.erase(*vocabulary.find("</s>"));
}

}  // namespace rlx
