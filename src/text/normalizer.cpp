#include "text/normalizer.h"

#include <memory>

#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

template <class Keep>
std::string keep_characters(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    if (keep(next_character(text, pos))) out += text.substr(start, pos - start);
  }
  return out;
}

// SentencePiece's nmt_nfkc without its table: control characters go, odd spaces become spaces.
std::string nmt(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_character(text, pos);
    if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) continue;
    const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == kReplacement;
    append_utf8(out, space ? U' ' : c);
  }
  return out;
}

// Hugging Face looks up whole graphemes of less than 6 bytes, then single characters, and takes the shortest entry that
// starts one: not what SentencePiece does, but what models saw.
std::string apply_charsmap(const Charsmap& map, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view grapheme = text.substr(0, grapheme_size(text));
    text.remove_prefix(grapheme.size());
    if (grapheme.size() < 6) {
      if (const auto found = map.shortest(grapheme)) {
        out += found->text;
        continue;
      }
    }
    for (size_t pos = 0; pos < grapheme.size();) {
      const size_t start = pos;
      next_character(grapheme, pos);
      const std::string_view character = grapheme.substr(start, pos - start);
      const auto found = map.shortest(character);
      out += found ? found->text : character;
    }
  }
  return out;
}

std::string decode_base64(std::string_view text, const std::string& path) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=' || c == '\n') continue;
    const size_t digit = kDigits.find(c);
    require(digit != std::string_view::npos, "'", path, "' is not base64.");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return out;
}

void read(const JsonReader& json, std::vector<Normalizer>& steps) {
  const std::string type = json.type();
  if (type == "Sequence") {
    const JsonReader parts = json.at("normalizers");
    for (size_t i = 0; i < parts.array_size(); ++i) read(parts.element(i), steps);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    const Form form = type == "NFC"    ? Form::kNfc
                      : type == "NFD"  ? Form::kNfd
                      : type == "NFKC" ? Form::kNfkc
                                       : Form::kNfkd;
    steps.push_back([form](std::string text) { return normalize(text, form); });
  } else if (type == "Lowercase") {
    steps.push_back([](std::string text) { return lower(text); });
  } else if (type == "StripAccents") {
    steps.push_back([](std::string text) { return keep_characters(text, [](char32_t c) { return !is_mark(c); }); });
  } else if (type == "Strip") {
    const bool left = json.boolean_or("strip_left", true), right = json.boolean_or("strip_right", true);
    steps.push_back([=](std::string text) {
      std::string_view rest = text;
      if (left) rest = strip_left(rest);
      if (right) rest = strip_right(rest);
      return std::string(rest);
    });
  } else if (type == "Prepend") {
    const std::string prefix = json.at("prepend").string();
    steps.push_back([prefix](std::string text) { return text.empty() ? text : prefix + text; });
  } else if (type == "Replace") {
    const Pattern pattern(json.at("pattern"));
    const std::string content = json.at("content").string();
    steps.push_back([=](std::string text) { return pattern.replace(text, content); });
  } else if (type == "BertNormalizer") {
    BertOptions options{.clean_text = json.boolean_or("clean_text", true),
                        .chinese = json.boolean_or("handle_chinese_chars", true),
                        .lowercase = json.boolean_or("lowercase", true)};
    options.strip_accents = json.boolean_or("strip_accents", options.lowercase);
    steps.push_back([options](std::string text) { return bert_normalize(text, options); });
  } else if (type == "Nmt") {
    steps.push_back([](std::string text) { return nmt(text); });
  } else if (type == "Precompiled") {
    const JsonReader bytes = json.at("precompiled_charsmap");
    const auto map = std::make_shared<const Charsmap>(decode_base64(bytes.string(), bytes.path()));
    steps.push_back([map](std::string text) { return apply_charsmap(*map, text); });
  } else if (type == "ByteLevel") {
    steps.push_back([](std::string text) { return bytes_as_characters(text); });
  } else {
    json.unsupported("normalizer");
  }
}

}  // namespace

std::string bert_normalize(std::string_view text, const BertOptions& options) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_character(text, pos);
    const bool space = is_white_space(c);
    if (options.clean_text && (c == 0 || c == kReplacement || (is_other(c) && c != '\t' && c != '\n' && c != '\r')))
      continue;
    if (options.clean_text && space) {
      out += ' ';
    } else if (options.chinese && is_cjk_ideograph(c)) {
      out += ' ';
      append_utf8(out, c);
      out += ' ';
    } else {
      append_utf8(out, c);
    }
  }
  if (options.strip_accents)
    out = keep_characters(normalize(out, Form::kNfd), [](char32_t c) { return !is_nonspacing_mark(c); });
  return options.lowercase ? lower(out) : out;
}

std::vector<Normalizer> read_normalizers(const JsonReader& json) {
  std::vector<Normalizer> steps;
  if (!json.json().is_null()) read(json, steps);
  return steps;
}

std::string run_normalizers(const std::vector<Normalizer>& steps, std::string text) {
  for (const Normalizer& step : steps) text = step(std::move(text));
  return text;
}

}  // namespace rlx::text
