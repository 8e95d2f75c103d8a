// A megabyte without a space must take about a second, not hours.
#include <gtest/gtest.h>

#include <ctime>

#include "text/test_vocabulary.h"

namespace rlx {
namespace {

double seconds_for(const Tokenizer& t, const std::string& text) {
  const std::clock_t start = std::clock();  // of this process: other work on the machine does not count
  const std::vector<int32_t> ids = t.encode(text);
  EXPECT_EQ(t.decode(ids), text);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Twenty times what a quiet machine needs; anything quadratic takes hours.
constexpr double kLimit = 30;

TEST(Speed, LongWords) {
  std::string hello, mixed;
  while (hello.size() < 1 << 20) hello += "hello";
  for (size_t i = 0; mixed.size() < 1 << 20; ++i) mixed += static_cast<char>('a' + i * i % 23);
  for (const std::string& text : {std::string(1 << 20, 'a'), hello, mixed, std::string(1 << 20, ' '),
                                  std::string(1 << 20, '\n'), std::string(1 << 20, '7')}) {
    EXPECT_LT(seconds_for(Tokenizer::from_json(test::byte_level_json()), text), kLimit);
    EXPECT_LT(seconds_for(Tokenizer::from_gguf(test::sentence_piece_vocabulary()), text), kLimit);
  }
}

TEST(Speed, EveryWayToSplit) {
  for (const char* pre :
       {"default", "llama-bpe", "qwen2", "tekken", "gpt-4o", "deepseek-llm", "deepseek-v3", "smollm", "bloom"}) {
    GgufVocabulary v = test::byte_level_vocabulary();
    v.pre = pre;
    const Tokenizer t = Tokenizer::from_gguf(v);
    for (const char c : {'a', 'A', ' ', '\n', '7', '!'})
      EXPECT_LT(seconds_for(t, std::string(1 << 19, c)), kLimit) << pre << " " << c;
  }
}

}  // namespace
}  // namespace rlx
