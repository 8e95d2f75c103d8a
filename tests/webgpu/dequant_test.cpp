// Packed weights that lie where no op case puts them: at odd bytes, computed, and asked for with indices that do not
// exist.
#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using DequantOnWebGpu = WebGpu;

namespace {

constexpr Scheme kGguf[] = {Scheme::kGgufQ4_0,  Scheme::kGgufQ4_1,  Scheme::kGgufQ5_0, Scheme::kGgufQ5_1,
                            Scheme::kGgufQ8_0,  Scheme::kGgufQ8_1,  Scheme::kGgufQ2K,  Scheme::kGgufQ3K,
                            Scheme::kGgufQ4K,   Scheme::kGgufQ5K,   Scheme::kGgufQ6K,  Scheme::kGgufQ8K,
                            Scheme::kGgufIq4Nl, Scheme::kGgufIq4Xs, Scheme::kGgufF16,  Scheme::kGgufBf16};

// Bytes whose halves are finite, whatever they mean.
Tensor packed(Rng& rng, std::vector<int64_t> sizes) {
  Tensor t(DType::U8, std::move(sizes));
  for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
  return t;
}

void expect_same(const Graph& g, const NamedTensors& inputs, const NamedTensors& params = {}) {
  const auto run = [&](const CompileOptions& options) {
    Executable exe = compile(g, options);
    for (const auto& [name, value] : params) exe.set_param(name, value);
    for (const StepInfo& step : exe.plan().steps)
      if (options.device == "webgpu") {
        EXPECT_TRUE(step.kernel.starts_with("webgpu")) << step.op << " " << step.kernel;
      }
    return exe.run(inputs).at("y");
  };
  EXPECT_TRUE(near(run(webgpu_options(true)), run({.device = "reference"}), kAccumulation));
}

}  // namespace

TEST_F(DequantOnWebGpu, WeightsAndRowsThatStartBetweenWords) {
  Rng rng(3);
  for (const Scheme scheme : kGguf)
    for (const int64_t m : {1, 9})
      for (const int64_t shift : {1, 2, 3}) {
        SCOPED_TRACE(str(scheme, ", ", m, " rows, ", shift, " bytes in"));
        const int64_t k = 2 * std::max<int64_t>(32, info(scheme).block_elems), n = 5,
                      bytes = weight_bytes(scheme, k, n);
        Graph g;
        const Value all = g.input("x", {{m * k + shift}, DType::F32}), w = g.param("w", {{bytes + shift}, DType::U8});
        const Value x =
            ops::reshape(ops::narrow(all, {.axis = 0, .start = shift, .len = m * k}), {.new_shape = {m, k}});
        g.output(ops::dequant_matmul(x, ops::narrow(w, {.axis = 0, .start = shift, .len = bytes}), {.scheme = scheme}),
                 "y");
        expect_same(g, {{"x", rng.tensor({m * k + shift})}}, {{"w", packed(rng, {bytes + shift})}});
      }
}

// One to four rows of x take a kernel of their own, with more or fewer rows of W and chunks of K at a time.
TEST_F(DequantOnWebGpu, FewRowsByWeightsOfAnySize) {
  constexpr Scheme kSchemes[] = {Scheme::kGgufQ4_0, Scheme::kGgufQ4_1, Scheme::kGgufQ5_0, Scheme::kGgufQ5_1,
                                 Scheme::kGgufQ8_0, Scheme::kGgufQ4K,  Scheme::kGgufQ5K,  Scheme::kGgufQ6K};
  for_random(40, [&](Rng& rng) {
    const Scheme scheme = kSchemes[rng.integer(0, 7)];
    const int64_t block = info(scheme).block_elems;
    const int64_t n = std::vector<int64_t>{rng.integer(1, 60), rng.integer(2040, 2070), rng.integer(4090, 4120)}.at(
        static_cast<size_t>(rng.integer(0, 2)));
    const int64_t m = rng.integer(1, 4), k = block * rng.integer(1, (n < 100 ? 6000 : 1300) / block);
    const bool experts = rng.chance(0.25) && n < 100;
    const int64_t count = experts ? 3 : 1, bytes = weight_bytes(scheme, k, n);
    SCOPED_TRACE(str(scheme, ", ", m, " x ", k, " x ", n, experts ? ", experts" : ""));
    Tensor x = rng.tensor({m, k});
    for (float& v : x.mutable_values<float>())
      if (rng.chance(0.01)) v *= 30;
    Graph g;
    const Value in = g.input("x", x.type()), w = g.param("w", {{count * bytes}, DType::U8});
    NamedTensors inputs = {{"x", x}};
    if (experts) {
      inputs.insert({"e", rng.integers({m}, 0, count - 1)});
      g.output(ops::dequant_grouped_matmul(in, w, g.input("e", {{m}, DType::I32}), {.scheme = scheme, .n = n}), "y");
    } else {
      g.output(ops::dequant_matmul(in, w, {.scheme = scheme}), "y");
    }
    expect_same(g, inputs, {{"w", packed(rng, {count * bytes})}});
  });
}

