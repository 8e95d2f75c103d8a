// The draws of a language model, as a graph: filters, penalties, and the same tokens from the same seed everywhere.
#include "generate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/expect_error.h"
#include "support/random.h"

namespace rlx::test {

namespace {

using generate::SamplingOptions;

constexpr int64_t kVocabulary = 50;

class Sampler {
 public:
  Sampler(const SamplingOptions& options, const char* device, int64_t batch = 1) : options_(options) {
    Graph g;
    const Value scores = g.input("scores", {{batch, kVocabulary}, DType::F32});
    g.output(generate::sample(g, scores, options), "token");
    exe_.emplace(compile(std::move(g), {.device = device}));
    begin(std::vector<std::vector<int32_t>>(static_cast<size_t>(batch), {0}));
  }
  void begin(const std::vector<std::vector<int32_t>>& recent) {
    std::vector<std::span<const int32_t>> spans(recent.begin(), recent.end());
    generate::begin_sampling(*exe_, options_, spans);
  }
  std::vector<int32_t> draw(const Tensor& scores) {
    const Tensor t = exe_->run({{"scores", scores}}).at("token");
    return {t.values<int32_t>().begin(), t.values<int32_t>().end()};
  }
  Executable& exe() { return *exe_; }
  const SamplingOptions& options() const { return options_; }

 private:
  SamplingOptions options_;
  std::optional<Executable> exe_;
};

Tensor scores_with(const std::map<int, float>& high, float low = 0) {
  Tensor t(DType::F32, {1, kVocabulary});
  for (int64_t i = 0; i < kVocabulary; ++i)
    t.mutable_values<float>()[static_cast<size_t>(i)] =
        high.contains(static_cast<int>(i)) ? high.at(static_cast<int>(i)) : low;
  return t;
}

}  // namespace

class Sampling : public testing::TestWithParam<const char*> {};

TEST_P(Sampling, GreedyTakesTheLikeliestAndUsesNoRandomNumbers) {
  Sampler s({.temperature = 0}, GetParam());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(s.draw(scores_with({{7, 3}, {9, 3}, {11, 2}})), std::vector<int32_t>{7});
}

TEST_P(Sampling, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
  Rng rng(1);
  const Tensor scores = rng.tensor({1, kVocabulary});
  const auto draws = [&](uint64_t seed) {
    Sampler s({.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed}, GetParam());
    std::vector<int32_t> out;
    for (int i = 0; i < 40; ++i) out.push_back(s.draw(scores)[0]);
    return out;
  };
  const std::vector<int32_t> a = draws(42);
  EXPECT_EQ(a, draws(42));
  EXPECT_NE(a, draws(43));
  EXPECT_NE(a, draws(42 + (uint64_t{1} << 32)));
  EXPECT_GT(std::set<int32_t>(a.begin(), a.end()).size(), 10u);
  if (std::string(GetParam()) != "reference") {
    Sampler oracle({.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 42}, "reference");
    for (const int32_t token : a) EXPECT_EQ(oracle.draw(scores)[0], token);
  }
}

TEST_P(Sampling, FiltersLeaveTheTokensTheyShould) {
  // Probabilities at temperature 1: 0.5, 0.25, 0.15, 0.1.
  const Tensor scores =
      scores_with({{3, std::log(0.5f)}, {5, std::log(0.25f)}, {8, std::log(0.15f)}, {2, std::log(0.1f)}}, -100);
  const auto seen = [&](SamplingOptions o) {
    o.temperature = o.temperature == 0.8f ? 1 : o.temperature;
    Sampler s(o, GetParam());
    std::set<int32_t> out;
    for (int i = 0; i < 200; ++i) out.insert(s.draw(scores)[0]);
    return out;
  };
  using Set = std::set<int32_t>;
  const SamplingOptions all{.top_k = 0, .top_p = 1, .min_p = 0, .seed = 5};
  EXPECT_EQ(seen(all), (Set{2, 3, 5, 8}));
  SamplingOptions o = all;
  o.min_p = 0.3f;  // of 0.5: at least 0.15
  EXPECT_EQ(seen(o), (Set{3, 5, 8}));
  o.min_p = 0.31f;
  EXPECT_EQ(seen(o), (Set{3, 5}));
  o = all;
  o.top_p = 0.74f;
  EXPECT_EQ(seen(o), (Set{3, 5}));
  o = all;
  o.top_k = 3;
  EXPECT_EQ(seen(o), (Set{3, 5, 8}));
  o = all;
  o.temperature = 0.25f, o.min_p = 0.0625f;  // (1/2)^4 is just that
  EXPECT_EQ(seen(o), (Set{3, 5}));
}

TEST_P(Sampling, PenaltiesLowerRecentTokensOnly) {
  const Tensor scores = scores_with({{3, 4.0f}, {5, 3.0f}, {8, 2.5f}}, -1);
  Sampler s({.temperature = 0, .repetition_penalty = 2, .penalty_window = 2}, GetParam());
  s.begin({{30}});
  // 3 is penalised to 2, then 5 to 1.5; with both in the window 8 is the highest, and pushes 3 out of it.
  for (const int32_t expected : {3, 5, 8, 3, 5, 8, 3}) EXPECT_EQ(s.draw(scores)[0], expected);
  s.begin({{3, 5}});
  EXPECT_EQ(s.draw(scores)[0], 8);
  s.begin({{3, 5, 8, 8}});  // the last two count
  EXPECT_EQ(s.draw(scores)[0], 3);
  Sampler presence({.temperature = 0, .presence_penalty = 1.2f, .penalty_window = 8}, GetParam());
  presence.begin({{3}});
  EXPECT_EQ(presence.draw(scores)[0], 5);
  // A negative score is multiplied: it must not rise.
  Sampler negative({.temperature = 0, .repetition_penalty = 3, .penalty_window = 4}, GetParam());
  negative.begin({{7}});
  EXPECT_EQ(negative.draw(scores_with({{7, -1.0f}}, -2))[0], 0);
}

TEST_P(Sampling, PenaltiesReachAsFarBackAsTheWindow) {
  for (const auto& [window, before, draws] : {std::tuple{6, 4, 0}, {7, 3, 4}, {4, 9, 0}, {5, 1, 13}}) {
    Sampler s({.temperature = 0, .presence_penalty = 1, .penalty_window = window}, GetParam());
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < before; ++i) tokens.push_back(i);
    generate::begin_sampling(s.exe(), s.options(), std::vector<std::span<const int32_t>>{tokens}, draws);
    for (int32_t next = 10; next < 30; ++next) {
      tokens.push_back(s.draw(scores_with({{next, 9}}))[0]);
      const Tensor state = s.exe().read_state("recent");
      const auto slots = state.values<int32_t>();
      const auto last = std::span(tokens).last(std::min(tokens.size(), static_cast<size_t>(window)));
      EXPECT_EQ(std::set(slots.begin(), slots.end()), std::set(last.begin(), last.end())) << window << " " << next;
    }
  }
}

