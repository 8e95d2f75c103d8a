// Defects of the earlier implementation that lie behind the passes: lifetimes, views, casts, layouts, names (spec 20,
// appendix A). The cpu device and the GPU, with dying bytes poisoned, against the plain evaluator.
#include <gtest/gtest.h>

#include "backends/reference/evaluate.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"
#include "support/random.h"

namespace rlx::test {

namespace {

const CompileOptions kCpu = {.device = "cpu", .threads = 2, .verify_plan = true, .poison = true};

// The cpu, and an adapter if there is one.
std::vector<CompileOptions> all_devices() {
  std::vector<CompileOptions> out = {kCpu};
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && d.available) {
      out.push_back({.device = "webgpu", .verify_plan = true, .poison = true});
      out.back().webgpu.bounds_checks = true;
    }
  return out;
}

Value tensor(Graph& g, const std::string& name, std::vector<int64_t> sizes, DType dtype = DType::F32) {
  return g.input(name, {Shape(std::move(sizes)), dtype});
}

// Random inputs, weights scaled down so that values stay near one; twice, for what a first run leaves behind. Gives the
// results of the evaluator.
std::vector<Tensor> compare(const Graph& graph, Tolerance tolerance = kAccumulation) {
  Rng rng(7);
  std::vector<Tensor> inputs;
  NamedTensors params;
  for (const Node* n : graph.leaves(ops::input))
    inputs.push_back(rng.tensor(n->results[0].type.shape.sizes(), n->results[0].type.dtype));
  for (const Node* n : graph.leaves(ops::param))
    params[n->name] = rng.uniform_tensor(n->results[0].type.shape.sizes(), -0.2, 0.2, n->results[0].type.dtype);
  const std::vector<Tensor> expected = reference::evaluate(graph, inputs, params);
  for (const CompileOptions& options : all_devices()) {
    Executable exe = compile(graph, options);
    for (const auto& [name, value] : params) exe.set_param(name, value);
    for (int run = 0; run < 2; ++run) {
      const std::span<const Tensor> actual = exe.run_slots(inputs);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(near(actual[i], expected[i], tolerance))
            << options.device << ", run " << run << ", output " << i << "\n"
            << print(graph);
    }
  }
  return expected;
}

Value linear(const Value& x, const std::string& name, int64_t k, int64_t n) {
  Graph& g = x.graph();
  return ops::matmul(x, g.param(name + ".w", {{k, n}, DType::F32})) + g.param(name + ".b", {{n}, DType::F32});
}

Value part(const Value& x, int64_t start, int64_t len) {
  return ops::narrow(x, {.axis = -1, .start = start, .len = len});
}

// q, k and v as slices of one projection.
Value packed_attention(const Value& qkv, int64_t heads, int64_t width) {
  return ops::attention(part(qkv, 0, width), part(qkv, width, width), part(qkv, 2 * width, width),
                        {.num_heads = heads, .head_dim = width / heads, .layout = ops::AttentionLayout::kBsf});
}

}  // namespace

TEST(Defects, D16InterleavedBlocksAndAReusedProjectionKeepTheirLives) {
  Graph g;
  const Value x = tensor(g, "x", {2, 5, 8}), y = tensor(g, "y", {2, 5, 8});
  const Value a = linear(x, "a", 8, 24), b = linear(y, "b", 8, 24);
  const Value first = packed_attention(a, 2, 8), second = packed_attention(b, 2, 8);
  const Value out_a = linear(first, "c", 8, 8), out_b = linear(second, "d", 8, 8);
  g.output(out_a + out_b, "sum");
  g.output(ops::reduce_sum(a, {.axes = {2}}), "again");  // the projection is read after its attention
  compare(g);
}

