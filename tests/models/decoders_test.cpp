// Every architecture on every backend: the oracle's tokens, however the prompt is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "generate/generator.h"
#include "models/source.h"
#include "support/allocations.h"

namespace rlx::test {

namespace {

using generate::Generator;
using generate::GeneratorOptions;
using Tokens = std::vector<int32_t>;

constexpr int kSteps = 64;

// tiny_models.py writes them before these tests run.
std::vector<std::string> model_names() {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(RLX_TINY_MODELS)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(RLX_TINY_MODELS))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

Tokens prompt(int64_t length, int64_t seed = 1) {
  Tokens out;
  for (int64_t i = 0; i < length; ++i) out.push_back(static_cast<int32_t>(6 + (i * i * 7 + seed * 31 + i * 13) % 90));
  return out;
}

Generator make(const std::string& name, const std::string& device, int64_t batch = 1,
               models::CacheType cache = models::CacheType::kF32, bool keep_scores = false) {
  const auto source = models::open_gguf_source(std::string(RLX_TINY_MODELS) + "/" + name + ".gguf");
  GeneratorOptions options;
  options.compile.device = device;
  options.context = 200;
  options.batch = batch;
  options.cache = cache;
  options.keep_scores = keep_scores;
  options.sampling.temperature = 0;
  return Generator(*source, options);
}

// The likeliest tokens behind what `next` follows.
Tokens go_on(Generator& g, int32_t next, int steps) {
  Tokens out = {next};
  while (static_cast<int>(out.size()) < steps) out.push_back(g.feed(std::span(&out.back(), 1)));
  return out;
}

Tokens greedy(Generator& g, const Tokens& tokens, int steps = kSteps) {
  g.truncate(0, 0);
  return go_on(g, g.feed(tokens), steps);
}

// The same of several sequences, and in `next` what follows.
std::vector<Tokens> greedy_together(Generator& g, const std::vector<Tokens>& prompts, int steps, Tokens& next) {
  next = g.feed(prompts);
  std::vector<Tokens> out(prompts.size());
  for (int i = 0; i < steps; ++i) {
    std::vector<Tokens> one;
    for (size_t s = 0; s < prompts.size(); ++s) {
      out[s].push_back(next[s]);
      one.push_back({next[s]});
    }
    next = g.feed(one);
  }
  return out;
}

bool has_webgpu() {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu") return d.available;
  return false;
}

}  // namespace

class Decoders : public testing::TestWithParam<std::string> {
 protected:
  // The oracle's continuation, of one prompt at a time.
  static Tokens expected(const std::string& name, const Tokens& tokens, int steps = kSteps) {
    Generator oracle = make(name, "reference");
    return greedy(oracle, tokens, steps);
  }
};

TEST_P(Decoders, ThePromptMayBeReadInAnyParts) {
  const Tokens all = prompt(45);
  Generator g = make(GetParam(), "cpu");
  const Tokens whole = greedy(g, all, 24);
  EXPECT_EQ(whole, expected(GetParam(), all, 24));
  for (const size_t first : {1u, 7u, 8u, 9u, 32u, 44u}) {  // each is padded to its bucket, or fills it
    g.truncate(0, 0);
    g.feed(std::span(all).first(first));
    EXPECT_EQ(go_on(g, g.feed(std::span(all).subspan(first)), 24), whole) << first;
  }
}

TEST_P(Decoders, TokensAreTheOraclesOnTheCpu) {
  const Tokens tokens = prompt(5);
  Generator g = make(GetParam(), "cpu");
  EXPECT_EQ(greedy(g, tokens), expected(GetParam(), tokens));
}

TEST_P(Decoders, SeveralSequencesAreAsEachAlone) {
  const std::vector<Tokens> prompts = {prompt(3, 1), prompt(40, 2), prompt(11, 3)};
  Generator g = make(GetParam(), "cpu", 3);
  Tokens next;
  const std::vector<Tokens> got = greedy_together(g, prompts, 24, next);
  Generator alone = make(GetParam(), "cpu");
  for (size_t s = 0; s < 3; ++s) EXPECT_EQ(got[s], greedy(alone, prompts[s], 24)) << s;

  // One of them begins again in the middle, the others go on from where they were.
  g.truncate(1, 20);
  const Tokens more = prompt(4, 9);
  std::vector<Tokens> feeds = {{next[0]}, more, {next[2]}};
  Tokens changed = prompts[1];
  changed.resize(20);
  changed.insert(changed.end(), more.begin(), more.end());
  const Tokens after = g.feed(feeds);
  EXPECT_EQ(after[1], greedy(alone, changed, 1)[0]);
  EXPECT_EQ(after[0], greedy(alone, prompts[0], 26)[25]);
  EXPECT_EQ(after[2], greedy(alone, prompts[2], 26)[25]);
}

TEST_P(Decoders, APrefixIsUsedAgain) {
  Generator g = make(GetParam(), "cpu");
  const Tokens first = prompt(30), tail = prompt(6, 5);
  greedy(g, first, 20);
  for (const int64_t kept : {29, 12, 0}) {
    Tokens all(first.begin(), first.begin() + kept);
    all.insert(all.end(), tail.begin(), tail.end());
    g.truncate(0, kept);
    EXPECT_EQ(go_on(g, g.feed(tail), 16), expected(GetParam(), all, 16)) << kept;
    g.truncate(0, 0);
    greedy(g, first, 20);
  }
}

TEST_P(Decoders, TokensAreTheOraclesOnTheGpu) {
  if (!has_webgpu()) GTEST_SKIP() << "there is no adapter";
  const Tokens tokens = prompt(9);
  Generator g = make(GetParam(), "webgpu");
  EXPECT_EQ(greedy(g, tokens), expected(GetParam(), tokens));
  const Tokens tail = prompt(3, 4);
  Tokens all(tokens.begin(), tokens.begin() + 6);
  all.insert(all.end(), tail.begin(), tail.end());
  g.truncate(0, 6);
  EXPECT_EQ(go_on(g, g.feed(tail), 8), expected(GetParam(), all, 8));
  EXPECT_EQ(g.executable().stats().device.host_steps, 0);
}

TEST_P(Decoders, SeveralSequencesOnTheGpu) {
  if (!has_webgpu()) GTEST_SKIP() << "there is no adapter";
  const std::vector<Tokens> prompts = {prompt(3, 1), prompt(10, 2), prompt(7, 3)};
  Generator g = make(GetParam(), "webgpu", 3);
  Tokens next;
  const std::vector<Tokens> got = greedy_together(g, prompts, 12, next);
  for (size_t s = 0; s < 3; ++s) EXPECT_EQ(got[s], expected(GetParam(), prompts[s], 12)) << s;
}

// One submission, what changed of tokens, positions and length up, one token down, and nothing made.
TEST_P(Decoders, ASteadyStepOnTheGpu) {
  if (!has_webgpu()) GTEST_SKIP() << "there is no adapter";
  Generator g = make(GetParam(), "webgpu");
  go_on(g, g.feed(prompt(5)), 4);
  const DeviceStats before = g.executable().stats().device;
  const auto allocated = allocations();
  int32_t next = 20;
  for (int i = 0; i < 10; ++i) next = g.feed(std::span(&next, 1));
  EXPECT_EQ(allocations(), allocated);
  const DeviceStats after = g.executable().stats().device;
  EXPECT_EQ(after.submits - before.submits, 10);
  EXPECT_EQ(after.parameter_writes, before.parameter_writes);
  EXPECT_EQ(after.pipelines, before.pipelines);
  EXPECT_EQ(after.buffers, before.buffers);
  EXPECT_LE(after.bytes_up - before.bytes_up, 10 * 12);
  EXPECT_LE(after.bytes_down - before.bytes_down, 10 * 64);
}

TEST_P(Decoders, ASteadyStepOnTheCpu) {
  Generator g = make(GetParam(), "cpu");
  go_on(g, g.feed(prompt(5)), 4);
  const auto allocated = allocations();
  int32_t next = 20;
  for (int i = 0; i < 10; ++i) next = g.feed(std::span(&next, 1));
  EXPECT_EQ(allocations(), allocated);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Decoders, testing::ValuesIn(model_names()), [](const auto& i) { return i.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Decoders);

// Keys and values of fewer bits: the oracle's tokens again, and scores near those of f32.
class Caches : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Caches, TokensAreTheOracles) {
  const auto& [name, type] = GetParam();
  const models::CacheType cache = models::cache_type(type);
  const std::vector<Tokens> prompts = {prompt(3, 1), prompt(40, 2), prompt(11, 3)};
  Generator oracle = make(name, "reference", 1, cache, true);
  std::vector<Tokens> expected;
  for (const Tokens& p : prompts) expected.push_back(greedy(oracle, p, 24));
  for (const std::string device : {"cpu", "webgpu"}) {
    if (device == "webgpu" && !has_webgpu()) continue;
    Generator alone = make(name, device, 1, cache, true), together = make(name, device, 3, cache);
    const Tokens next = together.feed(prompts);
    for (size_t s = 0; s < prompts.size(); ++s) {
      EXPECT_EQ(greedy(alone, prompts[s], 24), expected[s]) << device << " " << s;
      EXPECT_EQ(next[s], expected[s][0]) << device << " " << s;
    }
    alone.truncate(0, 9);  // into the prompt
    alone.feed(prompt(4, 9));
    oracle.truncate(0, 0);
    Tokens all = prompt(9, 3);
    for (const int32_t t : prompt(4, 9)) all.push_back(t);
    oracle.feed(all);
    const auto got = alone.scores().values<float>(), want = oracle.scores().values<float>();
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.05) << device << " " << i;
    EXPECT_EQ(alone.executable().stats().device.host_steps, 0);
  }
  Generator f32 = make(name, "cpu", 1, models::CacheType::kF32, true);
  f32.feed(prompts[1]);
  oracle.truncate(0, 0);
  oracle.feed(prompts[1]);
  const auto got = oracle.scores().values<float>(), want = f32.scores().values<float>();
  float worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
  EXPECT_GT(worst, 0);
  EXPECT_LT(worst, type == "f16" ? 0.02f : 0.3f);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Caches,
                         testing::Combine(testing::Values("qwen3", "gemma2", "gemma3", "qwen3moe"),
                                          testing::Values("f16", "q8_0")),
                         [](const auto& i) { return std::get<0>(i.param) + "_" + std::get<1>(i.param); });

