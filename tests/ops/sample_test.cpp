#include <cmath>

#include "support/op_cases.h"

namespace rlx::test {

namespace {

constexpr float kInf = INFINITY;

Tensor words(std::vector<uint32_t> values) { return Tensor::of<uint32_t>(DType::U32, {4}, values); }

// `rows` copies of ln(p): each row draws from p with its own random numbers.
Tensor rows_of(const std::vector<double>& p, int64_t rows) {
  std::vector<double> logits;
  for (int64_t r = 0; r < rows; ++r)
    for (const double v : p) logits.push_back(std::log(v));
  return Tensor::from_doubles(DType::F64, {rows, static_cast<int64_t>(p.size())}, logits);
}

// Pearson's statistic of the drawn tokens; a token of probability 0 that was drawn makes it infinite.
double chi_square(const Tensor& drawn, const std::vector<double>& p) {
  std::vector<double> counts(p.size(), 0);
  for (int64_t i = 0; i < drawn.num_elements(); ++i) counts[static_cast<size_t>(drawn.at(i))] += 1;
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(drawn.num_elements());
    if (expected == 0 && counts[i] == 0) continue;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

// Quantiles 0.999 of the chi-square distribution by degrees of freedom (scipy.stats.chi2.ppf).
constexpr double kChi999[] = {0, 10.827566, 13.815511, 16.266236, 18.466827, 20.515006};

}  // namespace

OP_CASES(sample) {
  // Greedy by temperature or by top_k = 1: the first of the largest.
  const Tensor x = Tensor::f32({3, 4}, {1, 7, 7, 0, -1, -2, -3, -4, -kInf, -kInf, 5, -kInf});
  const Tensor best = Tensor::i32({3}, {1, 0, 2});
  for (const float t : {0.0f, 1e-6f, -1.0f}) add({x}, {.temperature = t}).expect({best}, kExact);
  for (const uint64_t seed : {0, 7}) add({x}, {.top_k = 1, .seed = seed}).expect({best}, kExact);
  add({x}, {.temperature = 0, .index_dtype = DType::I64}).expect({Tensor::i64({3}, {1, 0, 2})}, kExact);

  // Degenerate rows: argmax with NaN smallest; all -inf gives 0; +inf has no softmax either.
  const Tensor bad =
      Tensor::f32({6, 3}, {-kInf, -kInf, -kInf, NAN, 1, 2, NAN, NAN, NAN, NAN, -kInf, NAN, 0, kInf, kInf, 5, NAN, 1});
  const Tensor chosen = Tensor::i32({6}, {0, 2, 0, 1, 1, 0});
  add({bad}).expect({chosen}, kExact);
  add({bad}, {.top_k = 2, .top_p = 0.5f, .temperature = 0.7f, .seed = 3}).expect({chosen}, kExact);
  add({bad}, {.temperature = 0}).expect({chosen}, kExact);

  // Seed 42, row 0: u = 0.6098, 0.4305, 0.6446, so the Gumbel numbers are 0.7040, 0.1711, 0.8228.
  for (const auto& [logits, index] : std::vector<std::pair<std::vector<float>, int32_t>>{
           {{0, 0, 0}, 2}, {{0.11f, 0, 0}, 2}, {{0.13f, 0, 0}, 0}, {{0, 0.64f, 0}, 2}, {{0, 0.66f, 0}, 1}})
    add({Tensor::f32({1, 3}, logits)}, {.seed = 42}).expect({Tensor::i32({1}, {index})}, kExact);

  // No vocabulary: 0. No rows: nothing. Leading dims are rows.
  add({Tensor(DType::F32, {2, 0})}).expect({Tensor::i32({2}, {0, 0})}, kExact);
  add({Tensor(DType::F32, {0, 5})}).expect({Tensor(DType::I32, {0})});
  add({random({5})}).check([](const Tensors&, const Tensors& out) { EXPECT_EQ(out[0].rank(), 0); });
  add({random({2, 3, 8})}, {.seed = 5}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_EQ(out[0].reshaped({6}), run(ops::sample, {in[0].reshaped({6, 8})}, {.seed = 5})[0]);
  });

