// A library and a device without anything optional (spec 40, 1): every op works; what fails there comes back as an
// Error with op and step.
#include "plain_library.h"

#include <dlfcn.h>

#include "as_oracle.h"
#include "backends/webgpu/device.h"
#include "support/expect_error.h"

namespace rlx::test {

class PlainLibrary : public WebGpu {
 protected:
  static CompileOptions plain() {
    CompileOptions options = webgpu_options();
    options.webgpu.library = RLX_PLAIN_WEBGPU;
    return options;
  }
  // From now on; nothing by default.
  static void set_faults(const PlainFaults& faults) {
    void* const library = dlopen(RLX_PLAIN_WEBGPU, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    reinterpret_cast<decltype(&plain_set_faults)>(dlsym(library, "plain_set_faults"))(&faults);
  }
  void TearDown() override { set_faults({}); }
};

TEST_F(PlainLibrary, HasNothingOptional) {
  for (const webgpu::AdapterFacts& a : webgpu::adapters(plain().webgpu)) {
    EXPECT_TRUE(a.feature_names.empty()) << a.name;
    EXPECT_FALSE(a.features.f16 || a.features.subgroups || a.features.timestamps);
    EXPECT_EQ(a.limits.storage_bindings, 8u);
    EXPECT_EQ(a.limits.workgroup_bytes, 16384u);
    EXPECT_EQ(a.limits.workgroup_threads, 256u);
  }
  const auto device = webgpu::Device::open(plain().webgpu);
  EXPECT_EQ(device->api().DevicePoll, nullptr);
  EXPECT_EQ(device->api().InstanceEnumerateAdapters, nullptr);
  EXPECT_EQ(device->api().DeviceCreateShaderModuleTrusted, nullptr);
}

TEST_F(PlainLibrary, RunsAGraphOfHalvesAndTracesIt) {
  Maker m;
  const Value x = m.in({4, 40}, DType::F16), w = m.weight({40, 24}, DType::F16);
  const Value y = ops::softmax(ops::matmul(x, w));
  m.out(y);
  m.out(ops::reduce_max(ops::cast(y, {.to = DType::F32}), {.axes = {1}}));
  AsOracle how{.tolerance = kHalf, .options = plain()};
  expect_as_oracle(m.g, how);
  Executable exe = compile(m.g, plain());
  Rng rng(1);
  exe.set_param("w1", rng.tensor({40, 24}, DType::F16));
  std::vector<StepTrace> trace;
  exe.run({{"x0", rng.tensor({4, 40}, DType::F16)}}, {.trace = &trace});
  EXPECT_EQ(trace.size(), exe.plan().steps.size() + exe.plan().static_steps.size());
  for (const StepTrace& t : trace) EXPECT_GT(t.end_ns, t.begin_ns) << t.step.name;  // the host's clock
}

// Several devices in one process, one of each library.
TEST_F(PlainLibrary, RunsBesideAnother) {
  Maker m;
  const Value x = m.in({5});
  m.out(x * x);
  Executable here = compile(m.g, webgpu_options()), there = compile(m.g, plain());
  EXPECT_NE(webgpu::Device::open(webgpu_options().webgpu), webgpu::Device::open(plain().webgpu));
  for (const float v : {1.0f, 3.0f}) {
    const Tensor in = Tensor::f32({5}, {v, 2, 3, 4, 5}), out = Tensor::f32({5}, {v * v, 4, 9, 16, 25});
    EXPECT_EQ(here.run({{"x0", in}}).at("y0"), out);
    EXPECT_EQ(there.run({{"x0", in}}).at("y0"), out);
  }
}

// A GPU without a device is none for auto, which asks before it compiles.
TEST_F(PlainLibrary, AnAdapterMayGiveNoDevice) {
  Maker m;
  m.out(ops::tanh(m.in({3})));
  CompileOptions options = webgpu_options();
  options.webgpu.library = RLX_DEVICELESS_WEBGPU;
  const std::string why = "gives no device: Another process has it.";
  EXPECT_ERROR(compile(m.g, options), kUnavailable, why);
  options.device = "auto";
  EXPECT_EQ(compile(m.g, options).device(), "cpu");
}

TEST_F(PlainLibrary, AFullMemoryIsAnErrorAndLeavesTheDeviceAsItWas) {
  Maker m;
  const Value x = m.in({300, 300});
  m.out(ops::softmax(ops::transpose(ops::softmax(x), {.perm = {1, 0}})));
  set_faults({.full_from_bytes = 100000});
  EXPECT_ERROR(compile(m.g, plain()), kMemory, "The GPU's memory is full.");
  EXPECT_ERROR(compile(m.g, plain()), kMemory, "making buffer 'activations' of 720384 bytes");
  set_faults({});
  expect_as_oracle(m.g, {.tolerance = kTranscendental, .options = plain()});
}

// Whose call failed gets the error, nobody else.
TEST_F(PlainLibrary, AFullMemoryIsAnErrorOfTheThreadThatFoundIt) {
  Maker large, small;
  large.out(ops::tanh(large.in({300, 300})));
  small.out(ops::tanh(small.in({3})));
  Executable exe = compile(small.g, plain());
  const NamedTensors in = {{"x0", Tensor(DType::F32, {3})}};
  exe.run(in);
  set_faults({.full_from_bytes = 100000});
  std::atomic<bool> done = false;
  constexpr int kTries = 4000;
  int failed = 0;
  std::thread other([&] {
    for (int i = 0; i < kTries; ++i) try {
        compile(large.g, plain());
      } catch (const Error& e) {
        failed += std::string_view(e.what()).find("making buffer 'inputs and states'") != std::string_view::npos;
      }
    done = true;
  });
  std::string wrong;
  while (!done) {
    try {
      exe.run(in);
      compile(small.g, plain()).run(in);
    } catch (const Error& e) {
      wrong = e.what();
    }
  }
  other.join();
  set_faults({});
  EXPECT_EQ(failed, kTries);
  EXPECT_EQ(wrong, "");
}

// Of a large output: the program runs without it, and with it when there is memory again.
TEST_F(PlainLibrary, AFullMemoryInARunIsAnErrorOfThatRun) {
  Maker m;
  m.out(ops::tanh(m.in({60000})));
  m.out(ops::tanh(m.in({3})));
  Executable exe = compile(m.g, plain());
  const NamedTensors in = {{"x0", Tensor(DType::F32, {60000})}, {"x1", Tensor(DType::F32, {3})}};
  set_faults({.full_from_bytes = 100000});
  EXPECT_ERROR(exe.run(in), kMemory, "making buffer 'staging' of ");
  EXPECT_EQ(exe.run(in, {.outputs = {"y1"}}).at("y1"), Tensor(DType::F32, {3}));
  set_faults({});
  EXPECT_EQ(exe.run(in).at("y0"), Tensor(DType::F32, {60000}));
}

// Outputs that fit a buffer each, and not all in one.
TEST_F(PlainLibrary, OutputsComeBackThroughSeveralBuffersWhereOneIsTooSmall) {
  Maker m;
  for (const int64_t n : {12000, 9000, 4, 7000, 12000}) m.out(ops::neg(m.in({n})));
  CompileOptions options = plain();
  options.webgpu.max_buffer_bytes = options.webgpu.max_binding_bytes = 50000;
  Executable exe = compile(m.g, options);
  Rng rng(1);
  NamedTensors in;
  for (const Port& p : exe.inputs()) in[p.name] = rng.tensor(p.type.shape.sizes());
  set_faults({.full_from_bytes = 50001});
  for (int run = 0; run < 2; ++run) {
    const int64_t submits = exe.stats().device.submits;
    const NamedTensors out = exe.run(in);
    EXPECT_EQ(exe.stats().device.submits - submits, 1);
    for (size_t i = 0; i < out.size(); ++i)
      for (int64_t e = 0; e < out.at(str("y", i)).num_elements(); ++e)
        ASSERT_EQ(out.at(str("y", i)).at(e), -in.at(str("x", i)).at(e)) << "output " << i << ", element " << e;
  }
  EXPECT_EQ(exe.run(in, {.outputs = {"y2"}}).at("y2").at(3), -in.at("x2").at(3));
  EXPECT_EQ(exe.run(in).at("y4").at(11999), -in.at("x4").at(11999));
}

TEST_F(PlainLibrary, AnInvalidDispatchIsAnErrorWithItsOpAndStep) {
  Maker m;
  const Value x = m.in({13, 5000});
  m.out(ops::transpose(ops::softmax(ops::tanh(x)), {.perm = {1, 0}}));
  Executable exe = compile(m.g, plain());
  const NamedTensors in = {{"x0", Tensor(DType::F32, {13, 5000})}};
  set_faults({.bad_groups = 13});  // a workgroup for each row of the softmax
  EXPECT_ERROR(exe.run(in), kInternal, "(softmax)");
  EXPECT_ERROR(exe.run(in), kInternal, "WebGPU reports an error: ");
  set_faults({});
  EXPECT_NO_THROW(exe.run(in));
}

}  // namespace rlx::test
