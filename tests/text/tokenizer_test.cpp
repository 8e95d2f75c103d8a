#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/test_vocabulary.h"

namespace rlx {
namespace {

using Ids = std::vector<int32_t>;

std::vector<std::string> pieces(const Tokenizer& tokenizer, const Ids& ids) {
  std::vector<std::string> out;
  for (const int32_t id : ids) out.emplace_back(tokenizer.piece(id));
  return out;
}

TEST(Tokenizer, ByteLevelMergesByRank) {
  for (const Tokenizer& t :
       {Tokenizer::from_json(test::byte_level_json()), Tokenizer::from_gguf(test::byte_level_vocabulary())}) {
    EXPECT_EQ(pieces(t, t.encode("hello world")), (std::vector<std::string>{"hello", "Ġw", "o", "r", "l", "d"}));
    EXPECT_EQ(t.encode("").size(), 0u);
    EXPECT_EQ(pieces(t, t.encode("aaaaa")), (std::vector<std::string>{"aaaa", "a"}));
  }
}

TEST(Tokenizer, SpecialTokensAreParsedOnlyWhenAsked) {
  for (const Tokenizer& t :
       {Tokenizer::from_json(test::byte_level_json()), Tokenizer::from_gguf(test::byte_level_vocabulary())}) {
    const int32_t end = *t.id_of("<|im_end|>"), user = *t.id_of("<user>");
    EXPECT_EQ(t.encode("<|im_end|>", {.parse_special = true}), Ids{end});
    EXPECT_GT(t.encode("<|im_end|>").size(), 5u);
    EXPECT_EQ(t.encode("<user>"), Ids{user});  // an added token that is not special always is
    EXPECT_TRUE(t.is_special(end));
    EXPECT_FALSE(t.is_special(user));
    EXPECT_TRUE(t.is_end(end));
    EXPECT_FALSE(t.is_end(user));
    EXPECT_EQ(t.decode(Ids{end, user}), "<user>");
    EXPECT_EQ(t.decode(Ids{end, user}, false), "<|im_end|><user>");
  }
}

TEST(Tokenizer, AddsWhatTheModelAdds) {
  GgufVocabulary v = test::byte_level_vocabulary();
  v.add_bos = true;
  v.add_eos = true;
  const Tokenizer gguf = Tokenizer::from_gguf(v);
  EXPECT_EQ(gguf.encode("", {.add_special = true}), (Ids{*v.bos, *v.eos}));
  EXPECT_TRUE(gguf.adds_bos());
  const Tokenizer json = Tokenizer::from_json(
      test::byte_level_json(), R"({"bos_token": {"content": "<|im_start|>"}, "eos_token": "<|im_end|>"})");
  EXPECT_EQ(json.encode("", {.add_special = true}), Ids{*v.bos});
  EXPECT_EQ(json.bos(), v.bos);
  EXPECT_EQ(json.eos(), v.eos);
  EXPECT_TRUE(json.adds_bos());
  EXPECT_FALSE(Tokenizer::from_gguf(test::byte_level_vocabulary()).adds_bos());
}

TEST(Tokenizer, TextThatIsNotUtf8) {
  const std::string broken = "h\xFF\xC3(\xE2\x82";
  const Tokenizer json = Tokenizer::from_json(test::byte_level_json());
  EXPECT_EQ(json.decode(json.encode(broken)), "h\uFFFD\uFFFD(\uFFFD");  // one for each start of a character, as Python
  const Tokenizer gguf = Tokenizer::from_gguf(test::byte_level_vocabulary());
  EXPECT_EQ(gguf.decode(gguf.encode(broken)), "h\uFFFD\uFFFD(\uFFFD\uFFFD");  // one for each byte, as llama.cpp
  const Tokenizer bytes = Tokenizer::from_gguf(test::sentence_piece_vocabulary());
  EXPECT_EQ(pieces(bytes, bytes.encode("\xFFh")),
            (std::vector<std::string>{"▁", "<0xFF>", "<0x68>"}));  // 0xFF would start a character: as llama.cpp
  EXPECT_EQ(bytes.decode(bytes.encode("\xFFh")), "\uFFFD\uFFFD");
}

TEST(Tokenizer, SentencePieceJoinsTheBestPairFirst) {
  const Tokenizer t = Tokenizer::from_gguf(test::sentence_piece_vocabulary());
  EXPECT_EQ(pieces(t, t.encode("hello")), (std::vector<std::string>{"▁hello"}));
  EXPECT_EQ(pieces(t, t.encode("hlo el")), (std::vector<std::string>{"▁h", "lo", "▁", "el"}));
  EXPECT_EQ(pieces(t, t.encode("é€")), (std::vector<std::string>{"▁", "é", "<0xE2>", "<0x82>", "<0xAC>"}));
  EXPECT_EQ(t.encode("", {.add_special = true}), Ids{1});
  EXPECT_EQ(t.decode(t.encode("hello  €\n")), "hello  €\n");
  EXPECT_EQ(t.decode(t.encode(" hello")), " hello");
}

}  // namespace
}  // namespace rlx
