// Attention that reads q, k and v where they lie (spec 20, 3.2), and its kernels for few rows.
#include <algorithm>

#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

using L = ops::AttentionLayout;

// How a graph spells q, k and v of one packed projection, or of three.
enum class Packing { kLastAxis, kMiddleAxis, kFirstAxis, kTransposed, kCount };

struct Packed {
  int64_t b, s, h, hkv, d;
  Packing packing;
  DType dtype;
  ops::MaskKind mask;
};

Value part(const Value& x, int64_t axis, int64_t start, int64_t len) {
  return ops::narrow(x, {.axis = axis, .start = start, .len = len});
}

// Sizes of the inputs, and y of them. Their readers are sums, so that the packed value has bytes that may be reused.
Graph packed_graph(const Packed& p, std::vector<std::vector<int64_t>>& inputs) {
  Graph g;
  const int64_t b = p.b, s = p.s, h = p.h, hkv = p.hkv, d = p.d;
  const auto given = [&](std::vector<int64_t> sizes) {
    const Value x = g.input(str("x", inputs.size()), {Shape(std::span<const int64_t>(sizes)), p.dtype});
    inputs.push_back(std::move(sizes));
    return x + x;
  };
  const auto heads = [&](const Value& x, int64_t n, L layout) {
    if (layout == L::kBsf) return ops::reshape(x, {.new_shape = {b, s, n * d}});
    if (layout == L::kBshd) return ops::reshape(x, {.new_shape = {b, s, n, d}});
    return ops::reshape(x, {.new_shape = {b, n, s, d}});
  };
  L layout = L::kBsf;
  std::vector<Value> qkv;
  switch (p.packing) {
    case Packing::kLastAxis: {
      const Value x = given({b, s, (h + 2 * hkv) * d});
      layout = s % 2 == 0 ? L::kBsf : L::kBshd;
      for (const auto& [start, n] : {std::pair{int64_t{0}, h}, {h, hkv}, {h + hkv, hkv}})
        qkv.push_back(heads(part(x, 2, start * d, n * d), n, layout));
      break;
    }
    case Packing::kMiddleAxis: {
      const Value x = ops::reshape(given({b, s, 3 * h * d}), {.new_shape = {b, s, 3, h, d}});
      layout = s % 2 == 0 ? L::kBsf : L::kBshd;
      for (int64_t i = 0; i < 3; ++i) qkv.push_back(heads(part(x, 2, i, 1), h, layout));
      break;
    }
    case Packing::kFirstAxis: {
      const Value x = ops::reshape(given({b, s, 3 * h * d}), {.new_shape = {b, s, 3, h, d}});
      const Value turned = ops::transpose(x, {.perm = {2, 0, 3, 1, 4}});
      layout = L::kBhsd;
      for (int64_t i = 0; i < 3; ++i) qkv.push_back(heads(part(turned, 0, i, 1), h, layout));
      break;
    }
    default:
      layout = L::kBhsd;
      for (const int64_t n : {h, hkv, hkv}) {
        const Value x = ops::reshape(given({b, s, n * d}), {.new_shape = {b, s, n, d}});
        qkv.push_back(ops::transpose(x, {.perm = {0, 2, 1, 3}}));
      }
  }
  const Value y = ops::attention({qkv[0], qkv[1], qkv[2]},
                                 {.num_heads = h, .head_dim = d, .layout = layout, .mask_kind = p.mask, .window = 3});
  g.output(y, "y");
  g.output(y.result(1), "lse");
  return g;
}

bool copies(const Executable& exe) {
  const PlanInfo plan = exe.plan();
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const StepInfo& s) {
    return s.op == "narrow" || s.op == "slice" || s.op == "transpose" || s.op == "reshape";
  });
}

NamedTensors on_oracle(const Graph& g, const NamedTensors& in) { return compile(g, {.device = "reference"}).run(in); }