  // The seed attribute is the rng operand (seed low, seed high, 0, 0); steps give other numbers.
  const uint64_t seed = (uint64_t{9} << 32) | 4;
  add({random({64, 20})}, {.seed = seed}).check([seed](const Tensors& in, const Tensors& out) {
    EXPECT_EQ(out[0], run(ops::sample, {in[0], words({4, 9, 0, 0})}, {.seed = 77})[0]);
    const Tensors others = {words({4, 0, 0, 0}), words({9, 4, 0, 0}), words({4, 9, 1, 0}), words({4, 9, 0, 1})};
    for (const Tensor& other : others) EXPECT_NE(out[0], run(ops::sample, {in[0], other})[0]);
    EXPECT_EQ(out[0], run(ops::sample, {in[0]}, {.seed = seed})[0]);  // and again the same
  });
  // Dividing by the temperature is dividing the logits.
  add({random({64, 20}, DType::F64)}, {.temperature = 0.5f}).check([](const Tensors& in, const Tensors& out) {
    EXPECT_EQ(out[0], run(ops::sample, {run(ops::add, {in[0], in[0]})[0]})[0]);
  });
  for (const DType d : {DType::F16, DType::BF16, DType::F64})
    add({integers({32, 9}, -4, 4, d)}).check([](const Tensors& in, const Tensors& out) {
      EXPECT_EQ(out[0], run(ops::sample, {in[0].cast(DType::F32)})[0]);
    });

  // Long rows, flat and steep, with ties; every filter.
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const double range : {0.01, 3.0, 40.0})
      for (const ops::SampleAttrs& attrs :
           {ops::SampleAttrs{.seed = 3}, ops::SampleAttrs{.temperature = 0.3f, .seed = 4},
            ops::SampleAttrs{.top_k = 50, .seed = 5}, ops::SampleAttrs{.top_p = 0.9f, .seed = 6},
            ops::SampleAttrs{.top_k = 2000, .top_p = 0.5f, .temperature = 2, .seed = 7},
            ops::SampleAttrs{.top_p = 0.001f, .temperature = 100, .seed = 8}}) {
        add({random({5, 3001}, -range, range, d)}, attrs);
        add({random({40, 17}, -range, range, d)}, attrs);
        add({integers({9, 500}, -3, 3, d)}, attrs);
      }
  std::vector<float> masked(4000, -kInf);
  masked[77] = 1, masked[3000] = 2, masked[3999] = -900;
  add({Tensor::f32({2, 2000}, masked)}, {.seed = 9});
  add({Tensor::f32({2, 2000}, masked)}, {.top_p = 0.99f, .temperature = 0.5f, .seed = 9});
  add({Tensor::f32({2, 2000}, masked)}, {.top_k = 30, .seed = 9});

  add_error({random({})}, {}, "Logits rank (0) is less than 1");
  add_error({random({2, 3}, DType::I32)}, {}, "Logits dtype (i32) is not a float type");
  add_error({random({2, 3})}, {.top_k = -1}, "Top_k (-1) is negative");
  add_error({random({2, 3})}, {.top_p = NAN}, "is not a number");
  add_error({random({2, 3})}, {.temperature = kInf}, "is not finite");
  add_error({random({2, 3})}, {.index_dtype = DType::U8}, "Index dtype (u8) is not i32 or i64");
  add_error({random({2, 3}), Tensor::i32({4}, {0, 0, 0, 0})}, {}, "Rng dtype (i32) is not u32");
  add_error({random({2, 3}), Tensor(DType::U32, {2})}, {}, "Rng shape ([2]) is not [4]");
}

