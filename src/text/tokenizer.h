// Text to ids and back, as a model's own tokenizer does it.
//
//   const Tokenizer tokenizer = Tokenizer::from_json(read("tokenizer.json"), read("tokenizer_config.json"));
//   std::vector<int32_t> ids = tokenizer.encode("Hello", {.add_special = true});
//   std::string text = tokenizer.decode(ids);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

// The tokenizer.ggml.* metadata of a GGUF file. What a file does not say is left out: each kind of vocabulary has its
// defaults.
struct GgufVocabulary {
  std::string model;               // gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (unigram), bert (WordPiece)
  std::string pre;                 // which patterns split text, for gpt2
  std::string name, architecture;  // general.name, general.architecture: some models' quirks are known by them alone
  std::vector<std::string> tokens;
  std::vector<float> scores;  // as many as tokens, or none
  std::vector<int32_t>
      types;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; as many as tokens, or none
  std::vector<std::string> merges;  // "left right", best first
  std::optional<int32_t> bos, eos, eot, eom, unk, sep, pad, mask;
  std::optional<bool> add_bos, add_eos, add_sep;
  std::optional<bool> add_space_prefix, remove_extra_whitespaces;
  std::optional<bool> lowercase, strip_accents;  // tokenizer.ggml.normalizer.*
  std::string precompiled_charsmap;              // bytes
};

struct EncodeOptions {
  bool parse_special = false;  // special tokens written in the text become their ids
  bool add_special = false;    // what the model adds: a start (BOS, [CLS]), an end
};

class Tokenizer {
 public:
  // Hugging Face's tokenizer.json. The config names special tokens (bos_token, eos_token, …). Padding and truncation
  // that a file asks for are not done here.
  static Tokenizer from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json = {});
  static Tokenizer from_gguf(const GgufVocabulary& vocabulary);

  // Text that is not UTF-8 is taken as its bytes where the vocabulary has bytes (SentencePiece BPE), else with U+FFFD.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // Throws where an id is not one of the vocabulary. Bytes that are no character are U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int32_t size() const;                      // ids are below it
  std::string_view piece(int32_t id) const;  // as the vocabulary spells it; empty for an id that is not used
  std::optional<int32_t> id_of(std::string_view piece) const;
  bool is_special(int32_t id) const;  // one that decode skips
  bool is_end(int32_t id) const;      // generation stops here: the end of text, of a turn, of a message

  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  std::optional<int32_t> pad() const;
  std::optional<int32_t> unk() const;
  bool adds_bos() const;  // add_special puts bos() first

  struct Impl;  // src/text/tokenizer_impl.h

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;  // nothing changes in it: copies share it, threads too
};

// Ids one by one; each push gives the characters that are whole by then. What it gives in all is decode() of the ids.
class StreamDecoder {
 public:
  // `context`: ids before the first one that is pushed (a prompt). Their text is not given, but a space at the start of
  // what follows belongs to the text then.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> context = {}, bool skip_special = true);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  std::string push(int32_t id);
  std::string finish();  // what was left: the start of a character is U+FFFD

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