void check_packed(const Packed& p, Rng& rng) {
  SCOPED_TRACE(str("b ", p.b, " s ", p.s, " h ", p.h, " hkv ", p.hkv, " d ", p.d, " packing ",
                   static_cast<int>(p.packing), " ", p.dtype));
  std::vector<std::vector<int64_t>> sizes;
  const Graph g = packed_graph(p, sizes);
  NamedTensors in;
  for (size_t i = 0; i < sizes.size(); ++i) in[str("x", i)] = rng.tensor(sizes[i], p.dtype);
  CompileOptions copied = webgpu_options(true);
  copied.webgpu.packed_attention = false;
  Executable in_place = compile(g, webgpu_options(true)), with_copies = compile(g, copied);
  const NamedTensors y = in_place.run(in), same = with_copies.run(in), oracle = on_oracle(g, in);
  EXPECT_FALSE(copies(in_place));
  EXPECT_EQ(copies(with_copies), p.h > 1 || p.packing != Packing::kTransposed);
  for (const auto& [name, value] : y) {
    EXPECT_EQ(value, same.at(name)) << name;
    EXPECT_TRUE(near(value, oracle.at(name), p.dtype == DType::F16 ? kHalf : kAccumulation)) << name;
  }
}

}  // namespace

using AttentionOnWebGpu = WebGpu;

TEST_F(AttentionOnWebGpu, ReadsPackedProjectionsInPlace) {
  Rng rng(7);
  for (const auto packing : {Packing::kLastAxis, Packing::kMiddleAxis, Packing::kFirstAxis, Packing::kTransposed})
    for (const int64_t s : {6, 21}) {
      const int64_t hkv = packing == Packing::kLastAxis || packing == Packing::kTransposed ? 2 : 4;
      check_packed({2, s, 4, hkv, 16, packing, s == 6 ? DType::F32 : DType::F16, ops::MaskKind::kCausal}, rng);
    }
}

TEST_F(AttentionOnWebGpu, ReadsRandomPackingsAsItsCopies) {
  for_random(12, [](Rng& rng) {
    Packed p{.b = rng.integer(1, 2),
             .s = rng.integer(2, 9),
             .h = rng.integer(1, 2),
             .hkv = 1,
             .d = rng.integer(1, 9),
             .packing = static_cast<Packing>(rng.integer(0, static_cast<int64_t>(Packing::kCount) - 1)),
             .dtype = rng.chance(0.3) ? DType::F16 : DType::F32,
             .mask = rng.chance(0.5) ? ops::MaskKind::kSlidingWindow : ops::MaskKind::kNone};
    p.h *= p.hkv = rng.integer(1, 3);
    if (p.packing == Packing::kMiddleAxis || p.packing == Packing::kFirstAxis) p.hkv = p.h;
    check_packed(p, rng);
  });
}

// A value that is read by something else too keeps its copy.
TEST_F(AttentionOnWebGpu, KeepsCopiesThatOthersRead) {
  Graph g;
  Rng rng(8);
  const Value x = g.input("x", {{2, 5, 24}, DType::F32});
  const Value q = part(x, 2, 0, 8), k = part(x, 2, 8, 8), v = part(x, 2, 16, 8);
  g.output(ops::attention({q, k, v}, {.num_heads = 2, .head_dim = 4, .layout = L::kBsf}), "y");
  g.output(k, "k");
  const NamedTensors in = {{"x", rng.tensor({2, 5, 24})}};
  Executable exe = compile(g, webgpu_options(true));
  const NamedTensors out = exe.run(in), oracle = on_oracle(g, in);
  const auto steps = exe.plan().steps;
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(), [](const StepInfo& s) { return s.op == "narrow"; }), 1);
  EXPECT_EQ(out.at("k"), oracle.at("k"));
  EXPECT_TRUE(near(out.at("y"), oracle.at("y"), kAccumulation));
}

}  // namespace rlx::test
