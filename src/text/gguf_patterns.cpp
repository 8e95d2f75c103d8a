#include "text/gguf_patterns.h"

#include <algorithm>

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

// What models' tokenizer.json files say, with llama.cpp's classes where it simplifies them (a letter that is not a-z
// stands for an upper-case one), so that ids are the same. [^\P{L}a-z] is a letter and not a-z.
#define CONTRACTION R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define CASED_WORD(tail) \
  R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]*[^\P{L}A-Z]+)" tail R"(|[^\r\n\p{L}\p{N}]?[^\P{L}a-z]+[^\P{L}A-Z]*)" tail
#define MARKED_WORD(tail)                                                                \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" tail \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" tail

// clang-format off
constexpr std::string_view
    kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    kDigit = R"(\p{N})",
    kDigits3 = R"(\p{N}{1,3})",
    kLlama3 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
    kQwen2 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
    kQwen35 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES,
    kMinicpm5 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
    kSeedCoder = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES,
    kBailing = R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    kJais2 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})",
    kTekken = CASED_WORD("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES,
    kGpt4o = CASED_WORD(CONTRACTION "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES,
    kTinyAya = MARKED_WORD(CONTRACTION "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES,
    kDeepseek3Cjk = R"([一-龥぀-ゟ゠-ヿ]+)",
    kDeepseek3 = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES,
    kDeepseekCjk = R"([一-龥ࠀ-一가-퟿]+)",
    kDeepseekLetters = R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    kDeepseekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    kFalcon = R"([\p{P}\$\+<=>\^~\|`]+)",
    kDefault = R"([\p{P}\$\+<=>\^~\|]+)",
    kThreeDigits = R"([0-9][0-9][0-9])",
    kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

struct Row {
  std::string_view names;  // separated by spaces
  GgufPatterns what;
};

const Row kRows[] = {
    {"default", {{kDefault, kGpt2, R"(\p{N}+)", kThreeDigits}}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", {{kLlama3}, true, true}},
    {"dbrx smaug-bpe chatglm-bpe", {{kLlama3}}},
    {"glm4 glm5", {{kLlama3}, true}},
    {"jais-2", {{kJais2}}},
    {"deepseek-llm", {{"[\r\n]", kDeepseekLetters, kDeepseekPunctuation, R"(\s+$)", kDeepseekCjk, R"(\p{N}+)"}}},
    {"deepseek-coder", {{"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, kDigit}}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {{kDigits3, kDeepseek3Cjk, kDeepseek3}}},
    {"falcon", {{kFalcon, kGpt2, kThreeDigits}}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {{kDigit, kGpt2}}},
    {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt olmo jais trillion granite-docling exaone4", {{kGpt2}}},
    {"jina-v1-en jina-v2-code roberta-bpe", {{kGpt2}, false, false, true}},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan solar-open megrez grok-2", {{kQwen2}}},
    {"qwen35", {{kQwen35}}},
    {"minicpm5", {{kDigits3, kMinicpm5}, true}},
    {"seed-coder", {{kSeedCoder}}},
    {"bailingmoe bailingmoe2 llada-moe", {{kBailing}}},
    {"poro-chat bloom gpt3-finnish", {{kBloom}}},
    {"viking", {{kBloom, kDigit}}},
    {"tekken", {{kTekken}, true, true}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {{kGpt4o}}},
    {"tiny_aya cohere2moe", {{R"(\d{1,3}(?=(?:\d{3})*\b))", kTinyAya}}},
    {"superbpe", {{R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}}},
    {"chameleon", {{"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\t\n]|    |  )", kDigit, R"([\p{P}!-/:-@\[-`{-~])", kGpt2}, false, true}},
};
// clang-format on

bool has_name(std::string_view names, std::string_view name) {
  for (size_t at = 0; (at = names.find(name, at)) != std::string_view::npos; at += name.size()) {
    const size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ' ') && (end == names.size() || names[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

GgufPatterns patterns_of(std::string_view pre) {
  const std::string_view name = pre.empty() ? "default" : pre;
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return has_name(r.names, name); });
  if (row == std::end(kRows) || name.find(' ') != std::string_view::npos)
    fail(ErrorKind::kUnsupported,
         str("The way '", excerpt(name), "' to split text (tokenizer.ggml.pre) is not one that rlx knows."));
  return row->what;
}

}  // namespace rlx::text
