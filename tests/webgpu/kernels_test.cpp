#include "backends/webgpu/device.h"
#include "backends/webgpu/kernel_source.h"
#include "rlx/error.h"
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

}  // namespace rlx::test
