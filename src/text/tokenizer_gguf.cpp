// The vocabulary in a GGUF file's metadata, read as llama.cpp reads it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/gguf_patterns.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace rlx {
namespace {

using namespace text;

constexpr std::string_view kSpace = "▁";

enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct GgufTokenizer : Tokenizer::Impl {
  enum class Kind { kByteLevel, kScores, kUnigram, kWordPiece } kind = Kind::kByteLevel;
  ControlTokens control;
  std::vector<PreTokenizer> pre_tokenizers;  // byte-level
  Charsmap charsmap;                         // unigram
  Trie user_defined;
  BertOptions bert;  // WordPiece
  std::unique_ptr<Model> model;
  std::optional<int32_t> sep;
  bool add_bos = false, add_eos = false, add_sep = false;
  bool add_space_prefix = false, remove_extra_spaces = false;

  void encode(std::string_view input, EncodeOptions options, std::vector<int32_t>& ids) const override {
    // SentencePiece's vocabulary has pieces for bytes; the others replace what is no character.
    const std::string text = kind == Kind::kScores ? std::string(input) : to_valid_utf8(input, Invalid::kPerByte);
    WordCache cache(*model);
    if (options.add_special && add_bos && bos) ids.push_back(*bos);
    bool after_special = true;
    for (const Fragment& fragment : control.find(text, options.parse_special)) {
      if (fragment.id >= 0)
        ids.push_back(fragment.id);
      else
        encode_text(text.substr(fragment.start, fragment.size), after_special, cache, ids);
      after_special = fragment.id >= 0;
    }
    if (!options.add_special) return;
    if (kind == Kind::kWordPiece && sep) ids.push_back(*sep);
    if (kind != Kind::kWordPiece && add_eos && eos) ids.push_back(*eos);
  }

  void encode_text(std::string text, bool after_special, WordCache& cache, std::vector<int32_t>& ids) const {
    switch (kind) {
      case Kind::kByteLevel:
        for (const Word& word : run_pre_tokenizers(pre_tokenizers, {std::move(text), false}))
          cache.encode(word.text, ids);
        break;
      case Kind::kScores:
        if (add_space_prefix && after_special) text = ' ' + text;
        model->encode(replace_all(text, " ", kSpace), ids);
        break;
      case Kind::kUnigram: model->encode(normalized(text), ids); break;
      case Kind::kWordPiece:
        for (const std::string& word : bert_words(text)) cache.encode(word, ids);
        break;
    }
  }

  // The character map applied, spaces as ▁: one before the text, runs of them as one where the model wants that.
  std::string normalized(std::string_view text) const {
    std::string out;
    bool prefixed = false, in_word = false;
    for (size_t pos = 0; pos < text.size();) {
      const std::string_view rest = text.substr(pos);
      const Character character = first_character(rest);
      std::string_view piece = character.valid ? rest.substr(0, character.size) : "\xEF\xBF\xBD";
      size_t consumed = character.valid ? character.size : 1;  // an entry of the map may end inside a character
      if (const Trie::Found found = user_defined.longest(rest); found.size > 0) {
        piece = rest.substr(0, consumed = found.size);
      } else if (const auto replacement = charsmap.longest(rest)) {
        piece = replacement->text;
        consumed = replacement->size;
      }
      pos += consumed;
      for (const char c : piece) {
        if (c == ' ') {
          in_word = false;
          if (!remove_extra_spaces) out += kSpace;
          continue;
        }
        if (!in_word && ((add_space_prefix && !prefixed) || remove_extra_spaces)) {
          out += kSpace;
          prefixed = true;
        }
        in_word = true;
        out += c;
      }
    }
    return out;
  }

  // llama.cpp's cuts: white space, punctuation, ASCII symbols and Chinese characters; control characters go. Decomposed
  // as BERT itself does it: llama.cpp keeps the first part alone of Korean syllables, and drops marks that Indic vowels
  // are.
  std::vector<std::string> bert_words(std::string_view text) const {
    std::vector<std::string> words(1);
    const std::string decomposed = bert.strip_accents ? normalize(text, Form::kNfd) : std::string(text);
    for (size_t pos = 0; pos < decomposed.size();) {
      const char32_t c = next_character(decomposed, pos);
      if (is_white_space(c)) {
        if (!words.back().empty()) words.emplace_back();
        continue;
      }
      if (c == 0 || c == kReplacement || is_other(c) || (bert.strip_accents && is_nonspacing_mark(c))) continue;
      const std::string spelled = bert.lowercase ? lower(to_utf8(c)) : to_utf8(c);
      if (is_punctuation(c) || is_cjk_ideograph(c)) {
        if (!words.back().empty()) words.emplace_back();
        words.back() = spelled;
        words.emplace_back();
      } else {
        words.back() += spelled;
      }
    }
    if (words.back().empty()) words.pop_back();
    return words;
  }
};

struct Builder {
  const GgufVocabulary& source;
  GgufTokenizer& tokenizer;
  std::vector<int32_t> types;

