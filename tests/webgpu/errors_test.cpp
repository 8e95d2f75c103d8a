// Whatever fails is an rlx::Error, and the process lives (spec 40, 1).
#include "backends/webgpu/device.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "webgpu_test.h"

namespace rlx::test {

using ErrorsOnWebGpu = WebGpu;

static Graph squares() {
  Graph g;
  const Value x = g.input("x", {{3}, DType::F32});
  g.output(x * x, "y");
  return g;
}

TEST_F(ErrorsOnWebGpu, ALostDeviceIsAnErrorAndANewOneIsMade) {
  const NamedTensors inputs = {{"x", Tensor::f32({3}, {1, 2, 3})}};
  Executable exe = compile(squares(), webgpu_options());
  EXPECT_EQ(exe.run(inputs).at("y"), Tensor::f32({3}, {1, 4, 9}));
  webgpu::Device::open(webgpu_options().webgpu)->destroy();
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");  // and stays so
  Executable again = compile(squares(), webgpu_options());
  EXPECT_EQ(again.run(inputs).at("y"), Tensor::f32({3}, {1, 4, 9}));
}

TEST_F(ErrorsOnWebGpu, OneSentenceForWhatIsNotThere) {
  CompileOptions options = webgpu_options();
  options.webgpu.library = "/nowhere/libwebgpu.so";
  EXPECT_ERROR(compile(squares(), options), kUnavailable,
               "Device 'webgpu' is not available: There is no WebGPU library");
  options = webgpu_options();
  options.device = "webgpu:no such card";
  EXPECT_ERROR(compile(squares(), options), kUnavailable, "There is no WebGPU adapter 'no such card'; there are: 0 '");
  options.device = "webgpu:99";
  EXPECT_ERROR(compile(squares(), options), kUnavailable, "There is no WebGPU adapter '99'; there are: 0 '");
}

TEST_F(ErrorsOnWebGpu, ValuesThatDoNotFitABufferOrABinding) {
  Graph g;
  const Value x = g.input("x", {{64, 64}, DType::F32});
  g.output(x * x, "y");
  CompileOptions options = webgpu_options();
  options.webgpu.max_buffer_bytes = 8192;
  EXPECT_ERROR(compile(g, options), kMemory, "A value of 16384 bytes exceeds the device's largest buffer (8192)");
  options = webgpu_options();
  options.webgpu.max_binding_bytes = 4096;
  EXPECT_ERROR(compile(g, options), kUnsupported, "the GPU binds at most 4096");
}

}  // namespace rlx::test
