#include "text/decoder.h"

#include <gtest/gtest.h>

#include "rlx/error.h"
#include "text/test_vocabulary.h"
#include "text/unicode.h"

namespace rlx {
namespace {

TEST(StreamDecoder, GivesWholeCharactersOnly) {
  const Tokenizer t = Tokenizer::from_gguf(test::byte_level_vocabulary());
  const std::string text = "a\u00e9\u20ac\U0001F600 \U0001F469\u200D\U0001F4BB";
  StreamDecoder stream(t);
  std::string all;
  for (const int32_t id : t.encode(text)) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(text::is_valid_utf8(piece));
    EXPECT_EQ(piece.find("\uFFFD"), std::string::npos);
    all += piece;
  }
  EXPECT_EQ(all + stream.finish(), text);
}

TEST(StreamDecoder, EverySequenceOfBytesIsWhatDecodeGives) {
  const Tokenizer t = Tokenizer::from_gguf(test::byte_level_vocabulary());
  const uint8_t kBytes[] = {'a',  0x80, 0xBF, 0xC3, 0xA9, 0xE2, 0x82, 0xAC,
                            0xF0, 0x9F, 0x98, 0xED, 0xA0, 0xF4, 0x90, 0xFF};
  for (size_t n = 0; n < 16 * 16 * 16 * 16; ++n) {  // all sequences of four of them
    std::vector<int32_t> ids;
    std::string bytes;
    for (size_t rest = n, i = 0; i < 4; ++i, rest /= 16) {
      ids.push_back(kBytes[rest % 16]);
      bytes += static_cast<char>(kBytes[rest % 16]);
    }
    StreamDecoder stream(t);
    std::string all;
    for (const int32_t id : ids) all += stream.push(id);
    all += stream.finish();
    ASSERT_EQ(all, t.decode(ids)) << n;
    ASSERT_EQ(all, text::to_valid_utf8(bytes)) << n;
  }
}

TEST(StreamDecoder, ASpaceBelongsToTheTextThatFollowsAPrompt) {
  const Tokenizer t = Tokenizer::from_gguf(test::sentence_piece_vocabulary());
  const std::vector<int32_t> ids = t.encode("hello");
  StreamDecoder fresh(t), after(t, ids);
  EXPECT_EQ(fresh.push(ids[0]), "hello");
  EXPECT_EQ(after.push(ids[0]), " hello");
}

TEST(StreamDecoder, BytesOfSentencePieceWaitForTheirCharacter) {
  const Tokenizer t = Tokenizer::from_gguf(test::sentence_piece_vocabulary());
  StreamDecoder stream(t);
  EXPECT_EQ(stream.push(*t.id_of("<0xE2>")), "");
  EXPECT_EQ(stream.push(*t.id_of("<0x82>")), "");
  EXPECT_EQ(stream.push(*t.id_of("<0xAC>")), "€");
  EXPECT_EQ(stream.push(*t.id_of("<0xE2>")), "");
  EXPECT_EQ(stream.push(*t.id_of("h")), "\uFFFDh");
  EXPECT_EQ(stream.push(*t.id_of("<0xE2>")), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST(Decoder, IdsOutsideTheVocabularyAreErrors) {
  const Tokenizer t = Tokenizer::from_gguf(test::byte_level_vocabulary());
  for (const int32_t id : {-1, t.size(), INT32_MAX, INT32_MIN}) {
    EXPECT_THROW(t.decode(std::vector<int32_t>{id}), Error);
    EXPECT_THROW(t.piece(id), Error);
    EXPECT_THROW(StreamDecoder(t).push(id), Error);
  }
}

}  // namespace
}  // namespace rlx
