#include <algorithm>

#include "backends/webgpu/device.h"
#include "backends/webgpu/kernel_source.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "webgpu_test.h"

namespace rlx::test {

class KernelsOnWebGpu : public WebGpu {};

// With the types and constants that their files have: also kernels and forms of them that this device does not choose.
TEST_F(KernelsOnWebGpu, CompileAsTheyStand) {
  const auto device = webgpu::Device::open(webgpu_options().webgpu);
  int64_t compiled = 0;
  for (const webgpu::KernelText& kernel : webgpu::all_kernels()) {
    const webgpu::KernelFacts facts = webgpu::kernel_facts({.kernel = std::string(kernel.name)});
    const bool is_part = facts.bindings.empty() || facts.text.find("@compute") == std::string::npos;
    if (is_part) continue;
    const std::vector<webgpu::BindingUse> uses(facts.bindings.size());
    webgpu::PipelineSource source{.label = std::string(kernel.name), .wgsl = webgpu::specialize(facts, uses)};
    for (const auto& b : facts.bindings) source.bindings.push_back({.index = b.index, .writable = b.writes});
    if (!facts.params.empty()) source.bindings.push_back({.index = facts.params_binding, .uniform = true});
    try {
      device->pipeline(source, true);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    ++compiled;
  }
  EXPECT_GT(compiled, 100);
}

// Softmax with another text: its results, and what is said of texts that do not fit.
TEST_F(KernelsOnWebGpu, AFolderMayHaveOthers) {
  const auto kernels = webgpu::all_kernels();
  const std::string own =
      std::find_if(kernels.begin(), kernels.end(), [](const auto& k) { return k.name == "softmax"; })->text;
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = own;
    EXPECT_NE(text.find(from), std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  TempFolder folder;
  const auto sum = [&](const std::string& kernels_folder) {
    Graph g;
    g.output(ops::softmax(g.input("x", {{4}, DType::F32})), "y");
    CompileOptions options = webgpu_options();
    options.webgpu.kernels = kernels_folder;
    const Tensor y = compile(std::move(g), options).run({{"x", Tensor::f32({4}, {0, 1, 2, 3})}}).at("y");
    return y.at(0) + y.at(1) + y.at(2) + y.at(3);
  };
  folder.write("softmax.wgsl", with("kept[k] * scale", "kept[k] * scale * 3.0"));
  EXPECT_NEAR(sum(folder.path("")), 3, 1e-5);
  EXPECT_NEAR(sum(""), 1, 1e-5);
  folder.write("softmax.wgsl", with("  inner: u32,\n", ""));
  EXPECT_ERROR(sum(folder.path("")), kInvalid, "has other bindings or Params than the one rlx was built with");
  // Refused as a pipeline: as text it is right, for wgsl_in_browsers sees it.
  folder.write("softmax.wgsl", with("fn main(", "fn start("));
  EXPECT_ERROR(sum(folder.path("")), kInternal, "while making the pipeline of kernel 'softmax'");
  folder.write("softmacks.wgsl", own);
  EXPECT_ERROR(sum(folder.path("")), kInvalid, "softmacks.wgsl has the name of no kernel of rlx");
  EXPECT_ERROR(sum("/nowhere"), kInvalid, "There is no folder /nowhere with kernels");
}

}  // namespace rlx::test