// Every operand of the splats is computed, and something is computed from the image: ids from before the op, from
// within its decomposition and from after it must not be confused.
TEST(Defects, D24SplatsReadTheOperandsThatStandBeforeThem) {
  Graph g;
  const int64_t n = 12;
  const auto number = [&](float v) { return g.constant(Tensor::f32({}, {v})); };
  const auto leaf = [&](const char* name, int64_t size) { return tensor(g, name, {size}); };
  const Value positions = ops::tanh(leaf("p", 3 * n)), scales = ops::tanh(leaf("s", 3 * n)) - number(1.5f);
  const Value turns = ops::reshape(leaf("q", 4 * n), {.new_shape = {n, 4}});
  const Value length = ops::sqrt(ops::reduce_sum(turns * turns, {.axes = {1}, .keep_dim = true}));
  const Value rotations = ops::reshape(turns / length, {.new_shape = {4 * n}});
  const Value opacities = ops::sigmoid(leaf("o", n)), colors = ops::sigmoid(leaf("c", 3 * n));
  const Value harmonics = leaf("h", 9 * n) * number(0.1f);
  const Value meta = g.constant(Tensor::f32(
      {23}, {0.25f, -0.125f, -4, 0, 0, 0, 0, 1, 0, 40, 0.1f, 100, 0.25f, 0.5f, 0.125f, 0, 0, 0, 0, 0, 0, 0, 0}));
  const Values scene = {positions, scales, rotations, opacities, colors, harmonics, meta};
  const ops::GaussianSplatAttrs attrs = {.width = 19, .height = 13, .tile_size = 8, .max_list_entries = 400};
  const Value image = ops::gaussian_splat_render(scene, attrs);
  Values with_gradient = scene;
  with_gradient.push_back(image - number(0.5f));
  g.output(image * number(2), "image");
  g.output(ops::gaussian_splat_render_backward(with_gradient,
                                               {.width = 19, .height = 13, .tile_size = 8, .max_list_entries = 400}),
           "gradient");
  const Value prep = ops::gaussian_splat_prepare(scene, attrs);
  g.output(ops::gaussian_splat_rasterize(prep, prep.result(1), meta,
                                         {.width = 19, .height = 13, .tile_size = 8, .max_list_entries = 400}),
           "in_two_steps");
  const std::vector<Tensor> expected = compare(g);
  // Splats are seen, and the background beside them.
  const std::vector<double> rgba = expected[0].to_doubles();
  double least_alpha = 2, most_alpha = 0;
  for (size_t i = 3; i < rgba.size(); i += 4)
    least_alpha = std::min(least_alpha, rgba[i]), most_alpha = std::max(most_alpha, rgba[i]);
  EXPECT_LT(least_alpha, 0.2);
  EXPECT_GT(most_alpha, 1.0);
}

TEST(Defects, D28ASliceOfWideAndNarrowElementsStartsWhereItShould) {
  for (const DType d : {DType::I64, DType::F16, DType::I8, DType::F64}) {
    Graph g;
    const Value x = tensor(g, "x", {6, 4}, d);
    const Value doubled = x + x;
    g.output(ops::narrow(doubled, {.axis = 0, .start = 3, .len = 2}), "y");
    g.output(ops::narrow(ops::narrow(doubled, {.axis = 0, .start = 2, .len = 4}), {.axis = 0, .start = 1, .len = 2}),
             "z");
    compare(g, kExact);
  }
}

TEST(Defects, D29ACastThereAndBackIsComputed) {
  Graph g;
  const Value x = tensor(g, "x", {5, 7});
  g.output(ops::cast(ops::cast(x * x, {.to = DType::I32}), {.to = DType::F32}), "y");
  g.output(ops::cast(ops::cast(x, {.to = DType::F16}), {.to = DType::F32}), "z");
  compare(g, kExact);
}

TEST(Defects, D30NothingIsReservedJustInCase) {
  Graph g;
  g.output(ops::softmax(ops::tanh(tensor(g, "x", {4, 8}))), "y");
  EXPECT_LT(compile(g, kCpu).plan().arena_bytes, 65536);  // a few blocks per thread, not 64 MiB
}

TEST(Defects, D31APreNormBlockReadsItsSumBeforeAndAfterTheNorm) {
  Graph g;
  const Value x = tensor(g, "x", {2, 5, 8}), residual = tensor(g, "r", {2, 5, 8});
  const Value gamma = g.param("gamma", {{8}, DType::F32}), beta = g.param("beta", {{8}, DType::F32});
  const Value sum = x + residual;
  const Value early = ops::tanh(sum);  // stands between the sum and its norm
  const Value normed = ops::layer_norm(sum, gamma, beta);
  const Value attended = packed_attention(linear(normed, "qkv", 8, 24), 2, 8);  // normed dies at the projection
  const Value h = sum + linear(attended, "out", 8, 8);
  g.output(ops::layer_norm(h, gamma, beta) + early, "y");
  g.output(h, "h");
  compare(g);
}

TEST(Defects, D32TheLayoutIsStatedAlsoWhenSequenceAndHeadsAgree) {
  for (const auto layout : {ops::AttentionLayout::kBhsd, ops::AttentionLayout::kBshd}) {
    Graph g;
    g.output(ops::attention(tensor(g, "q", {2, 4, 4, 8}), tensor(g, "k", {2, 4, 4, 8}), tensor(g, "v", {2, 4, 4, 8}),
                            {.num_heads = 4, .head_dim = 8, .layout = layout, .mask_kind = ops::MaskKind::kCausal}),
             "y");
    compare(g);
  }
}

