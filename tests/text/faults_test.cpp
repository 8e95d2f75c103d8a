// Files that are broken: one sentence each.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rlx/error.h"
#include "text/charsmap.h"
#include "text/test_vocabulary.h"

namespace rlx {
namespace {

using Json = nlohmann::json;

std::string message_of(const std::string& json) {
  try {
    Tokenizer::from_json(json);
  } catch (const Error& e) {
    EXPECT_EQ(e.message().find('\n'), std::string::npos) << e.message();
    return e.message();
  }
  return "";
}

std::string message_of(const GgufVocabulary& vocabulary) {
  try {
    Tokenizer::from_gguf(vocabulary);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(TokenizerFaults, EveryTruncationIsAnError) {
  const std::string json = test::byte_level_json();
  for (size_t size = 0; size < json.size(); ++size) ASSERT_NE(message_of(json.substr(0, size)), "") << size;
  EXPECT_EQ(message_of(json), "");
}

TEST(TokenizerFaults, FlippedBytesNeverEndTheProcess) {
  const std::string json = test::byte_level_json();
  for (size_t at = 0; at < json.size(); ++at) {
    std::string broken = json;
    broken[at] = static_cast<char>(broken[at] ^ (1 << at % 7));
    try {
      const Tokenizer t = Tokenizer::from_json(broken);
      t.decode(t.encode("hello <|im_end|> w\u00f6rld", {.parse_special = true, .add_special = true}));
    } catch (const Error&) {
    }
  }
}

// Every value of the file replaced by values of other types.
void replace_each(const Json& whole, const Json::json_pointer& at, const Json& value) {
  for (const Json& other : {Json(), Json(true), Json(-1), Json(1e300), Json(INT64_MAX), Json(UINT64_MAX),
                            Json("\u00e9"), Json::array(), Json::array({1}), Json::object()}) {
    Json changed = whole;
    changed[at] = other;
    try {
      const Tokenizer t = Tokenizer::from_json(changed.dump());
      t.decode(t.encode("hello <|im_end|>", {.parse_special = true, .add_special = true}));
    } catch (const Error&) {
    }
  }
  if (!value.is_structured() || (value.is_array() && value.size() > 50)) return;
  size_t count = 0;
  for (const auto& [key, child] : value.items()) {
    if (++count > 12) break;
    replace_each(whole, value.is_array() ? at / static_cast<size_t>(std::stoul(key)) : at / key, child);
  }
}

TEST(TokenizerFaults, WrongTypesAreErrors) {
  const Json whole = Json::parse(test::byte_level_json());
  replace_each(whole, Json::json_pointer(), whole);
}

TEST(TokenizerFaults, Sentences) {
  EXPECT_NE(message_of("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(message_of("{}").find("has no 'model'"), std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "BPE"}})").find("has no 'vocab'"), std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})").find("not an object with tokens"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}})").find("is not below"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})").find("does not have"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "Magic"}})").find("not one that rlx knows"), std::string::npos);
  EXPECT_NE(message_of(R"({"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 7}})").find("unk_id"),
            std::string::npos);
  EXPECT_NE(
      message_of(
          R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}, "model": {}})")
          .find("regular expression"),
      std::string::npos);
}

TEST(TokenizerFaults, GgufSentences) {
  const GgufVocabulary good = test::byte_level_vocabulary();
  EXPECT_EQ(message_of(good), "");
  GgufVocabulary v = good;
  v.tokens.clear();
  EXPECT_NE(message_of(v).find("no vocabulary"), std::string::npos);
  (v = good).model = "magic";
  EXPECT_NE(message_of(v).find("'magic'"), std::string::npos);
  (v = good).pre = "magic";
  EXPECT_NE(message_of(v).find("'magic'"), std::string::npos);
  (v = good).merges.clear();
  EXPECT_NE(message_of(v).find("no merges"), std::string::npos);
  (v = good).merges.push_back("one");
  EXPECT_NE(message_of(v).find("not a pair"), std::string::npos);
  (v = good).types.resize(3);
  EXPECT_NE(message_of(v).find("3 types"), std::string::npos);
  (v = good).eos = 1'000'000;
  EXPECT_NE(message_of(v).find("1000000"), std::string::npos);
  v = test::sentence_piece_vocabulary();
  v.scores.clear();
  EXPECT_NE(message_of(v).find("no scores"), std::string::npos);
  v = test::sentence_piece_vocabulary();
  v.scores[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(message_of(v).find("finite"), std::string::npos);
}

TEST(TokenizerFaults, CharacterMaps) {
  EXPECT_THROW(text::Charsmap("abc"), Error);
  EXPECT_THROW(text::Charsmap(std::string("\xFF\xFF\xFF\x7F", 4)), Error);
  EXPECT_THROW(text::Charsmap(std::string("\x03\0\0\0abc", 7)), Error);
  for (uint32_t unit : {0u, 0xFFFFFFFFu, 0x400u, 0x7FFFFFFFu, 0x161u, 0x80000000u}) {  // tables that lead nowhere
    std::string bytes("\x10\0\0\0", 4);
    for (int i = 0; i < 4; ++i) bytes.append(reinterpret_cast<const char*>(&unit), 4);
    text::Charsmap(bytes).longest("abc");
    text::Charsmap(bytes).shortest("\xE2\x82\xAC");
  }
}

}  // namespace
}  // namespace rlx