  void check() const {
    const size_t count = source.tokens.size();
    require(count > 0, "The model has no vocabulary (tokenizer.ggml.tokens is empty).");
    require(source.scores.empty() || source.scores.size() >= count, "The vocabulary has ", count, " tokens but ",
            source.scores.size(), " scores.");
    require(source.types.empty() || source.types.size() >= count, "The vocabulary has ", count, " tokens but ",
            source.types.size(), " types.");
    for (const float score : source.scores)
      require(std::isfinite(score), "A score of the vocabulary is not a finite number.");
  }

  void add_tokens() {
    types = source.types;
    types.resize(source.tokens.size(), kNormal);
    for (size_t id = 0; id < source.tokens.size(); ++id) {
      const std::string& token = source.tokens[id];
      tokenizer.vocabulary.add(token.empty() ? str("[EMPTY_", id, "]") : token, static_cast<int64_t>(id));
      if (looks_like_control(token) && !is_special(types[id])) types[id] = kControl;
      // Parts of gpt-oss's answers: never control tokens, or half an answer would vanish.
      if (token == "<|channel|>" || token == "<|message|>" || token == "<|start|>" || token == "<|constrain|>")
        types[id] = kUserDefined;
    }
  }

  static bool is_special(int32_t type) { return type == kControl || type == kUnknown; }

  // An id of the file, or the default of the kind of vocabulary where that is a token at all.
  std::optional<int32_t> special_id(std::optional<int32_t> id, std::optional<int32_t> otherwise,
                                    std::string_view what) const {
    const auto count = static_cast<int64_t>(source.tokens.size());
    require(!id || (*id >= 0 && *id < count), "The id of the model's ", what, " token (", id.value_or(0),
            ") is not below the size of the vocabulary (", count, ").");
    if (id) return id;
    return otherwise && *otherwise < count ? otherwise : std::nullopt;
  }

  bool name_has(std::string_view part) const {
    return lower(to_valid_utf8(source.name)).find(part) != std::string::npos;
  }

  void find_control_tokens() {
    const bool phi3 = name_has("phi-3") || name_has("phi3");
    const bool mask_strips = source.pre.starts_with("jina-v2-") || source.architecture == "nomic-bert-moe" ||
                             source.architecture == "jina-bert-v3";
    std::vector<ControlToken> found;
    for (size_t id = 0; id < types.size(); ++id) {
      if (!is_special(types[id]) && types[id] != kUserDefined) continue;
      const std::string& text = source.tokens[id];
      ControlToken token{text, static_cast<int32_t>(id), is_special(types[id])};
      token.rstrip = phi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
      token.lstrip = (mask_strips && text == "<mask>") || (name_has("modern-bert") && text == "[MASK]");
      if (token.special) tokenizer.special.insert(token.id);
      found.push_back(std::move(token));
    }
    tokenizer.control = ControlTokens(std::move(found));
  }

  void find_special_ids(std::optional<int32_t> bos, std::optional<int32_t> eos, std::optional<int32_t> unk,
                        std::optional<int32_t> sep, std::optional<int32_t> pad) {
    tokenizer.bos = special_id(source.bos, bos, "start");
    tokenizer.eos = special_id(source.eos, eos, "end");
    tokenizer.unk = special_id(source.unk, unk, "unknown");
    tokenizer.sep = special_id(source.sep, sep, "separator");
    tokenizer.pad = special_id(source.pad, pad, "padding");
    for (const auto& [id, what] : {std::pair(source.eot, "end-of-turn"), {source.eom, "end-of-message"}})
      if (const auto end = special_id(id, std::nullopt, what)) tokenizer.ends.insert(*end);
    tokenizer.find_ends();
  }