// Prompts of more tokens than a part has.
class LongPrompts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::ranges::count(model_names(), GetParam())) GTEST_SKIP() << "tiny_models.py did not run";
  }
  static Generator make_long(const generate::SamplingOptions& sampling, int64_t batch = 1) {
    const auto source = models::open_gguf_source(std::string(RLX_TINY_MODELS) + "/" + GetParam() + ".gguf");
    GeneratorOptions options;
    options.compile.device = "cpu";
    options.context = 700;
    options.batch = batch;
    options.keep_scores = true;
    options.sampling = sampling;
    return Generator(*source, options);
  }
};

TEST_P(LongPrompts, AreDrawnFromAsThoughTheirPartsWereOne) {
  const Tokens tokens = prompt(600);
  for (const float penalty : {1.0f, 3.0f}) {
    const generate::SamplingOptions sampling{
        .temperature = 2, .repetition_penalty = penalty, .penalty_window = 16, .seed = 5};
    Generator g = make_long(sampling);
    const Tokens first = go_on(g, g.feed(tokens), 24);
    g.truncate(0, 599);  // as for the same question again: but for its last token it is known
    g.restart_sampling();
    EXPECT_EQ(go_on(g, g.feed(std::span(tokens).last(1)), 24), first) << penalty;
  }
}

