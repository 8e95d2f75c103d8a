// A WebGPU library whose adapters are GPUs and give no device, over wgpu-native: a driver that does not fit its kernel
// module, or a GPU that another process has for itself.
#include <dlfcn.h>

#include "webgpu.h"

extern "C" {

WGPUStatus wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo* info) {
  const auto next = reinterpret_cast<decltype(&wgpuAdapterGetInfo)>(dlsym(RTLD_NEXT, "wgpuAdapterGetInfo"));
  const WGPUStatus status = next(adapter, info);
  info->adapterType = WGPUAdapterType_DiscreteGPU;
  return status;
}

WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter, WGPUDeviceDescriptor const*, WGPURequestDeviceCallbackInfo callback) {
  callback.callback(WGPURequestDeviceStatus_Error, nullptr, {"Another process has it.", WGPU_STRLEN},
                    callback.userdata1, callback.userdata2);
  return {};
}

}  // extern "C"
