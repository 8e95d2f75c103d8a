#include "text/test_vocabulary.h"

#include <nlohmann/json.hpp>

#include "text/byte_level.h"

namespace rlx::test {

GgufVocabulary byte_level_vocabulary() {
  GgufVocabulary v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  for (int b = 0; b < 256; ++b) v.tokens.push_back(text::bytes_as_characters(std::string(1, static_cast<char>(b))));
  v.merges = {"h e", "l l", "he ll", "hell o", "Ġ w", "a a", "aa aa"};
  for (const char* piece : {"he", "ll", "hell", "hello", "Ġw", "aa", "aaaa", "<|im_start|>", "<|im_end|>", "<user>"})
    v.tokens.push_back(piece);
  v.types.assign(v.tokens.size(), 1);
  v.types[v.tokens.size() - 3] = v.types[v.tokens.size() - 2] = 3;
  v.types.back() = 4;
  v.bos = static_cast<int32_t>(v.tokens.size()) - 3;
  v.eos = static_cast<int32_t>(v.tokens.size()) - 2;
  return v;
}

std::string byte_level_json() {
  const GgufVocabulary v = byte_level_vocabulary();
  nlohmann::json vocab, added = nlohmann::json::array();
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (v.types[i] == 1)
      vocab[v.tokens[i]] = i;
    else
      added.push_back({{"id", i}, {"content", v.tokens[i]}, {"special", v.types[i] == 3}, {"normalized", false}});
  }
  return nlohmann::json{{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", v.merges}}},
                        {"added_tokens", added},
                        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                        {"post_processor",
                         {{"type", "TemplateProcessing"},
                          {"single", {{{"SpecialToken", {{"id", "<|im_start|>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                          {"special_tokens", {{"<|im_start|>", {{"ids", {*v.bos}}}}}}}},
                        {"decoder", {{"type", "ByteLevel"}}}}
      .dump();
}

GgufVocabulary sentence_piece_vocabulary() {
  GgufVocabulary v;
  v.model = "llama";
  v.tokens = {"<unk>", "<s>", "</s>"};
  v.types = {2, 3, 3};
  for (int b = 0; b < 256; ++b) {
    v.tokens.push_back(text::byte_piece(static_cast<uint8_t>(b)));
    v.types.push_back(6);
  }
  for (const char* piece : {"▁", "h", "e", "l", "o", "▁h", "el", "lo", "▁hel", "▁hello", "é"}) {
    v.tokens.push_back(piece);
    v.types.push_back(1);
  }
  for (size_t i = 0; i < v.tokens.size(); ++i) v.scores.push_back(-static_cast<float>(i));
  return v;
}

}  // namespace rlx::test
