// Mistakes of the reference's kernels, continued (spec 30, 22.13 to 22.25).
#include <sstream>

#include "as_oracle.h"
#include "backends/webgpu/program.h"
#include "rlx/custom_op.h"

namespace rlx::test {

using DefectsOnWebGpu = WebGpu;

namespace {

// Bytes whose halves are finite, whatever they mean.
Tensor packed(Rng& rng, int64_t bytes) {
  Tensor t(DType::U8, {bytes});
  for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
  return t;
}

Bytes words(std::vector<uint32_t> list) {
  Bytes bytes;
  for (const uint32_t w : list)
    for (int i = 0; i < 4; ++i) bytes.data.push_back(static_cast<uint8_t>(w >> (8 * i)));
  return bytes;
}

// The value of a product of numbers and constants, as WGSL's text has them: "TX * TY", "256u".
int64_t value_of(const std::string& text, std::string_view expression) {
  int64_t product = 1;
  std::istringstream factors{std::string(expression)};
  for (std::string factor; std::getline(factors, factor, '*');) {
    factor = factor.substr(factor.find_first_not_of(' '));
    factor = factor.substr(0, factor.find_last_not_of(' ') + 1);
    if (std::isdigit(static_cast<unsigned char>(factor[0])) != 0) {
      product *= std::stoll(factor);
      continue;
    }
    size_t begin = text.npos;
    for (const std::string& constant : {str("const ", factor, ": u32 = "), str("const ", factor, " = ")})
      if (const size_t at = text.find(constant); at != text.npos) begin = at + constant.size();
    if (begin == text.npos) {
      ADD_FAILURE() << "the kernel has no constant " << factor << "\n" << text;
      return 0;
    }
    product *= value_of(text, std::string_view(text).substr(begin, text.find(';', begin) - begin));
  }
  return product;
}

// The most threads that a step of the op starts.
int64_t threads_of(const Graph& graph, const OpDef& op) {
  const auto device = webgpu::Device::open(webgpu_options().webgpu);
  const webgpu::Program program = webgpu::lower(graph, manifest_of(graph), {}, *device, webgpu_options());
  int64_t most = 0;
  for (const webgpu::Step& step : program.steps) {
    const auto* d = std::get_if<webgpu::Dispatch>(&step.work);
    if (d == nullptr || step.op != &op) continue;
    int64_t groups = 1;
    for (const webgpu::Axis* axis : {&d->grid.x, &d->grid.y, &d->grid.z})
      groups *= (axis->items + axis->per_group - 1) / axis->per_group;
    const std::string text = webgpu::kernel_facts(d->kernel).text;
    const std::string_view start = "@workgroup_size(";
    const size_t at = text.find(start) + start.size();
    most = std::max<int64_t>(
        most, groups * value_of(text, std::string_view(text).substr(at, text.find_first_of(",)", at) - at)));
  }
  return most;
}

}  // namespace

// 30, 22.13: every format is decoded as the oracle does, whose fields gguf-py judges (op_tests: Scheme).
TEST_F(DefectsOnWebGpu, K13EveryFormatIsDecodedAsByTheOracle) {
  Rng rng(5);
  for (const Scheme scheme : {Scheme::kGgufQ2K, Scheme::kGgufQ3K, Scheme::kGgufQ6K, Scheme::kGgufQ4K, Scheme::kGgufQ5K,
                              Scheme::kGgufQ8K, Scheme::kGgufIq4Xs}) {
    SCOPED_TRACE(str(scheme));
    const int64_t k = 2 * info(scheme).block_elems, n = 3, bytes = weight_bytes(scheme, k, n);
    Maker m;
    const Value w = m.in({bytes}, DType::U8), index = m.in({3}, DType::I32);
    m.out(ops::dequant_gather(w, index, {.scheme = scheme, .k = k}));
    expect_as_oracle(m.g, {.given = {{m.name(w), packed(rng, bytes)}, {m.name(index), Tensor::i32({3}, {2, 0, 1})}},
                           .tolerance = kRounding});
  }
  for (const Scheme scheme : {Scheme::kInt4, Scheme::kFp8E4m3, Scheme::kFp8E5m2}) {
    SCOPED_TRACE(str(scheme));
    const int64_t k = 32, n = 6, bytes = weight_bytes(scheme, k, n);
    const bool fp8 = scheme != Scheme::kInt4;
    Maker m;
    const Value x = m.in({2, k}), s = m.weight(fp8 ? Shape{n} : Shape{1, n});
    const Value codes = m.weight({bytes}, DType::U8);
    const Value w = fp8 ? ops::reshape(codes, {.new_shape = {k, n}}) : codes;
    m.out(ops::dequant_matmul({x, w, s, s}, {.scheme = scheme, .block = 32}));
    expect_as_oracle(m.g, {.given = {{m.name(codes), packed(rng, bytes)}}});
  }
}

// 30, 22.14: a partial rotation, its gradient in every layout, and a gather's gradient for indices of rank 2.
TEST_F(DefectsOnWebGpu, K14RopeAndGatherGradients) {
  for (const auto layout : {ops::AttentionLayout::kBhsd, ops::AttentionLayout::kBshd, ops::AttentionLayout::kBsf})
    for (const std::optional<int64_t> n_rot : {std::optional<int64_t>(), std::optional<int64_t>(4)}) {
      Maker m;
      const Shape shape = layout == ops::AttentionLayout::kBhsd   ? Shape{2, 3, 5, 8}
                          : layout == ops::AttentionLayout::kBshd ? Shape{2, 5, 3, 8}
                                                                  : Shape{2, 5, 24};
      const Value x = m.in(shape), cos = m.weight({5, 4}), sin = m.weight({5, 4});
      const ops::RopeAttrs attrs{.head_dim = 8, .n_rot = n_rot, .layout = layout};
      m.out(ops::rope(x, cos, sin, attrs));
      m.out(ops::rope_backward(x, cos, sin, attrs));
      expect_as_oracle(m.g);
    }
  Maker m;
  const Value dy = m.in({2, 3, 4}), index = m.in({2, 3}, DType::I32);
  m.out(ops::gather_backward(dy, index, {.table_shape = {6, 4}}));
  expect_as_oracle(m.g, {.given = {{m.name(index), Tensor::i32({2, 3}, {5, 0, 5, 2, 2, 5})}}});
}

// 30, 22.15: SwiGLU's order of halves; rows without an expert are zero.
TEST_F(DefectsOnWebGpu, K15SwigluOrderAndBadExperts) {
  Maker m;
  const Value x = m.in({3, 8});
  m.out(ops::fused_swiglu(x));
  m.out(ops::fused_swiglu(x, {.gate_first = true}));
  const NamedTensors y = expect_as_oracle(m.g, {.tolerance = kTranscendental});
  EXPECT_NE(y.at("y0"), y.at("y1"));
  Maker grouped;
  const Value rows = grouped.in({4, 3}), experts = grouped.weight({2, 3, 5}), choice = grouped.in({4}, DType::I32);
  grouped.out(ops::grouped_matmul(rows, experts, choice));
  CompileOptions options = webgpu_options(true);
  options.webgpu.check_indices = false;  // with it they are errors
  Executable exe = compile(grouped.g, options);
  Rng rng(1);
  exe.set_param(grouped.name(experts), rng.tensor({2, 3, 5}));
  const Tensor z =
      exe.run({{grouped.name(rows), rng.tensor({4, 3})}, {grouped.name(choice), Tensor::i32({4}, {0, 2, -1, 1})}})
          .at("y0");
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(z.at(i) == 0, i / 5 == 1 || i / 5 == 2) << i;
}

// 30, 22.16: a state that happens to lie at the beginning of its buffer is a state.
TEST_F(DefectsOnWebGpu, K16AStateAtOffsetZeroIsUsed) {
  Maker m;
  const Value state = m.g.state("s", {{1, 2, 4, 4}, DType::F32});
  const auto x = [&] { return m.in({1, 3, 2, 4}); };
  const Value g = m.in({1, 3, 2}), beta = m.in({1, 3, 2});
  const Value y = ops::gated_delta_net(Values{x(), x(), x(), g, beta, state}, {.state_size = 4, .carry_state = true});
  m.g.update(state, y.result(1));
  m.out(y);
  Rng rng(3);
  const Tensor start = rng.tensor({1, 2, 4, 4});
  NamedTensors inputs;
  for (const Port& p : manifest_of(m.g).inputs) inputs[p.name] = rng.uniform_tensor(p.type.shape.sizes(), -1, 0.5);
  Tensor results[2][2];
  int at = 0;
  for (CompileOptions options : {webgpu_options(true), CompileOptions{.device = "reference"}}) {
    Executable exe = compile(m.g, options);
    results[at][0] = exe.run(inputs).at("y0");
    exe.set_state("s", start);
    results[at++][1] = exe.run(inputs).at("y0");
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(near(results[0][i], results[1][i], {.of_max = 1e-4})) << i;
  EXPECT_NE(results[0][0], results[0][1]);
}

// 30, 22.17: an active extent does not cut what mixes rows: neighbours and batch regions.
TEST_F(DefectsOnWebGpu, K17AnActiveExtentCutsRowsAlone) {
  const Dim rows = Dim::symbol(symbols::kBatch);
  Maker m;
  m.out(custom_op("umap.knn", Values{m.in({6, 6})}, words({2}).data));
  const Chain chain = {{.op = &ops::tanh, .operands = {{false, 0}}}};
  m.out(ops::batch_elementwise_region(m.in({1, 6}), m.in({1, 6}), {.chain = chain, .num_batch_inputs = 2}));
  m.out(ops::softmax(m.in({rows, 6})));
  CompileOptions options = webgpu_options(true);
  options.dims = {{symbols::kBatch, 6}};
  Executable exe = compile(m.g, options);
  Rng rng(2);
  NamedTensors inputs;
  for (const Port& p : exe.inputs())
    inputs[p.name] = rng.uniform_tensor(p.type.shape.bind({{symbols::kBatch, 6}}).sizes(), 0, 1);
  const NamedTensors full = exe.run(inputs);
  exe.set_active_extent(2, 6);
  const NamedTensors cut = exe.run(inputs);
  EXPECT_EQ(cut.at("y0"), full.at("y0"));
  EXPECT_EQ(cut.at("y1"), full.at("y1"));
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(cut.at("y2").at(i), full.at("y2").at(i));
}

// 30, 22.19: CPU and GPU draw the same tokens, and order equal ones alike.
TEST_F(DefectsOnWebGpu, K19EveryDeviceDrawsTheSameTokens) {
  Maker m;
  const Value logits = m.in({200, 40}), rng = m.in({4}, DType::U32);
  m.out(ops::sample(logits, rng, {.top_k = 7, .top_p = 0.9f, .temperature = 0.7f}));
  const Value best = ops::topk(m.in({5, 30}), {.k = 9});
  m.out(best);
  m.out(best.result(1));
  Rng random(4);
  Tensor ties = random.integers({5, 30}, 0, 3).cast(DType::F32);
  const NamedTensors given = {{"x1", Tensor::of<uint32_t>(DType::U32, {4}, std::vector<uint32_t>{42, 1, 7, 0})},
                              {"x2", ties}};
  const NamedTensors expected = expect_as_oracle(m.g, {.given = given, .tolerance = kExact});
  Executable cpu = compile(m.g, {.device = "cpu"}), gpu = compile(m.g, webgpu_options());
  NamedTensors inputs = given;
  inputs["x0"] = random.tensor({200, 40});
  const NamedTensors on_cpu = cpu.run(inputs), on_gpu = gpu.run(inputs);
  for (const auto& [name, value] : on_cpu) EXPECT_EQ(on_gpu.at(name), value) << name;
}

// 30, 22.20: more rows or elements than one axis of a grid has workgroups. The real limit is 65,535, too many for a
// software adapter in every kernel; five stand for it.
TEST_F(DefectsOnWebGpu, K20MoreRowsThanAGridHasWorkgroups) {
  Maker m;
  const Value x = m.in({3000, 70}), gamma = m.weight({70}), beta = m.weight({70}), dy = m.in({3000, 70});
  for (const Value& d : {ops::layer_norm_backward(x, gamma, dy), ops::rms_norm_backward(x, gamma, beta, dy)})
    for (int64_t i = 0; i < 3; ++i) m.out(d.result(i));
  m.out(ops::layer_norm(x + dy, gamma, beta));
  m.out(ops::softmax(x));
  m.out(ops::cumsum(x));
  m.out(ops::argmax(x));
  m.out(ops::topk(x, {.k = 2}));
  m.out(ops::reduce_sum(x, {.axes = {0}}));
  m.out(ops::transpose(x, {.perm = {1, 0}}));
  m.out(ops::fft(m.in({3000, 64})));
  const Value index = m.in({2}, DType::I32);
  const Value rows = m.in({2, 60});
  m.out(ops::gather_backward(rows, index, {.table_shape = {3000, 60}}));
  m.out(ops::gather(x, index));
  const Chain chain = {{.op = &ops::neg, .operands = {{false, 0}}}};
  const auto flat = [](const Value& v) { return ops::reshape(v, {.new_shape = {1, 3000 * 70}}); };
  m.out(ops::batch_elementwise_region(flat(x), flat(dy), {.chain = chain, .num_batch_inputs = 2}));
  m.out(ops::tanh(x) * dy);
  AsOracle how{.given = {{m.name(index), Tensor::i32({2}, {2999, 3})}}, .tolerance = {.of_max = 1e-4}, .runs = 1};
  how.options.webgpu.max_groups_per_row = 5;
  expect_as_oracle(m.g, how);
}

// 30, 22.21: few long rows keep many threads busy.
TEST_F(DefectsOnWebGpu, K21ManyThreadsShareARow) {
  const int64_t n = 100000, least = 128;
  const auto expect_many = [&](const OpDef& op, const std::function<void(Maker&)>& build) {
    Maker m;
    build(m);
    EXPECT_GE(threads_of(m.g, op), least) << op.name;
  };
  expect_many(ops::softmax, [&](Maker& m) { m.out(ops::softmax(m.in({1, n}))); });
  expect_many(ops::layer_norm, [&](Maker& m) { m.out(ops::layer_norm(m.in({1, n}), m.weight({n}), m.weight({n}))); });
  expect_many(ops::cumsum, [&](Maker& m) { m.out(ops::cumsum(m.in({1, n}))); });
  expect_many(ops::topk, [&](Maker& m) { m.out(ops::topk(m.in({1, n}), {.k = 3})); });
  expect_many(ops::argmax, [&](Maker& m) { m.out(ops::argmax(m.in({1, n}))); });
  expect_many(ops::sample, [&](Maker& m) { m.out(ops::sample(m.in({1, n}))); });
  expect_many(ops::reduce_sum, [&](Maker& m) { m.out(ops::reduce_sum(m.in({1, n}), {.axes = {1}})); });
  expect_many(ops::scatter_add, [&](Maker& m) {
    m.out(ops::scatter_add(m.in({n, 1}), m.in({n}, DType::I32), {.rows = 1}));
  });
  expect_many(ops::layer_norm_backward, [&](Maker& m) {
    m.out(ops::layer_norm_backward(m.in({n, 2}), m.weight({2}), m.in({n, 2})).result(1));
  });
  expect_many(ops::attention, [&](Maker& m) {
    m.out(ops::attention(m.in({1, 1, 1, 64}), m.in({1, 1, 4096, 64}), m.in({1, 1, 4096, 64}),
                         {.num_heads = 1, .head_dim = 64}));
  });
  expect_many(ops::welch_peaks, [&](Maker& m) { m.out(ops::welch_peaks(m.in({1, 8192}), {.k = 2})); });
  expect_many(ops::custom, [&](Maker& m) { m.out(custom_op("umap.knn", Values{m.in({128, 128})}, words({2}).data)); });
}

// 30, 22.22: a region is a kernel of its own text. (Products and convolutions: MatmulKernels, ConvKernels.)
TEST_F(DefectsOnWebGpu, K22RegionsAreCompiledNotInterpreted) {
  Maker m;
  m.out(ops::exp(ops::tanh(m.in({300}))) * m.in({300}));
  const auto device = webgpu::Device::open(webgpu_options().webgpu);
  const Graph region = compile(m.g, webgpu_options()).optimized_graph();
  const webgpu::Program program = webgpu::lower(region, manifest_of(region), {}, *device, webgpu_options());
  ASSERT_EQ(program.steps.size(), 1u);
  const auto& d = std::get<webgpu::Dispatch>(program.steps[0].work);
  ASSERT_NE(d.kernel.source, nullptr);
  const std::string text = webgpu::kernel_facts(d.kernel).text;
  EXPECT_NE(text.find("tanh"), text.npos);
  EXPECT_NE(text.find("exp"), text.npos);
  EXPECT_EQ(text.find("switch"), text.npos);
}

// 30, 22.23: any axis, and broadcasting without a copy.
TEST_F(DefectsOnWebGpu, K23AnyAxisAndNothingExpanded) {
  Maker m;
  const Value x = m.in({2, 3, 4, 5});
  m.out(ops::softmax(x, {.axis = 1}));
  m.out(ops::cumsum(x, {.axis = 0}));
  m.out(ops::reduce_mean(x, {.axes = {0, 2}}));
  m.out(ops::reduce_max(x, {.axes = {1, 3}, .keep_dim = true}));
  m.out(x * m.weight({3, 1, 1}) + m.in({2, 1, 1, 5}));
  expect_as_oracle(m.g);
  for (const StepInfo& s : compile(m.g, webgpu_options()).plan().steps) {
    EXPECT_NE(s.name, "expand");
    EXPECT_TRUE(s.kernel.starts_with("webgpu/")) << s.name;
  }
}

// 30, 22.24: nothing but the outputs is read back, in one submission.
TEST_F(DefectsOnWebGpu, K24OnlyOutputsAreReadBack) {
  Maker m;
  const auto x = [&] { return m.in({1, 3, 2, 4}); };
  m.out(ops::gated_delta_net(Values{x(), x(), x(), m.in({1, 3, 2}), m.in({1, 3, 2})}, {.state_size = 4}));
  m.out(
      custom_op("llada2.group_limited_gate", Values{m.in({2, 4}), m.in({2, 4})}, words({2, 1, 2, 0x3f800000, 4}).data));
  const int64_t bytes = weight_bytes(Scheme::kGgufQ4K, 256, 4);
  const Value rows = m.in({2, 256}), w = m.weight({bytes}, DType::U8);
  m.out(ops::dequant_matmul(rows, w, {.scheme = Scheme::kGgufQ4K}));
  Rng rng(1);
  AsOracle how{.given = {{m.name(w), packed(rng, bytes)}}, .tolerance = {.of_max = 1e-4}};
  how.options.poison = false;
  RunStats stats;
  const NamedTensors y = expect_as_oracle(m.g, how, &stats);
  int64_t outputs = 0;
  for (const auto& [name, value] : y) outputs += static_cast<int64_t>(value.bytes().size());
  EXPECT_EQ(stats.device.bytes_down, how.runs * outputs);
  EXPECT_EQ(stats.device.submits, how.runs);
}

// Axes of size 1 stand nowhere: not between others, and not apart from them.
TEST_F(DefectsOnWebGpu, ReductionsSkipAxesOfSizeOne) {
  using ops::ReduceKind;
  const struct {
    Shape shape;
    std::vector<int64_t> axes;
  } kCases[] = {{{7, 1, 13}, {0, 2}},   {{5, 1, 4, 6}, {0, 2, 3}}, {{1, 6, 5, 7}, {0, 2, 3}},
                {{6, 5, 1}, {-1, 0}},   {{1, 6, 1, 5}, {0, 2}},    {{3, 1, 4, 1, 5, 1}, {5, 2, 0}},
                {{2, 3, 1, 4}, {0, 3}}, {{2, 1, 1}, {1}}};
  for (const auto& c : kCases) {
    Maker m;
    const Value x = m.in(c.shape);
    for (const auto kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kProd})
      for (const bool keep_dim : {false, true}) m.out(ops::reduce_op(kind)(x, {.axes = c.axes, .keep_dim = keep_dim}));
    AsOracle how;
    how.options.webgpu.no_host_steps = true;
    expect_as_oracle(m.g, how);
  }
}

// 30, 22.25: packed weights go up, and lie on the device, as the bytes they are.
TEST_F(DefectsOnWebGpu, K25PackedWeightsStayPacked) {
  Maker m;
  const int64_t bytes = weight_bytes(Scheme::kGgufQ8_0, 64, 8);
  const Value x = m.in({2, 64}), w = m.weight({bytes}, DType::U8);
  m.out(ops::dequant_matmul(x, w, {.scheme = Scheme::kGgufQ8_0}));
  Executable exe = compile(m.g, webgpu_options());
  Rng rng(1);
  exe.set_param("w1", packed(rng, bytes));
  exe.run({{"x0", rng.tensor({2, 64})}});
  EXPECT_EQ(exe.plan().param_bytes, bytes);
  EXPECT_EQ(exe.stats().device.bytes_up, bytes + 2 * 64 * 4);
}

}  // namespace rlx::test
