// The parts that a tokenizer is made of, whichever file they came from.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace rlx {

struct Tokenizer::Impl {
  virtual ~Impl() = default;
  virtual void encode(std::string_view text, EncodeOptions options, std::vector<int32_t>& ids) const = 0;

  text::Vocabulary vocabulary;          // all pieces, added tokens too
  std::unordered_set<int32_t> special;  // skipped when decoding
  std::unordered_set<int32_t> ends;
  std::unordered_map<int32_t, std::string>
      written;  // added tokens that decoding writes otherwise than `vocabulary`: normalized
  std::vector<text::MakeStep> decoder;
  std::optional<int32_t> bos, eos, pad, unk;
  bool adds_bos = false;

  const std::string& piece(int32_t id) const;  // throws where there is none
  // What decoding feeds its steps with; empty for an id that is skipped.
  const std::string& decoded_piece(int32_t id, bool skip_special) const;
  void find_ends();  // eos, and the tokens that chat models end turns with (special_names.cpp)
};

namespace text {

// Whether a token with this text is a control token whatever a file says: an end, or a mark of fill-in-the-middle.
bool looks_like_control(std::string_view piece);

// Words that were encoded before in the same call: texts repeat them. Long words are not kept.
class WordCache {
 public:
  explicit WordCache(const Model& model) : model_(model) {}
  void encode(std::string_view word, std::vector<int32_t>& ids);

 private:
  const Model& model_;
  std::unordered_map<std::string, std::pair<uint32_t, uint32_t>, StringHash, std::equal_to<>> places_;
  std::vector<int32_t> kept_;
};

}  // namespace text
}  // namespace rlx
