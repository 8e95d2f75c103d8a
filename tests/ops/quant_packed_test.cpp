// Weights that were packed on one machine's instructions give the same results with every other instruction set.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

struct RestoreTargets {
  ~RestoreTargets() { use(0); }
  static void use(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

Tensor bytes(Rng& rng, std::vector<int64_t> sizes) {
  Tensor t(DType::U8, std::move(sizes));
  for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
  return t;
}

}  // namespace

TEST(QuantPacked, EveryTargetReadsThePackedWeights) {
  Rng rng(7);
  const RestoreTargets restore;
  const int64_t supported = hwy::SupportedTargets() | HWY_SCALAR;
  for (size_t i = 0; i < names_of(Scheme::kInt8).size(); ++i)
    for (const int64_t m : {1, 3}) {
      const auto scheme = static_cast<Scheme>(i);
      const bool fp8 = scheme == Scheme::kFp8E4m3 || scheme == Scheme::kFp8E5m2, fp4 = scheme == Scheme::kNvfp4;
      const int64_t k = 256, n = 70;
      Tensors in = {rng.tensor({m, k})};
      in.push_back(info(scheme).code_bits == 8 ? bytes(rng, {k, n}) : bytes(rng, {weight_bytes(scheme, k, n)}));
      if (!is_gguf(scheme)) {
        in.push_back(fp4 ? bytes(rng, {k / 16, n})
                         : rng.tensor(fp8 ? std::vector<int64_t>{n} : std::vector{k / 32, n}));
        in.push_back(rng.tensor(fp4 ? std::vector<int64_t>{1} : std::vector{k / 32, n}));
      }
      const Attrs attrs(ops::DequantMatmulAttrs{.scheme = scheme, .block = 32});
      const Tensor expected = run_op(ops::dequant_matmul, in, attrs)[0];
      Graph g;
      std::vector<Value> operands = {g.input("x", in[0].type())};
      for (size_t p = 1; p < in.size(); ++p) operands.push_back(g.param(str("p", p), in[p].type()));
      g.output(ops::dequant_matmul(operands, {.scheme = scheme, .block = 32}), "y");
      Executable exe = compile(g, {.device = "cpu"});
      for (size_t p = 1; p < in.size(); ++p) exe.set_param(str("p", p), in[p]);
      exe.run({{"x", in[0]}});  // packs
      for (int64_t target = supported; target != 0; target &= target - 1) {
        const int64_t one = target & -target;
        SCOPED_TRACE(str(scheme, ", ", m, " rows, ", hwy::TargetName(one)));
        RestoreTargets::use(one);
        EXPECT_TRUE(near(exe.run({{"x", in[0]}}).at("y"), expected, kAccumulation));
      }
      RestoreTargets::use(0);
    }
}

}  // namespace rlx::test