// What is fed need not be what was drawn.
TEST_P(LongPrompts, ArePenalisedForTheTokensThatStandThere) {
  const generate::SamplingOptions sampling{.temperature = 0, .presence_penalty = 4, .penalty_window = 16};
  Generator g = make_long(sampling), fresh = make_long(sampling);
  const auto expect_the_same = [&](const Tokens& more) {
    const Tokens next = go_on(g, g.feed(more), 8);
    Tokens all = g.tokens(0);
    all.resize(all.size() - 7);
    fresh.restart_sampling();
    EXPECT_EQ(greedy(fresh, all, 8), next);
  };
  expect_the_same(prompt(9));
  expect_the_same(prompt(3, 7));
  g.truncate(0, 12);
  expect_the_same(prompt(1, 3));
  expect_the_same(prompt(560, 4));
}

TEST_P(LongPrompts, LieBesideShortOnes) {
  const std::vector<Tokens> prompts = {prompt(3, 1), prompt(600, 2), prompt(550, 3)};
  const generate::SamplingOptions sampling{.temperature = 0, .repetition_penalty = 2, .penalty_window = 8};
  Generator g = make_long(sampling, 3), alone = make_long(sampling);
  Tokens next;
  const std::vector<Tokens> got = greedy_together(g, prompts, 12, next);
  for (size_t s = 0; s < 3; ++s) {
    alone.restart_sampling();
    EXPECT_EQ(got[s], greedy(alone, prompts[s], 12)) << s;
  }
  g.truncate(0, 0);
  g.truncate(1, 0);
  g.truncate(2, 100);
  g.restart_sampling();
  const Tokens tail = prompt(520, 4);
  Tokens third = prompt(100, 3);
  third.insert(third.end(), tail.begin(), tail.end());
  g.feed({{prompts[0], prompts[1], tail}});
  const Tensor scores = g.scores();
  for (size_t s = 0; s < 3; ++s) {
    alone.truncate(0, 0);
    alone.feed(s == 2 ? third : prompts[s]);
    const Tensor wanted = alone.scores();
    const auto want = wanted.values<float>(), have = scores.values<float>().subspan(s * want.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(have[i], want[i], 1e-3) << s << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, LongPrompts, testing::Values("llama", "qwen3next", "mamba"),
                         [](const auto& i) { return i.param; });

TEST(CacheTypes, HeadsOfOddSizesAreRefused) {
  try {
    make("llama", "cpu", 1, models::CacheType::kQ8);  // heads of 16
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("q8_0, that needs a multiple of 32; f16 works"), std::string::npos)
        << e.what();
  }
}

TEST(TinyModels, AreThere) { EXPECT_GE(model_names().size(), 20u) << "tiny_models.py did not run"; }

}  // namespace rlx::test
