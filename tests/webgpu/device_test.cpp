// Adapters and the devices made of them (spec 40, 1).
#include <cstdlib>
#include <thread>

#include "as_oracle.h"
#include "backends/webgpu/device.h"
#include "support/expect_error.h"

namespace rlx::test {

using DeviceOnWebGpu = WebGpu;

static const DeviceInfo& find_device(const std::vector<DeviceInfo>& all, std::string_view name) {
  for (const DeviceInfo& d : all)
    if (d.name == name) return d;
  fail(ErrorKind::kInternal, str("no device ", name));
}

// Without an adapter every other test of the GPU is skipped, which must not look as if all were well.
TEST(Adapter, IsThereUnlessTheEnvironmentSaysNot) {
  if (std::getenv("RLX_TESTS_WITHOUT_WEBGPU") != nullptr) GTEST_SKIP() << "RLX_TESTS_WITHOUT_WEBGPU is set";
  const std::vector<DeviceInfo> all = devices();
  const DeviceInfo& webgpu = find_device(all, "webgpu");
  EXPECT_TRUE(webgpu.available) << webgpu.why_not
                                << " ./dev setup installs a software adapter; RLX_TESTS_WITHOUT_WEBGPU=1 does without.";
}

// A number that is no index is a part of a name as a whole word alone.
TEST(Adapter, IsChosenByIndexPartOfItsNameOrType) {
  std::vector<webgpu::AdapterFacts> list(2);
  list[0].name = "NVIDIA GeForce RTX 4090";
  list[1].name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  list[0].type = "discrete";
  list[1].type = "software";
  const auto chosen = [&](const std::string& wanted) { return webgpu::choose_adapter(list, wanted); };
  EXPECT_EQ(chosen(""), 0u);
  EXPECT_EQ(chosen("1"), 1u);
  EXPECT_EQ(chosen("geforce rtx"), 0u);
  EXPECT_EQ(chosen("4090"), 0u);
  EXPECT_EQ(chosen("256"), 1u);
  EXPECT_EQ(chosen("15.0"), 1u);
  EXPECT_EQ(chosen("RTX 40"), 0u);
  EXPECT_EQ(chosen("software"), 1u);
  EXPECT_EQ(chosen("discrete"), 0u);
  for (const std::string none : {"2", "15", "90", "409", "0000015", "99999999999999999999", "integrated"})
    EXPECT_ERROR(chosen(none), kUnavailable,
                 str("There is no WebGPU adapter '", none,
                     "'; there are: 0 'NVIDIA GeForce RTX 4090', 1 'llvmpipe (LLVM 15.0.6, 256 bits)'."));
}

TEST_F(DeviceOnWebGpu, IsOneForTheWholeProcess) {
  std::shared_ptr<webgpu::Device> opened[4];
  std::vector<std::thread> threads;
  for (auto& device : opened) threads.emplace_back([&device] { device = webgpu::Device::open({}); });
  for (std::thread& t : threads) t.join();
  for (const auto& device : opened) EXPECT_EQ(device, opened[0]);
}

TEST_F(DeviceOnWebGpu, AdaptersAreListedWithWhatTheyOffer) {
  const std::vector<DeviceInfo> all = devices();
  const DeviceInfo& webgpu = find_device(all, "webgpu");
  ASSERT_FALSE(webgpu.adapters.empty());
  for (const DeviceDetail& a : webgpu.adapters) {
    EXPECT_FALSE(a.name.empty());
    EXPECT_FALSE(a.driver.empty());
    EXPECT_TRUE(a.type == "discrete" || a.type == "integrated" || a.type == "software" || a.type == "virtual" ||
                a.type == "other")
        << a.type;
    EXPECT_GE(a.max_buffer_bytes, 256 << 20);  // the defaults of WebGPU, at least
    EXPECT_GE(a.max_binding_bytes, 128 << 20);
    EXPECT_GE(a.workgroup_bytes, 16384);
    EXPECT_GE(a.workgroup_threads, 256);
    EXPECT_GE(a.storage_bindings, 8);
    const auto offers = [&](std::string_view feature) {
      return std::find(a.features.begin(), a.features.end(), feature) != a.features.end();
    };
    EXPECT_EQ(a.uses_f16, offers("shader-f16")) << a.name;
  }
}

// A workgroup with all the memory and threads that the adapter has, which WebGPU's defaults would not let it have.
TEST_F(DeviceOnWebGpu, HasTheAdaptersLimitsNotTheDefaults) {
  const auto device = webgpu::Device::open({});
  const webgpu::Limits& limits = device->limits();
  webgpu::PipelineSource source;
  source.label = "limits";
  source.bindings = {{.index = 0, .writable = true}};
  source.wgsl =
      str("@group(0) @binding(0) var<storage, read_write> y: array<u32>;\nvar<workgroup> cells: array<u32, ",
          limits.workgroup_bytes / 4, ">;\n@compute @workgroup_size(", limits.workgroup_threads,
          ")\nfn main(@builtin(local_invocation_index) i: u32) {\n  cells[i] = i;\n  workgroupBarrier();\n  y[i] = "
          "cells[0];\n}\n");
  EXPECT_NO_THROW(device->pipeline(source, true));
  EXPECT_NO_THROW(device->check("making a pipeline"));
}

TEST_F(DeviceOnWebGpu, AnAdapterIsChosenByIndexOrName) {
  Maker m;
  const Value x = m.in({3});
  m.out(x * x);
  const std::vector<DeviceInfo> all = devices();
  const DeviceInfo& webgpu = find_device(all, "webgpu");
  for (size_t i = 0; i < webgpu.adapters.size(); ++i)
    for (const std::string& choice : {str(i), webgpu.adapters[i].name.substr(0, 6)}) {
      CompileOptions options = webgpu_options();
      options.device = "webgpu:" + choice;
      EXPECT_EQ(compile(m.g, options).run({{"x0", Tensor::f32({3}, {1, 2, 3})}}).at("y0"), Tensor::f32({3}, {1, 4, 9}))
          << choice;
    }
}

TEST_F(DeviceOnWebGpu, ASoftwareAdapterIsTakenOnlyWhenAskedFor) {
  const std::vector<DeviceInfo> all = devices();
  const DeviceInfo& webgpu = find_device(all, "webgpu");
  const bool hardware = std::any_of(webgpu.adapters.begin(), webgpu.adapters.end(),
                                    [](const DeviceDetail& a) { return a.type != "software"; });
  Maker m;
  m.out(ops::tanh(m.in({3})));
  EXPECT_EQ(compile(m.g, {.device = "auto"}).device(), hardware ? "webgpu" : "cpu");
  EXPECT_EQ(compile(m.g, {.device = "webgpu"}).device(), "webgpu");
  // Nor does naming one make auto take it.
  for (size_t i = 0; i < webgpu.adapters.size(); ++i) {
    CompileOptions options{.device = "auto"};
    options.webgpu.adapter = str(i);
    EXPECT_EQ(compile(m.g, options).device(), webgpu.adapters[i].type == "software" ? "cpu" : "webgpu") << i;
  }
}

}  // namespace rlx::test
