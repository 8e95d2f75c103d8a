// A driver that takes the GPU away or has no more memory, at every one of its calls in turn (failing_layer.cpp stands
// before it): each time an error, and then a device that works. Not where it is a submission or a wait: wgpu-native
// ends the process then.
#include <dlfcn.h>

#include "backends/webgpu/device.h"
#include "failing_layer.h"
#include "rlx/ops.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

class FailingGpu : public WebGpu {
 protected:
  void SetUp() override {
    WebGpu::SetUp();
    if (IsSkipped()) return;
    void* const layer = dlopen(RLX_FAILING_LAYER, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(layer, nullptr) << "the Vulkan loader has not loaded the layer";
    fail_ = reinterpret_cast<decltype(&fail_call)>(dlsym(layer, "fail_call"));
    failed_ = reinterpret_cast<decltype(&call_failed)>(dlsym(layer, "call_failed"));
  }
  void TearDown() override {
    if (fail_ != nullptr) fail_(nullptr, 0, VK_SUCCESS);
  }

  // Weights and what is computed of them once, a state, a step on the host, two runs.
  static std::vector<Tensor> compile_and_run() {
    Rng rng(1);
    Graph g;
    const Value x = g.input("x", {{16, 40}, DType::F32}), w = g.param("w", {{40, 40}, DType::F32});
    const Value state = g.state("state", {{16, 40}, DType::F32});
    const Value y = ops::tanh(ops::matmul(x, ops::transpose(w, {.perm = {1, 0}}))) + state;
    g.update(state, y);
    g.output(ops::softmax(y), "y");
    g.output(ops::tanh(ops::det(ops::narrow(y, {.axis = 1, .len = 16}))), "det");
    Executable exe = compile(g, webgpu_options());
    exe.set_param("w", rng.tensor({40, 40}));
    std::vector<Tensor> out;
    for (int run = 0; run < 2; ++run)
      for (const auto& [name, tensor] : exe.run({{"x", rng.tensor({16, 40})}})) out.push_back(tensor.clone());
    return out;
  }

  // One after the other of the driver's calls of a kind fails, from the device's opening on, until all have.
  void fail_each(const char* call, VkResult result, int at_least = 5) {
    const std::vector<Tensor> expected = compile_and_run();
    int after = 0;
    for (;; ++after) {
      SCOPED_TRACE(after);
      webgpu::Device::open(webgpu_options().webgpu)->destroy();
      fail_(call, after, result);
      std::string message;
      ErrorKind kind = ErrorKind::kInternal;
      try {
        EXPECT_EQ(compile_and_run(), expected);
      } catch (const Error& e) {
        message = e.what();
        kind = e.kind();
      }
      const bool failed = failed_();
      fail_(nullptr, 0, VK_SUCCESS);
      EXPECT_EQ(message.empty(), !failed) << message;
      if (!failed) break;
      EXPECT_TRUE(kind == ErrorKind::kUnavailable || (result != VK_ERROR_DEVICE_LOST && kind == ErrorKind::kMemory))
          << message;
      EXPECT_EQ(compile_and_run(), expected);
      if (HasFailure()) break;
    }
    EXPECT_GE(after, at_least);
  }

  decltype(&fail_call) fail_ = nullptr;
  decltype(&call_failed) failed_ = nullptr;
};

constexpr VkResult kLost = VK_ERROR_DEVICE_LOST, kFull = VK_ERROR_OUT_OF_DEVICE_MEMORY;

TEST_F(FailingGpu, FullMemoryForAnyBuffer) { fail_each("vkCreateBuffer", kFull); }
TEST_F(FailingGpu, FullMemoryInAnyAllocation) { fail_each("vkAllocateMemory", kFull, 1); }  // which buffers share
TEST_F(FailingGpu, LostInAnyAllocation) { fail_each("vkAllocateMemory", kLost, 1); }
TEST_F(FailingGpu, FullMemoryForAnyPipeline) { fail_each("vkCreateComputePipelines", kFull); }
TEST_F(FailingGpu, LostWhileAPipelineIsMade) { fail_each("vkCreateComputePipelines", kLost); }

}  // namespace rlx::test
