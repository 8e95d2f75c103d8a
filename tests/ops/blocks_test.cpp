#include "rlx/blocks.h"

#include "backends/reference/evaluate.h"
#include "support/op_cases.h"

namespace rlx::test {

using enum ops::ActivationKind;

// A graph with one input per tensor, evaluated.
static Tensors evaluate_block(const Tensors& inputs, const std::function<Values(const Values&)>& build) {
  Graph g;
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.input(str("x", i), inputs[i].type()));
  const Values results = build(values);
  for (size_t i = 0; i < results.size(); ++i) g.output(results[i], str("y", i));
  verify(g);
  return reference::evaluate(g, inputs);
}

static std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b, size_t k, size_t n) {
  std::vector<double> out(a.size() / k * n);
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t c = 0; c < k; ++c) out[i] += a[i / n * k + c] * b[c * n + i % n];
  return out;
}

static Tensor f64(std::vector<int64_t> sizes, const std::vector<double>& v) {
  return Tensor::from_doubles(DType::F64, std::move(sizes), v);
}

constexpr Tolerance kF64 = {.of_max = 1e-13};

struct Blocks : testing::Test {
  Rng rng{7};
  const Tensor x = rng.tensor({3, 4}, DType::F64), w = rng.tensor({4, 5}, DType::F64), b = rng.tensor({5}, DType::F64);
  std::vector<double> product = times(x.to_doubles(), w.to_doubles(), 4, 5);
};

TEST_F(Blocks, LinearBiasIsAMatmulAndABias) {
  EXPECT_TRUE(near(evaluate_block({x, w}, [](const Values& v) { return Values{blocks::linear_bias(v[0], v[1])}; })[0],
                   f64({3, 5}, product), kF64));
  for (size_t i = 0; i < 15; ++i) product[i] += b.at(static_cast<int64_t>(i % 5));
  EXPECT_TRUE(
      near(evaluate_block({x, w, b}, [](const Values& v) { return Values{blocks::linear_bias(v[0], v[1], v[2])}; })[0],
           f64({3, 5}, product), kF64));
}

TEST_F(Blocks, LinearWithActivationFusedOrNotIsTheSame) {
  for (size_t i = 0; i < 15; ++i) product[i] += b.at(static_cast<int64_t>(i % 5));
  for (double& v : product) v = v / (1 + std::exp(-v));
  const Tensors y = evaluate_block({x, w, b}, [](const Values& v) {
    return Values{blocks::linear_bias_act(v[0], v[1], v[2], kSilu), blocks::linear_fused(v[0], v[1], v[2], kSilu)};
  });
  EXPECT_TRUE(near(y[0], f64({3, 5}, product), kF64));
  EXPECT_EQ(y[0], y[1]);
  const Tensors plain = evaluate_block({x, w, b}, [](const Values& v) {
    return Values{blocks::linear_bias(v[0], v[1], v[2]), blocks::linear_fused(v[0], v[1], v[2]),
                  blocks::linear_bias_act(v[0], v[1], v[2], kNone)};
  });
  EXPECT_EQ(plain[0], plain[1]);
  EXPECT_EQ(plain[0], plain[2]);
}

TEST_F(Blocks, SharedMatmulPairMultipliesOneInputTwice) {
  const Tensor v2 = rng.tensor({4, 2}, DType::F64);
  const Tensors y = evaluate_block({x, w, v2}, [](const Values& v) {
    const auto [p, q] = blocks::shared_matmul_pair(v[0], v[1], v[2]);
    return Values{p, q};
  });
  EXPECT_TRUE(near(y[0], f64({3, 5}, product), kF64));
  EXPECT_TRUE(near(y[1], f64({3, 2}, times(x.to_doubles(), v2.to_doubles(), 4, 2)), kF64));
}

TEST_F(Blocks, SwigluFfnFusedOrNotIsItsFormula) {
  const Tensor gate_w = rng.tensor({4, 5}, DType::F64), down_w = rng.tensor({5, 4}, DType::F64);
  const std::vector<double> gate = times(x.to_doubles(), gate_w.to_doubles(), 4, 5);
  for (size_t i = 0; i < 15; ++i) product[i] *= gate[i] / (1 + std::exp(-gate[i]));
  const Tensor expected = f64({3, 4}, times(product, down_w.to_doubles(), 5, 4));
  const Tensor both = run(ops::concat, {w, gate_w}, {.axis = 1})[0];
  const Tensors y = evaluate_block({x, w, gate_w, down_w, both}, [](const Values& v) {
    return Values{blocks::swiglu_ffn(v[0], v[1], v[2], v[3]), blocks::fused_swiglu_ffn(v[0], v[4], v[3])};
  });
  EXPECT_TRUE(near(y[0], expected, kF64));
  EXPECT_EQ(y[0], y[1]);
}

}  // namespace rlx::test
