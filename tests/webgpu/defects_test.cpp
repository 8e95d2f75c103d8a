// Mistakes of the reference's kernels that rlx must not repeat (spec 30, 22): item n is a test Kn… here or in
// defects_more_test.cpp; docs/parity.md lists them all. The device's dying bytes are poisoned.
#include <cmath>

#include "as_oracle.h"
#include "support/run_graph.h"

namespace rlx::test {

using DefectsOnWebGpu = WebGpu;

// 30, 22.1: sums of halves are f32 (partial sums here exceed 65504), and a transposed weight is not read as if it were
// the weight itself, in any precision.
TEST_F(DefectsOnWebGpu, K01LongSumsOfHalvesAndTransposedWeights) {
  const int64_t k = 4096;
  Maker m;
  const Value x = m.in({40, k}, DType::F16), w = m.weight({k, 40}, DType::F16);
  m.out(ops::matmul(x, w));
  std::vector<double> fours(static_cast<size_t>(40 * k), 4.0), halves;
  for (int64_t i = 0; i < 40 * k; ++i) halves.push_back(i < 20 * k ? 8.0 : -8.0);
  const NamedTensors given = {{"x0", Tensor::from_doubles(DType::F16, {40, k}, fours)},
                              {"w1", Tensor::from_doubles(DType::F16, {k, 40}, halves)}};
  for (const double v : expect_as_oracle(m.g, {.given = given}).at("y0").to_doubles()) EXPECT_EQ(v, 0);

  for (const Precision precision : {Precision::kF32, Precision::kF16}) {
    Maker t;
    const Value a = t.in({3, 6}), b = t.weight({5, 6});
    t.out(ops::matmul(a, ops::transpose(b, {.perm = {1, 0}})));
    t.out(ops::matmul(t.in({3, 5}), b));
    AsOracle how{.tolerance = precision == Precision::kF32 ? kAccumulation : Tolerance{.of_max = 5e-3}};
    how.options.precision = precision;
    expect_as_oracle(t.g, how);
  }
}

// 30, 22.2: scale, softcap, an additive bias, the offset of the keys at decode, fewer key heads, long heads.
TEST_F(DefectsOnWebGpu, K02AttentionHonoursEveryAttribute) {
  const auto attend = [](int64_t queries, int64_t keys, int64_t kv_heads, ops::AttentionAttrs attrs, bool kv_len) {
    Maker m;
    const int64_t d = attrs.head_dim, h = attrs.num_heads;
    Values operands = {m.in({2, h, queries, d}), m.in({2, kv_heads, keys, d}), m.in({2, kv_heads, keys, d})};
    if (has_mask_operand(attrs.mask_kind)) operands.push_back(m.in({2, 1, queries, keys}));
    NamedTensors given;
    if (kv_len) {
      given[str("x", m.ports)] = Tensor::i32({2}, {static_cast<int32_t>(keys - 2), static_cast<int32_t>(keys)});
      operands.push_back(m.in({2}, DType::I32));
    }
    m.out(ops::attention(operands, attrs));
    return expect_as_oracle(m.g, {.given = given, .tolerance = {.of_max = 1e-4}}).at("y0");
  };
  const ops::AttentionAttrs plain{.num_heads = 4, .head_dim = 8};
  const auto with = [&](auto change) {
    ops::AttentionAttrs attrs = plain;
    change(attrs);
    return attrs;
  };
  const Tensor usual = attend(3, 7, 2, plain, false);
  using A = ops::AttentionAttrs;
  EXPECT_NE(attend(3, 7, 2, with([](A& a) { a.score_scale = 0.1f; }), false), usual);
  EXPECT_NE(attend(3, 7, 2, with([](A& a) { a.attn_logit_softcap = 0.5f; }), false), usual);
  EXPECT_NE(attend(3, 7, 2, with([](A& a) { a.mask_kind = ops::MaskKind::kBias; }), false), usual);
  // One query at the end of the keys sees them all; a mask without the offset would leave the first alone.
  EXPECT_EQ(attend(1, 9, 4, with([](A& a) { a.mask_kind = ops::MaskKind::kCausal; }), false),
            attend(1, 9, 4, plain, false));
  for (const auto kind : {ops::MaskKind::kCausal, ops::MaskKind::kSlidingWindow}) {
    attend(3, 9, 1, with([&](A& a) { a.mask_kind = kind, a.window = 2; }), false);
    attend(2, 9, 4, with([&](A& a) { a.mask_kind = kind, a.window = 3; }), true);
  }
  attend(3, 5, 4, with([](A& a) { a.head_dim = 200; }), false);
}

// 30, 22.3: every gradient is written for long sequences too, in rank 3, with scale and softcap.
TEST_F(DefectsOnWebGpu, K03AttentionGradientsOfLongSequences) {
  for (const bool capped : {false, true}) {
    Maker m;
    const auto x = [&] { return m.in({2, 300, 16}); };
    ops::AttentionAttrs attrs{.num_heads = 2, .head_dim = 8, .layout = ops::AttentionLayout::kBsf};
    if (capped) attrs.score_scale = 0.3f, attrs.attn_logit_softcap = 2.0f;
    const Value d = ops::attention_backward(Values{x(), x(), x(), x()}, attrs);
    for (int64_t i = 0; i < 3; ++i) m.out(d.result(i));
    expect_as_oracle(m.g, {.tolerance = {.of_max = 1e-4}, .runs = 1});
  }
}

// 30, 22.4: gradients of norms beyond 64 columns and of many rows, whose sums a workgroup builds one after the other.
TEST_F(DefectsOnWebGpu, K04NormGradientsOfEveryColumn) {
  for (const int64_t columns : {65, 200, 5000}) {
    Maker m;
    const Value x = m.in({70, columns}), gamma = m.weight({columns}), beta = m.weight({columns}),
                dy = m.in({70, columns});
    const Value layer = ops::layer_norm_backward(x, gamma, dy), rms = ops::rms_norm_backward(x, gamma, beta, dy);
    for (int64_t i = 0; i < 3; ++i) m.out(layer.result(i)), m.out(rms.result(i));
    expect_as_oracle(m.g, {.tolerance = {.of_max = 1e-4}, .runs = 1});
  }
}

// 30, 22.5: beta of an RMS norm takes part, fused or not, and so does the axis of norms and their gradients.
TEST_F(DefectsOnWebGpu, K05BetaAndAxisOfNorms) {
  Maker m;
  const Value x = m.in({2, 3, 4}), gamma = m.weight({4}), beta = m.weight({4});
  m.out(ops::rms_norm(x, gamma, beta));
  m.out(ops::rms_norm(x + m.in({2, 3, 4}), gamma, beta));
  const Value planes = m.weight({3, 4}), more = m.weight({3, 4}), dy = m.in({2, 3, 4});
  m.out(ops::layer_norm(x, planes, more, {.axis = 1}));
  m.out(ops::rms_norm(x, planes, more, {.axis = 1}));
  for (const Value& d :
       {ops::layer_norm_backward(x, planes, dy, {.axis = 1}), ops::rms_norm_backward(x, planes, more, dy, {.axis = 1})})
    for (int64_t i = 0; i < 3; ++i) m.out(d.result(i));
  const NamedTensors y = expect_as_oracle(m.g);
  EXPECT_NE(y.at("y2"), y.at("y3"));
}

// 30, 22.6: temperature 1 without filters draws; top_p = 0 leaves the best token; the logits stay as they are.
TEST_F(DefectsOnWebGpu, K06SamplingIsNoArgmaxAndKeepsItsLogits) {
  Maker m;
  const Value logits = ops::tanh(m.in({64, 50}));
  m.out(ops::sample(logits, {.seed = 3}));
  m.out(ops::sample(logits, {.top_p = 0, .seed = 3}));
  m.out(ops::argmax(logits));
  m.out(logits);
  const NamedTensors y = expect_as_oracle(m.g, {.tolerance = kTranscendental});
  EXPECT_NE(y.at("y0"), y.at("y2"));
  EXPECT_EQ(y.at("y1"), y.at("y2"));
}

// The weights of that many equal logits add up to more than 2^32 of the kernel's units; half of them are kept.
TEST_F(DefectsOnWebGpu, K06WeightsOfManyLogitsAddUp) {
  Maker m;
  const int64_t n = 1 << 20;
  const Value logits = m.in({1, n}), rng = m.in({4}, DType::U32);
  m.out(ops::sample(logits, rng, {.top_p = 0.5f}));
  m.out(ops::sample(logits, rng));
  const NamedTensors given = {{m.name(logits), Tensor(DType::F32, {1, n})},
                              {m.name(rng), Tensor::of<uint32_t>(DType::U32, {4}, std::vector<uint32_t>{2, 0, 0, 0})}};
  const NamedTensors y = expect_as_oracle(m.g, {.given = given, .tolerance = kExact, .runs = 1});
  EXPECT_LT(y.at("y0").at(0), n / 2);
  EXPECT_GE(y.at("y1").at(0), n / 2);  // so that it matters
}

// 30, 22.7: an activation is the same alone, in a region and behind a product.
TEST_F(DefectsOnWebGpu, K07ActivationsAreTheSameInEveryKernel) {
  for (size_t i = 1; i < enum_names<ops::ActivationKind>.size(); ++i) {
    const auto kind = static_cast<ops::ActivationKind>(i);
    SCOPED_TRACE(name_of(kind));
    Maker m;
    const Value x = m.in({1, 12});
    std::vector<float> unit(144, 0);
    for (size_t j = 0; j < 12; ++j) unit[j * 13] = 1;
    const Value eye = m.g.constant(Tensor::f32({12, 12}, unit)),
                zero = m.g.constant(Tensor::f32({12}, std::vector<float>(12, 0)));
    const Chain chain = {{.op = &ops::neg, .operands = {{false, 0}}},
                         {.op = &ops::neg, .operands = {{true, 0}}},
                         {.op = &ops::activation_op(kind), .operands = {{true, 1}}}};
    m.out(ops::activate(x, kind));
    m.out(ops::elementwise_region(x, {.chain = chain}));
    m.out(ops::fused_matmul_bias_act(x, eye, zero, {.activation = kind}));
    const Tensor values = Tensor::f32({1, 12}, {-9, -2.5f, -1.5f, -0.5f, -0.1f, 0, 0.25f, 0.5f, 1.5f, 2.5f, 9, 0.75f});
    Executable exe = compile(m.g, webgpu_options(true));
    const NamedTensors y = exe.run({{"x0", values}});
    EXPECT_EQ(exe.stats().device.host_steps, 0);
    // NaN where both are (the logarithm of a negative number): near() says so.
    EXPECT_TRUE(near(y.at("y1"), y.at("y0"), kRounding));
    EXPECT_TRUE(near(y.at("y2"), y.at("y0"), kRounding));
  }
}

// Clamped exponentials (30, 1.5) are small, but not to the largest numbers: x / (1 + exp(88)) is no zero there.
TEST_F(DefectsOnWebGpu, K07ActivationsOfTheLargestNumbers) {
  Maker m;
  const Value x = m.in({9}), dy = m.in({9});
  using enum ops::ActivationKind;
  for (const auto kind : {kSigmoid, kTanh, kGelu, kGeluApprox, kSilu}) {
    m.out(ops::activation_op(kind)(x));
    m.out(ops::activation_backward(x, dy, {.kind = kind}));
  }
  const Tensor large = Tensor::f32({9}, {3e38f, -3e38f, 1e20f, -1e20f, 200, -200, 95, -95, NAN});
  expect_as_oracle(m.g, {.given = {{m.name(x), large}, {m.name(dy), Tensor::f32({9}, std::vector<float>(9, 2.0f))}},
                         .tolerance = {.rel = 1e-5, .abs = 1e-6}});
}

// 1 + erf and 1 + tanh cancel where they are small, and a fused result may be no larger than that.
TEST_F(DefectsOnWebGpu, K07ActivationsOfNegativeNumbersKeepTheirDigits) {
  std::vector<float> values;
  for (float v = -9; v < -1.5f; v += 0.03125f) values.push_back(v);
  for (float v = 1e-6f; v < 12; v *= 1.5f) values.insert(values.end(), {v, -v * 0.05f});
  const auto n = static_cast<int64_t>(values.size());
  Maker m;
  const Value x = m.in({n}), dy = m.in({n});
  using enum ops::ActivationKind;
  for (const auto kind : {kSigmoid, kTanh, kGelu, kGeluApprox, kSilu}) {
    m.out(ops::activation_op(kind)(x));
    m.out(ops::activation_backward(x, dy, {.kind = kind}));
  }
  m.out(ops::erf(x));
  const NamedTensors given = {{m.name(x), Tensor::f32({n}, values)},
                              {m.name(dy), Tensor::f32({n}, std::vector<float>(values.size(), 1.0f))}};
  expect_as_oracle(m.g, {.given = given, .tolerance = {.rel = 2e-5, .abs = 1e-37}, .runs = 1});
}

// Beyond 2^16 three products do not keep all bits of an argument's multiple of pi / 2.
TEST_F(DefectsOnWebGpu, K07SinesOfLargeArguments) {
  std::vector<float> values = {6.5e4f, 6.6e4f,        1e5f,  1.1e5f, 1e6f,   12345678,
                               1e9f,   2147483648.0f, 3e15f, 1e30f,  3.4e38f};
  for (int e = 14; e < 128; ++e)
    for (const float f : {1.0f, 1.2345678f, 1.9999999f}) values.push_back(std::ldexp(f, e));
  for (size_t i = values.size(); i > 0; --i) values.push_back(-values[i - 1]);
  const auto n = static_cast<int64_t>(values.size());
  Maker m;
  const Value x = m.in({n});
  m.out(ops::sin(x));
  m.out(ops::cos(x));
  m.out(ops::tan(x));
  Executable exe = compile(m.g, webgpu_options());
  const NamedTensors y = exe.run({{"x0", Tensor::f32({n}, values)}});
  EXPECT_EQ(exe.stats().device.host_steps, 0);
  for (int64_t i = 0; i < n; ++i) {
    const double v = values[static_cast<size_t>(i)], tan = std::tan(v);
    EXPECT_NEAR(y.at("y0").at(i), std::sin(v), 1e-5) << v;
    EXPECT_NEAR(y.at("y1").at(i), std::cos(v), 1e-5) << v;
    EXPECT_NEAR(y.at("y2").at(i), tan, 1e-5 * (1 + tan * tan)) << v;
  }
}

// 30, 22.8: every stage of a long transform has parameters of its own.
TEST_F(DefectsOnWebGpu, K08LongTransformsOfSeveralStages) {
  Maker m;
  for (const int64_t n : {2048, 4096, 3000}) m.out(ops::fft(m.in({2, 2 * n}), {.inverse = n == 4096}));
  expect_as_oracle(m.g, {.tolerance = {.of_max = 1e-4}});
}

// 30, 22.9: what the host computes is there before the GPU reads it, and the parameters of later steps stay their own.
TEST_F(DefectsOnWebGpu, K09HostStepsRunInTheirPlace) {
  Maker m;
  const Value x = ops::tanh(m.in({4, 4}));
  const Value det = ops::det(x);  // a host step
  const Value y = ops::softmax(x * ops::reshape(det, {.new_shape = {1, 1}}));
  const Value again = ops::det(y + x);  // and another one, of what the GPU made of the first
  m.out(ops::softmax(y + ops::reshape(again, {.new_shape = {1, 1}}), {.axis = 0}));
  m.out(ops::cumsum(y));
  RunStats stats;
  expect_as_oracle(m.g, {.tolerance = {.of_max = 1e-4}, .host_steps = 2}, &stats);
  EXPECT_EQ(stats.device.submits, 2 * 3);  // a host step ends a submission
}

// 30, 22.10: steps without elements are left out, and the run ends.
TEST_F(DefectsOnWebGpu, K10EmptyStepsAreSkipped) {
  Maker m;
  const Value x = m.in({0, 3}), y = m.in({2, 3});
  m.out(ops::softmax(x));
  m.out(ops::reduce_sum(x, {.axes = {0}}));
  m.out(ops::concat(ops::tanh(x), ops::tanh(y), {.axis = 0}));
  m.out(ops::matmul(x, m.weight({3, 4})));
  expect_as_oracle(m.g);
  Maker part;  // a part without elements, of a value that is not computed for it
  const Value none = ops::narrow(ops::reduce_sum(part.in({2, 3}), {.axes = {0}}), {.axis = 0, .start = 0, .len = 0});
  part.out(ops::matmul(ops::reshape(none, {.new_shape = {1, 0}}), part.weight({0, 4})));
  expect_as_oracle(part.g);
  Maker wanted;  // the one result that is wanted has no elements; the other one has
  wanted.out(ops::fused_matmul_split(wanted.in({2, 3}), wanted.weight({3, 5}), wanted.weight({5}), {.widths = {0, 5}}));
  expect_as_oracle(wanted.g);
  Maker rows;
  rows.out(ops::softmax(ops::tanh(rows.in({Dim::symbol(symbols::kBatch), 3}))));
  Executable exe = compile(rows.g, webgpu_options());
  const Tensor four(DType::F32, {4, 3});
  exe.run({{"x0", four}});
  const int64_t before = exe.stats().device.dispatches;
  exe.set_active_extent(0, 4);
  exe.run({{"x0", four}});
  EXPECT_EQ(exe.stats().device.dispatches, before);
}

// 30, 22.11: values that fusions of norms and projections read keep their bytes as long as somebody needs them.
TEST_F(DefectsOnWebGpu, K11FusionsKeepTheLivesOfWhatTheyRead) {
  Maker m;
  const Value x = m.in({2, 5, 8}), r = m.in({2, 5, 8}), gamma = m.weight({8}), beta = m.weight({8});
  const Value sum = x + r;
  const Value early = ops::tanh(sum);  // stands between the sum and its norm
  const Value normed = ops::layer_norm(sum, gamma, beta);
  const Value qkv = ops::matmul(normed, m.weight({8, 24})) + m.weight({24});
  const auto part = [&](int64_t i) { return ops::narrow(qkv, {.axis = 2, .start = 8 * i, .len = 8}); };
  const Value attended =
      ops::attention(part(0), part(1), part(2), {.num_heads = 2, .head_dim = 4, .layout = ops::AttentionLayout::kBsf});
  const Value h = sum + ops::matmul(attended, m.weight({8, 8}));
  m.out(ops::layer_norm(h, gamma, beta) + early);
  m.out(h);
  m.out(ops::reduce_sum(qkv, {.axes = {2}}));  // the projection is read after its attention
  expect_as_oracle(m.g, {.tolerance = {.of_max = 1e-4}});
}

// 30, 22.12: operands that lie far apart, seen through bindings of a few KiB.
TEST_F(DefectsOnWebGpu, K12WindowsFollowEveryOperand) {
  for (const int64_t binding : {3072, 9216}) {  // of them the larger holds what a scatter sorts
    Maker m;
    Values kept;
    for (int i = 0; i < 12; ++i) kept.push_back(ops::tanh(m.in({10, 32})));  // 15 KiB that are all needed at the end
    const Value index = m.in({7}, DType::I32);
    Value first = kept.front(), last = kept.back();
    m.out(ops::concat(first, last, {.axis = 1}));
    m.out(ops::gather(last, index));
    if (binding > 8192) m.out(ops::scatter_add(ops::gather(first, index), index, {.rows = 10}));
    m.out(ops::cumsum(last + first));
    m.out(ops::topk(last, {.k = 3}));
    m.out(ops::layer_norm(first + last, m.weight({32}), m.weight({32})));
    m.out(ops::matmul(first, ops::transpose(last, {.perm = {1, 0}})));
    m.out(ops::where(ops::gt(first, last), first, last));
    for (const Value& v : kept) m.out(ops::reduce_sum(v, {.axes = {0, 1}}));
    AsOracle how{.given = {{m.name(index), Tensor::i32({7}, {0, 9, 3, 3, 5, 1, 9})}}, .tolerance = {.of_max = 1e-4}};
    how.options.webgpu.max_binding_bytes = binding;
    how.options.webgpu.max_buffer_bytes = binding;
    expect_as_oracle(m.g, how);
  }
}

}  // namespace rlx::test
