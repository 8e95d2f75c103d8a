// A kernel that writes outside its result is found out.
#include <cmath>

#include "backends/webgpu/program.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using PoisonOnWebGpu = WebGpu;

// softmax, with a row more than it has.
static webgpu::Program one_row_too_many(const webgpu::Device& device, const CompileOptions& options, bool too_many) {
  Graph g;
  const Value x = g.input("x", {{3, 8}, DType::F32});
  g.output(ops::softmax(ops::softmax(x)), "y");
  webgpu::Program program = webgpu::lower(g, manifest_of(g), {}, device, options);
  auto& first = std::get<webgpu::Dispatch>(program.steps[0].work);
  EXPECT_EQ(first.params.words[0], 3u);
  if (too_many) {
    ++first.params.words[0];
    ++first.grid.x.items;
  }
  return program;
}

TEST_F(PoisonOnWebGpu, FindsWritesOutsideTheResult) {
  for (const bool checks : {true, false}) {
    CompileOptions options = webgpu_options(true);
    options.webgpu.bounds_checks = checks;
    const auto device = webgpu::Device::open(options.webgpu);
    for (const bool too_many : {false, true}) {
      const auto program = webgpu::make_program(one_row_too_many(*device, options, too_many), device, options);
      Rng rng(1);
      program->set_input(0, rng.tensor({3, 8}));
      if (too_many) {
        EXPECT_ERROR(program->run(), kInternal, "(softmax) writes outside its result");
      } else {
        EXPECT_NO_THROW(program->run());
      }
    }
  }
}

// wgpu-native does not clear workgroup memory: whatever lies there, the results are the same bits. (Attention sums in
// another way once it has seen a value that is not finite.)
TEST_F(PoisonOnWebGpu, ReachesWorkgroupMemory) {
  Graph g;
  Rng rng(2);
  const TensorType type{{2, 33, 32}, DType::F32};
  std::vector<Value> x;
  std::vector<Tensor> in;
  for (const char* name : {"q", "k", "v", "dy"}) {
    x.push_back(g.input(name, type));
    in.push_back(rng.tensor({2, 33, 32}));
  }
  const ops::AttentionAttrs attrs{.num_heads = 2, .head_dim = 16, .layout = ops::AttentionLayout::kBsf};
  g.output(ops::attention({x[0], x[1], x[2]}, attrs), "y");
  const Value gradients = ops::attention_backward(x, attrs);
  for (int64_t i = 0; i < 3; ++i) g.output(gradients.result(i), str("d", i));
  const CompileOptions options = webgpu_options(true);
  const auto device = webgpu::Device::open(options.webgpu);
  std::vector<std::vector<Tensor>> results;
  for (const uint32_t pattern : {0u, 0xFFFFFFFFu}) {
    webgpu::Program program = webgpu::lower(g, manifest_of(g), {}, *device, options);
    ASSERT_TRUE(program.poison);
    std::get<webgpu::Dispatch>(program.poison->work).params.words[0] = pattern;
    const auto ready = webgpu::make_program(std::move(program), device, options);
    for (size_t i = 0; i < in.size(); ++i) ready->set_input(i, in[i]);
    ready->run();
    results.emplace_back();
    for (size_t i = 0; i < 4; ++i) results.back().push_back(ready->output(i));
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(results[0][i], results[1][i]) << i;
}

// Rows with more columns than they have: the last one ends behind the input, where NaN must be.
TEST_F(PoisonOnWebGpu, ReadsOutsideAnOperandAreNaN) {
  for (const bool weight : {false, true})
    for (const bool checks : {true, false}) {
      CompileOptions options = webgpu_options(true);
      options.webgpu.bounds_checks = checks;
      const auto device = webgpu::Device::open(options.webgpu);
      Graph g;
      const TensorType type{{3, 8}, DType::F32};
      const Value one = g.input("one", {{3}, DType::F32}), x = weight ? g.param("x", type) : g.input("x", type);
      g.output(ops::reduce_sum(x, {.axes = {1}}) + one, "y");
      g.input("behind", type);  // what would be read without guards
      options.skip_passes = {"mark_elementwise_regions"};
      const Manifest manifest = manifest_of(g);
      for (const bool too_many : {false, true}) {
        webgpu::Program program = webgpu::lower(g, manifest, {}, *device, options);
        auto& steps = weight ? program.static_steps : program.steps;
        auto& sum = std::get<webgpu::Dispatch>(steps[0].work);
        ASSERT_EQ(sum.params.words[1], 2u);  // columns of four
        if (too_many) ++sum.params.words[1];
        const auto ready = webgpu::make_program(std::move(program), device, options);
        Rng rng(1);
        const Tensor value = rng.tensor({3, 8});
        if (weight)
          ready->set_param(0, value);
        else
          ready->set_input(1, value);
        ready->set_input(0, Tensor(DType::F32, {3}));
        ready->set_input(weight ? 1 : 2, rng.tensor({3, 8}));
        ready->run();
        EXPECT_FALSE(std::isnan(ready->output(0).at(0)));
        EXPECT_EQ(std::isnan(ready->output(0).at(2)), too_many) << (weight ? "weight" : "input") << ", " << checks;
      }
    }
}

// A value that fills a binding has no room in it for all of the guard.
TEST_F(PoisonOnWebGpu, RefusesNothingThatRunsWithoutIt) {
  for (const int64_t elements : {190, 200, 220}) {
    Graph g;
    g.output(ops::neg(g.input("x", {{elements}, DType::F32})), "y");
    CompileOptions options = webgpu_options(true);
    options.webgpu.max_binding_bytes = 1024;
    Executable exe = compile(g, options);
    const Tensor x = Rng(1).tensor({elements});
    EXPECT_EQ(exe.run({{"x", x}}).at("y").at(elements - 1), -x.at(elements - 1));
    EXPECT_EQ(exe.stats().device.host_steps, 0);
  }
}

}  // namespace rlx::test