TEST_F(DequantOnWebGpu, CodesBesideScalesThatStartBetweenWords) {
  Rng rng(4);
  for (const Scheme scheme : {Scheme::kInt8, Scheme::kInt4, Scheme::kFp8E5m2})
    for (const int64_t m : {1, 9}) {
      SCOPED_TRACE(str(scheme, ", ", m, " rows"));
      const int64_t k = 40, n = 21, bytes = weight_bytes(scheme, k, n);
      const bool fp8 = scheme == Scheme::kFp8E5m2;
      const TensorType scales{fp8 ? Shape{n} : Shape{2, n}, DType::F32};
      Graph g;
      const Value x = g.input("x", {{m, k}, DType::F32}), w = g.param("w", {{bytes + 3}, DType::U8});
      const Value s = g.param("s", scales);
      Value codes = ops::narrow(w, {.axis = 0, .start = 3, .len = bytes});
      if (scheme != Scheme::kInt4) codes = ops::reshape(codes, {.new_shape = {k, n}});
      g.output(ops::dequant_matmul({x, codes, s, s}, {.scheme = scheme, .block = 32}), "y");
      expect_same(g, {{"x", rng.tensor({m, k})}},
                  {{"w", packed(rng, {bytes + 3})}, {"s", rng.tensor(scales.shape.sizes())}});
    }
}

TEST_F(DequantOnWebGpu, ComputedCodesArePackedFirst) {
  Rng rng(5);
  const int64_t k = 64, n = 3, bytes = weight_bytes(Scheme::kGgufQ8_0, k, n);
  Graph g;
  const Value x = g.input("x", {{1, k}, DType::F32}), w = g.input("w", {{bytes}, DType::I32});
  g.output(ops::dequant_matmul(x, ops::cast(w, {.to = DType::U8}), {.scheme = Scheme::kGgufQ8_0}), "y");
  expect_same(g, {{"x", rng.tensor({1, k})}, {"w", packed(rng, {bytes}).cast(DType::I32)}});
}

TEST_F(DequantOnWebGpu, IndicesThatDoNotExist) {
  Rng rng(6);
  for (const Scheme scheme : {Scheme::kGgufQ4_0, Scheme::kGgufQ5_0}) {
    const int64_t k = 32, n = 2, slab = weight_bytes(scheme, k, n);
    const Tensor w = packed(rng, {2 * slab}), x = rng.tensor({4, k});
    Graph g;
    g.output(ops::dequant_grouped_matmul(g.input("x", x.type()), g.input("w", w.type()),
                                         g.input("e", {{4}, DType::I32}), {.scheme = scheme, .n = n}),
             "y");
    const auto run = [&](const Tensor& choice, const CompileOptions& options) {
      return compile(g, options).run({{"x", x}, {"w", w}, {"e", choice}}).at("y");
    };
    CompileOptions unchecked = webgpu_options();
    unchecked.webgpu.check_indices = false;
    const Tensor y = run(Tensor::i32({4}, {0, 2, -1, 1}), unchecked);
    const Tensor good = run(Tensor::i32({4}, {0, 0, 0, 1}), {.device = "reference"});
    for (int64_t j = 0; j < n; ++j) {
      EXPECT_NEAR(y.at(j), good.at(j), 1e-3 * std::abs(good.at(j)));
      EXPECT_EQ(y.at(n + j), 0);
      EXPECT_EQ(y.at(2 * n + j), 0);
      EXPECT_NEAR(y.at(3 * n + j), good.at(3 * n + j), 1e-3 * std::abs(good.at(3 * n + j)));
    }
    Graph rows;
    rows.output(
        ops::dequant_gather(rows.input("w", w.type()), rows.input("i", {{3}, DType::I32}), {.scheme = scheme, .k = k}),
        "y");
    const auto gather = [&](const Tensor& index, const CompileOptions& options) {
      return compile(rows, options).run({{"w", w}, {"i", index}}).at("y");
    };
    EXPECT_EQ(gather(Tensor::i32({3}, {-9, 3, 100}), unchecked),
              gather(Tensor::i32({3}, {0, 3, 3}), {.device = "reference"}));
  }
}

}  // namespace rlx::test