TEST_P(Sampling, SequencesHaveDrawsAndPenaltiesOfTheirOwn) {
  Tensor scores(DType::F32, {3, kVocabulary});
  for (size_t row = 0; row < 3; ++row) scores.mutable_values<float>()[row * kVocabulary + 4] = 2;
  for (size_t row = 0; row < 3; ++row) scores.mutable_values<float>()[row * kVocabulary + 6] = 1.5f;
  Sampler s({.temperature = 0, .repetition_penalty = 4, .penalty_window = 4}, GetParam(), 3);
  s.begin({{4}, {1}, {6, 4}});
  EXPECT_EQ(s.draw(scores), (std::vector<int32_t>{6, 4, 4}));
}

TEST(SamplingOptionsTest, NonsenseIsNamed) {
  EXPECT_ERROR(generate::check({.temperature = -1}), kInvalid, "temperature (-1) is negative");
  EXPECT_ERROR(generate::check({.top_k = -1}), kInvalid, "top-k (-1) is negative");
  EXPECT_ERROR(generate::check({.top_p = 1.5f}), kInvalid, "top-p (1.5) is not between 0 and 1");
  EXPECT_ERROR(generate::check({.min_p = -0.5f}), kInvalid, "min-p (-0.5)");
  EXPECT_ERROR(generate::check({.repetition_penalty = 0}), kInvalid, "repetition penalty (0) is not positive");
  EXPECT_ERROR(generate::check({.presence_penalty = INFINITY}), kInvalid, "presence penalty");
  EXPECT_ERROR(generate::check({.repetition_penalty = 2, .penalty_window = 0}), kInvalid, "penalty window (0)");
}

INSTANTIATE_TEST_SUITE_P(Devices, Sampling, testing::Values("reference", "cpu", "webgpu"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace rlx::test