TEST(Sample, DrawsFromTheDistribution) {
  const std::vector<double> p = {0.05, 0.4, 0.1, 0.25, 0.15, 0.05};
  for (const uint64_t seed : {0, 1, 42, 123456789})
    EXPECT_LT(chi_square(run(ops::sample, {rows_of(p, 4000)}, {.seed = seed})[0], p), kChi999[5]) << seed;
  // Temperature 0.5 squares the probabilities.
  std::vector<double> squared;
  double sum = 0;
  for (const double v : p) sum += v * v;
  for (const double v : p) squared.push_back(v * v / sum);
  EXPECT_LT(chi_square(run(ops::sample, {rows_of(p, 4000)}, {.temperature = 0.5f, .seed = 1})[0], squared), kChi999[5]);
  // One row, many steps: the counter of the rng operand makes independent draws too.
  std::vector<int32_t> drawn;
  for (uint32_t step = 0; step < 1500; ++step)
    drawn.push_back(static_cast<int32_t>(run(ops::sample, {rows_of(p, 1), words({42, 0, step, 0})})[0].at(0)));
  EXPECT_LT(chi_square(Tensor::i32({1500}, drawn), p), kChi999[5]);
}

TEST(Sample, TopKKeepsExactlyKWithTiesByIndex) {
  const std::vector<double> p = {0.1, 0.25, 0.25, 0.15, 0.25};
  EXPECT_LT(chi_square(run(ops::sample, {rows_of(p, 4000)}, {.top_k = 2})[0], {0, 0.5, 0.5, 0, 0}), kChi999[1]);
  EXPECT_LT(chi_square(run(ops::sample, {rows_of(p, 4000)}, {.top_k = 4})[0],
                       {0, 25 / 90.0, 25 / 90.0, 15 / 90.0, 25 / 90.0}),
            kChi999[3]);
  const Tensor all = run(ops::sample, {rows_of(p, 400)})[0];
  EXPECT_EQ(run(ops::sample, {rows_of(p, 400)}, {.top_k = 5})[0], all);  // as many as there are: off
  EXPECT_EQ(run(ops::sample, {rows_of(p, 400)}, {.top_k = 99})[0], all);
}

TEST(Sample, TopPKeepsTheShortestPrefix) {
  const std::vector<double> p = {0.1, 0.5, 0.3, 0.1};
  const auto draw = [&](ops::SampleAttrs attrs) { return run(ops::sample, {rows_of(p, 4000)}, attrs)[0]; };
  for (const float top_p : {0.49f, 0.01f, 0.0f, -1.0f}) EXPECT_EQ(chi_square(draw({.top_p = top_p}), {0, 1, 0, 0}), 0);
  for (const float top_p : {0.51f, 0.79f})
    EXPECT_LT(chi_square(draw({.top_p = top_p}), {0, 0.625, 0.375, 0}), kChi999[1]) << top_p;
  // The next token is one of two equal ones: the first.
  EXPECT_LT(chi_square(draw({.top_p = 0.85f}), {1 / 9.0, 5 / 9.0, 3 / 9.0, 0}), kChi999[2]);
  EXPECT_LT(chi_square(draw({.top_p = 0.95f}), p), kChi999[3]);
  EXPECT_EQ(draw({.top_p = 1.0f}), draw({}));
  EXPECT_EQ(draw({.top_p = 1.5f}), draw({}));
  // Measured after top-k: of 0.5 and 0.3 the first alone is 0.625 of what is left.
  EXPECT_EQ(chi_square(draw({.top_k = 2, .top_p = 0.6f}), {0, 1, 0, 0}), 0);
  EXPECT_LT(chi_square(draw({.top_k = 2, .top_p = 0.65f}), {0, 0.625, 0.375, 0}), kChi999[1]);
}

TEST(Sample, NeverReturnsATokenOfProbabilityZero) {
  const std::vector<double> p = {0, 0.5, 0, 0.5};  // ln 0 = -inf
  EXPECT_LT(chi_square(run(ops::sample, {rows_of(p, 2000)})[0], p), kChi999[1]);
}

}  // namespace rlx::test
