// Reductions by subgroups, and without (spec 40, 1).
#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using SubgroupsOnWebGpu = WebGpu;

TEST_F(SubgroupsOnWebGpu, GiveTheSameResults) {
  Graph g;
  const Value x = g.input("x", {{3, 5001}, DType::F32}), gamma = g.param("gamma", {{5001}, DType::F32}),
              beta = g.param("beta", {{5001}, DType::F32});
  g.output(ops::softmax(x), "softmax");
  g.output(ops::reduce_max(x, {.axes = {1}}), "max");
  g.output(ops::layer_norm(x, gamma, beta), "norm");
  Rng rng(7);
  const NamedTensors params = {{"gamma", rng.tensor({5001})}, {"beta", rng.tensor({5001})}};
  Tensor in = rng.tensor({3, 5001});
  in.mutable_values<float>()[2 * 5001 + 4097] = NAN;

  Executable oracle = compile(g, {.device = "reference"});
  for (const auto& [name, value] : params) oracle.set_param(name, value);
  const NamedTensors expected = oracle.run({{"x", in}});
  int64_t pipelines = 0;
  for (const bool subgroups : {false, true}) {
    CompileOptions options = webgpu_options(true);
    options.webgpu.subgroups = subgroups;
    Executable exe = compile(g, options);
    for (const auto& [name, value] : params) exe.set_param(name, value);
    const NamedTensors actual = exe.run({{"x", in}});
    for (const auto& [name, value] : expected) EXPECT_TRUE(near(actual.at(name), value, kAccumulation)) << name;
    pipelines = exe.stats().device.pipelines;
  }
  // The kernels are others where the device has subgroups that work.
  bool used = false;
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu") used = d.adapters.at(0).uses_subgroups;
  EXPECT_EQ(pipelines > 0, used);
}

TEST_F(SubgroupsOnWebGpu, HaveASizeWhereTheyAreUsed) {
  for (const DeviceInfo& d : devices())
    for (const DeviceDetail& a : d.adapters) {
      if (!a.uses_subgroups) continue;
      EXPECT_GE(a.subgroup_min, 1) << a.name;
      EXPECT_GE(a.subgroup_max, a.subgroup_min) << a.name;
    }
}

}  // namespace rlx::test
