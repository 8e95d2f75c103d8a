// Any bytes as a tokenizer.json and a text, as a chat template, and as a text for tokenizers that are there: an answer
// or rlx::Error, nothing else. The first byte says which, and which tokenizer; a zero byte parts file and text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "text/byte_level.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

// Streaming gives what decoding gives, and only whole characters.
void check_decoding(const rlx::Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool same) {
  rlx::StreamDecoder stream(tokenizer);
  std::string all;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    if (!rlx::text::is_valid_utf8(piece)) std::abort();
    all += piece;
  }
  all += stream.finish();
  const std::string decoded = tokenizer.decode(ids);
  if (!rlx::text::is_valid_utf8(decoded) || (same && decoded != all)) std::abort();
}

void encode_all(const rlx::Tokenizer& tokenizer, std::string_view text, bool same) {
  for (const bool parse_special : {false, true}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = parse_special, .add_special = true});
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer.size()) std::abort();
    check_decoding(tokenizer, ids, same);
  }
}

rlx::GgufVocabulary vocabulary(std::string model) {
  rlx::GgufVocabulary v;
  v.model = std::move(model);
  v.pre = "qwen2";
  v.merges = {"a b", "ab c", "Ġ a", "x yz"};
  v.tokens = {"<unk>", "<s>", "</s>", "<|im_end|>", "user ", "▁", "▁a", "ab", "abc", "Ġa", "é", "▁ab", "##"};
  v.types = {2, 3, 3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1};
  v.bos = 1, v.eos = 2, v.unk = 0, v.sep = 2, v.pad = 0;
  for (int b = 0; b < 256; ++b) {
    const std::string piece = v.model == "gpt2" ? rlx::text::bytes_as_characters(std::string(1, static_cast<char>(b)))
                                                : rlx::text::byte_piece(static_cast<uint8_t>(b));
    if (v.model == "gpt2" && piece == "é") continue;
    v.tokens.push_back(piece);
    v.types.push_back(v.model == "gpt2" ? 1 : 6);
  }
  for (size_t i = 0; i < v.tokens.size(); ++i) v.scores.push_back(-static_cast<float>(i % 17));
  return v;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t zero = input.find('\0');
  const std::string_view first = input.substr(0, zero),
                         second = zero == std::string_view::npos ? "" : input.substr(zero + 1);
  try {
    switch (data[0] % 3) {
      case 0:
        encode_all(rlx::Tokenizer::from_json(first), second.empty() ? "Hello, wörld 12 <s>\n" : second, false);
        break;
      case 1: {
        const rlx::ChatTemplate chat(first);
        chat.render({{"system", "s"}, {"user", std::string(second)}},
                    {.add_generation_prompt = true, .bos_token = "<s>", .now = 1});
        break;
      }
      default: {
        static const std::vector<rlx::Tokenizer> kTokenizers = [] {
          std::vector<rlx::Tokenizer> all;
          for (const char* model : {"gpt2", "llama", "t5", "bert"})
            all.push_back(rlx::Tokenizer::from_gguf(vocabulary(model)));
          return all;
        }();
        const size_t which = data[0] / 3 % kTokenizers.size();
        encode_all(kTokenizers[which], input, which == 0);
      }
    }
  } catch (const rlx::Error&) {
  }
  return 0;
}