TEST(Defects, D33AMeanOverAxesThatStandApartKeepsTheOrder) {
  Graph g;
  const Value x = tensor(g, "x", {2, 3, 4, 5});
  const Value mean = ops::reduce_mean(x, {.axes = {0, 2}, .keep_dim = true});
  const Value error = x - mean;  // the loss reads what was reduced, and the operand again
  g.output(ops::reduce_mean(error * error, {.axes = {1, 3}}), "loss");
  g.output(ops::reduce_sum(ops::exp(ops::reduce_mean(x, {.axes = {1, 3}})), {.axes = {0, 1}}), "of_means");
  compare(g);
}

TEST(Defects, D34ACheckpointedScanKeepsTheValuesOfItsSteps) {
  const TensorType number{{2}, DType::F32};
  auto body = std::make_shared<Graph>("body");
  body->output(body->input("c", number) + body->input("x", number), "c");
  for (const bool unrolled : {false, true}) {
    Graph g;
    const Value c = tensor(g, "c", {2}), xs = tensor(g, "xs", {5, 2});
    const Value scan = ops::scan(
        Values{c, xs},
        {.body = body, .length = 5, .num_carries = 1, .num_xs = 1, .save_trajectory = true, .num_checkpoints = 2});
    g.output(scan, "last");
    g.output(scan.result(1), "kept");
    CompileOptions options = kCpu;
    if (!unrolled) options.skip_passes = {"lower_control_flow"};
    Executable exe = compile(g, options);
    const NamedTensors y =
        exe.run({{"c", Tensor::f32({2}, {1, 2})}, {"xs", Tensor::f32({5, 2}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5})}});
    EXPECT_EQ(y.at("last"), Tensor::f32({2}, {16, 17}));
    EXPECT_EQ(y.at("kept"), Tensor::f32({2, 2}, {7, 8, 16, 17}));  // after the third step and the fifth
    if (unrolled) compare(g);
  }
}

TEST(Defects, D41UnknownNamesAndWrongSizesAreErrors) {
  Graph g;
  const Value x = tensor(g, "x", {2});
  g.output(x * g.param("w", {{2}, DType::F32}), "y");
  Executable exe = compile(g, kCpu);
  EXPECT_THROW(exe.set_param("v", Tensor::f32({2}, {1, 2})), Error);
  EXPECT_THROW(exe.set_param("w", Tensor::f32({3}, {1, 2, 3})), Error);
  exe.set_param("w", Tensor::f32({2}, {1, 2}));
  EXPECT_THROW(exe.run({{"z", Tensor::f32({2}, {1, 2})}}), Error);
  EXPECT_THROW(exe.run({{"x", Tensor::f32({1}, {1})}}), Error);
  EXPECT_EQ(exe.run({{"x", Tensor::f32({2}, {3, 4})}}).at("y"), Tensor::f32({2}, {3, 8}));
}

TEST(Defects, D45AWeightCountsOnceHoweverOftenItIsUsed) {
  Graph g;
  const Value x = tensor(g, "x", {8, 8}), w = g.param("w", {{8, 8}, DType::F32});
  const Value p = g.input("p", {{}, DType::Bool});
  const auto branch = [&](bool twice) {
    auto b = std::make_shared<Graph>("branch");
    const Value v = b->input("x", x.type()), same = b->param("w", w.type());
    b->output(twice ? ops::matmul(ops::matmul(v, same), same) : v, "y");
    return b;
  };
  g.output(ops::matmul(ops::matmul(x, w), w) +
               ops::if_(Values{p, x}, {.then_branch = branch(true), .else_branch = branch(false)}),
           "y");
  for (CompileOptions options : all_devices()) {
    options.poison = false;
    EXPECT_EQ(compile(g, options).plan().param_bytes, 8 * 8 * 4) << options.device;
  }
}

// The plan has a state of no elements where the next persistent value lies, which is not in its bytes.
TEST(Defects, AStateOfNoElementsHasNobodysBytes) {
  Graph g;
  const Value x = tensor(g, "x", {5, 2});
  const Value s = g.state("s", {{0, 2}, DType::F32});
  g.update(s, ops::neg(s));
  g.output(ops::neg(x), "y");
  g.output(s, "before");
  for (const char* device : {"reference", "cpu", "webgpu"}) {
    if (device == std::string("webgpu") && all_devices().size() < 2) continue;
    Executable exe = compile(g, {.device = device});
    const Tensor in = Rng(1).tensor({5, 2});
    for (int run = 0; run < 2; ++run) {
      const NamedTensors out = exe.run({{"x", in}});
      EXPECT_TRUE(near(out.at("y"), run_op(ops::neg, {in}, {})[0], kExact)) << device;
      EXPECT_EQ(out.at("before").sizes(), (std::vector<int64_t>{0, 2})) << device;
    }
  }
}

}  // namespace rlx::test
