// Programs of one graph for several sizes share the buffers of weights and states.
#include "rlx/ops.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using KeptProgramsOnWebGpu = WebGpu;

TEST_F(KeptProgramsOnWebGpu, UploadWeightsOnceAndKeepStatesOnTheDevice) {
  const Dim rows = Dim::symbol(symbols::kBatch);
  Rng rng(3);
  const auto build = [&] {
    Graph g;
    const Value in = g.input("x", {{1, rows, 64}, DType::F32}), past = g.input("past", {{1}, DType::I32});
    const Value cache = g.state("cache", {{1, 32, 48}, DType::F32});
    const Value weight = ops::transpose(ops::neg(g.param("w", {{48, 64}, DType::F32})), {.perm = {1, 0}});
    const Value next = ops::kv_append(cache, ops::matmul(in, weight), past);
    g.update(cache, next);
    g.output(ops::reduce_sum(next, {.axes = {1}}), "sum");
    return g;
  };
  const Tensor wt = rng.tensor({48, 64});
  CompileOptions on_gpu = webgpu_options(true), oracle{.device = "reference"};
  on_gpu.kept_programs = oracle.kept_programs = 4;
  Executable gpu = compile(build(), on_gpu), host = compile(build(), oracle);
  for (Executable* e : {&gpu, &host}) e->set_param("w", wt);
  int32_t past = 0;
  for (const int64_t n : {4, 1, 1, 8, 1, 4, 1, 8}) {
    const NamedTensors in = {{"x", rng.tensor({1, n, 64})}, {"past", Tensor::i32({1}, {past})}};
    const int64_t compiles = gpu.stats().compiles;
    const Tensor a = gpu.run(in).at("sum"), b = host.run(in).at("sum");
    for (size_t i = 0; i < a.values<float>().size(); ++i)
      ASSERT_NEAR(a.values<float>()[i], b.values<float>()[i], 1e-4) << n << " rows at " << past;
    if (past > 0 && gpu.stats().compiles > compiles) {  // a new program: its inputs and little else go to the device
      EXPECT_LT(gpu.stats().device.bytes_up, static_cast<int64_t>(wt.bytes().size()));
    }
    past += static_cast<int32_t>(n);
  }
  EXPECT_EQ(gpu.stats().compiles, 3);
  gpu.reset_states();
  EXPECT_EQ(gpu.read_state("cache"), Tensor(DType::F32, {1, 32, 48}));
}

}  // namespace rlx::test