  void byte_level() {
    tokenizer.kind = GgufTokenizer::Kind::kByteLevel;
    const GgufPatterns patterns = patterns_of(source.pre);
    for (const std::string_view pattern : patterns.patterns)
      tokenizer.pre_tokenizers.push_back(split_isolated(pattern));
    tokenizer.pre_tokenizers.push_back(byte_level_characters());
    require(!source.merges.empty(), "The model's vocabulary has no merges (tokenizer.ggml.merges).");
    Merges merges;
    for (const std::string& merge : source.merges) {
      const size_t space = merge.find(' ', 1);  // a piece may be a space, at the start
      if (space == std::string::npos)
        fail(ErrorKind::kInvalid, str("A merge of the vocabulary ('", excerpt(merge), "') is not a pair."));
      merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
    tokenizer.model =
        make_bpe(tokenizer.vocabulary, merges, {.ignore_merges = patterns.ignore_merges, .lenient = true});
    tokenizer.decoder = {byte_level_step()};
    tokenizer.add_bos = source.add_bos.value_or(patterns.add_bos);
    tokenizer.add_eos = source.add_eos.value_or(false);
    const bool no_start = source.pre == "chatglm-bpe" || source.pre == "glm4" || source.pre == "glm5";
    find_special_ids(no_start ? std::nullopt : std::optional(11), 11, std::nullopt, std::nullopt, std::nullopt);
  }

  void text_decoder() {
    tokenizer.decoder = {replace_step(std::string(kSpace), " "), byte_fallback_step(), fuse_step()};
    if (tokenizer.add_space_prefix) tokenizer.decoder.push_back(strip_step(" ", 1, 0));
    tokenizer.decoder.push_back(utf8_step());
  }

  void scores() {
    tokenizer.kind = GgufTokenizer::Kind::kScores;
    require(!source.scores.empty(), "The model's vocabulary has no scores (tokenizer.ggml.scores).");
    find_special_ids(1, 2, 0, std::nullopt, std::nullopt);
    tokenizer.model = make_score_bpe(tokenizer.vocabulary, source.scores, tokenizer.unk.value_or(-1));
    tokenizer.add_space_prefix = source.add_space_prefix.value_or(true);
    tokenizer.add_bos = source.add_bos.value_or(true);
    tokenizer.add_eos = source.add_eos.value_or(false);
    text_decoder();
  }

  void unigram() {
    tokenizer.kind = GgufTokenizer::Kind::kUnigram;
    require(!source.scores.empty(), "The model's vocabulary has no scores (tokenizer.ggml.scores).");
    find_special_ids(std::nullopt, 1, 2, std::nullopt, 0);
    std::vector<ScoredPiece> pieces;
    float lowest = std::numeric_limits<float>::max();
    for (size_t id = 0; id < source.tokens.size(); ++id) {
      const int32_t type = source.types.empty()
                               ? int32_t{kNormal}
                               : source.types[id];  // the file's: a piece that looks like control stays one
      const bool user_defined = type == kUserDefined;
      if (type == kNormal) lowest = std::min(lowest, source.scores[id]);
      if (type == kNormal || type == kUnused || user_defined)
        pieces.push_back({source.tokens[id], static_cast<int32_t>(id), user_defined ? 0.0 : source.scores[id]});
      if (user_defined && !source.tokens[id].empty()) tokenizer.user_defined.insert(source.tokens[id], 0);
    }
    constexpr float kUnkPenalty = 10;
    tokenizer.model =
        make_unigram(tokenizer.vocabulary, pieces,
                     {.unk = tokenizer.unk.value_or(-1), .unk_score = lowest - kUnkPenalty, .keep_fused_unk = true});
    tokenizer.charsmap = Charsmap(source.precompiled_charsmap);
    tokenizer.add_space_prefix = source.add_space_prefix.value_or(false);
    tokenizer.remove_extra_spaces = source.remove_extra_whitespaces.value_or(false);
    tokenizer.add_bos = source.add_bos.value_or(false);
    tokenizer.add_eos = source.add_eos.value_or(true);
    text_decoder();
  }

  void word_piece() {
    tokenizer.kind = GgufTokenizer::Kind::kWordPiece;
    find_special_ids(101, std::nullopt, 100, 102, 0);
    tokenizer.bert.lowercase = source.lowercase.value_or(true);
    tokenizer.bert.strip_accents = source.strip_accents.value_or(tokenizer.bert.lowercase);
    tokenizer.model = make_word_piece(tokenizer.vocabulary, {.unk = tokenizer.unk.value_or(-1),
                                                             .prefix = "",
                                                             .mark = std::string(kSpace),
                                                             .max_characters = std::numeric_limits<int64_t>::max()});
    tokenizer.add_bos = true;
    if (!tokenizer.eos) tokenizer.eos = tokenizer.sep;
    tokenizer.decoder = {replace_step(std::string(kSpace), " "), clean_up_step(), fuse_step(), strip_step(" ", 1, 0),
                         utf8_step()};
  }
};

}  // namespace

Tokenizer Tokenizer::from_gguf(const GgufVocabulary& vocabulary) {
  auto tokenizer = std::make_shared<GgufTokenizer>();
  Builder builder{vocabulary, *tokenizer, {}};
  builder.check();
  builder.add_tokens();
  builder.find_control_tokens();
  if (vocabulary.model == "gpt2")
    builder.byte_level();
  else if (vocabulary.model == "llama")
    builder.scores();
  else if (vocabulary.model == "t5")
    builder.unigram();
  else if (vocabulary.model == "bert")
    builder.word_piece();
  else
    fail(ErrorKind::kUnsupported, str("The kind of vocabulary '", excerpt(vocabulary.model),
                                      "' (tokenizer.ggml.model) is not one that rlx knows."));
  tokenizer->adds_bos = tokenizer->add_bos && tokenizer->bos;
  return Tokenizer(std::move(tokenizer));
}

}  // namespace rlx
