// A WebGPU library as poor as the standard allows, over wgpu-native: no optional feature, the limits that every adapter
// has, and none of wgpu-native's own functions (CMakeLists.txt hides them). What the device is asked for is checked by
// wgpu-native itself. It fails where a test says so.
#include "plain_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace {

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next<decltype(&name)>(#name)

std::mutex mutex;
std::map<WGPUDevice, WGPUUncapturedErrorCallbackInfo> callbacks;
PlainFaults faults;

struct Request {
  WGPURequestDeviceCallbackInfo callback;
  WGPUUncapturedErrorCallbackInfo errors;
};

}  // namespace

extern "C" {

void plain_set_faults(const PlainFaults* wanted) { faults = *wanted; }

void wgpuAdapterGetFeatures(WGPUAdapter, WGPUSupportedFeatures* features) { *features = {}; }
void wgpuSupportedFeaturesFreeMembers(WGPUSupportedFeatures) {}

WGPUStatus wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits* limits) {
  const WGPUStatus status = NEXT(wgpuAdapterGetLimits)(adapter, limits);
  const auto most = [](auto& limit, auto value) {
    limit = std::min<std::remove_reference_t<decltype(limit)>>(limit, value);
  };
  most(limits->maxBufferSize, uint64_t{256} << 20);
  most(limits->maxStorageBufferBindingSize, uint64_t{128} << 20);
  most(limits->maxUniformBufferBindingSize, uint64_t{65536});
  most(limits->maxStorageBuffersPerShaderStage, 8u);
  most(limits->maxUniformBuffersPerShaderStage, 12u);
  most(limits->maxComputeWorkgroupStorageSize, 16384u);
  most(limits->maxComputeInvocationsPerWorkgroup, 256u);
  most(limits->maxComputeWorkgroupSizeX, 256u);
  most(limits->maxComputeWorkgroupSizeY, 256u);
  most(limits->maxComputeWorkgroupSizeZ, 64u);
  most(limits->maxComputeWorkgroupsPerDimension, 65535u);
  limits->minStorageBufferOffsetAlignment = 256;
  limits->minUniformBufferOffsetAlignment = 256;
  return status;
}

WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter adapter, WGPUDeviceDescriptor const* descriptor,
                                    WGPURequestDeviceCallbackInfo callback) {
  auto* const request = new Request{callback, descriptor->uncapturedErrorCallbackInfo};
  WGPURequestDeviceCallbackInfo own = callback;
  own.callback = [](WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void* data, void*) {
    const auto* const r = static_cast<Request*>(data);
    {
      const std::lock_guard lock(mutex);
      callbacks[device] = r->errors;
    }
    r->callback.callback(status, device, message, r->callback.userdata1, r->callback.userdata2);
    delete r;
  };
  own.userdata1 = request;
  return NEXT(wgpuAdapterRequestDevice)(adapter, descriptor, own);
}

// As wgpu-native does it when memory is full: the error goes to the callback, and something that is no buffer comes
// back.
WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const* descriptor) {
  WGPUBufferDescriptor given = *descriptor;
  if (faults.full_from_bytes != 0 && given.size >= faults.full_from_bytes) {
    given.size = 16;
    const std::lock_guard lock(mutex);
    const WGPUUncapturedErrorCallbackInfo& errors = callbacks.at(device);
    const char* const message = "Not enough memory left.";
    errors.callback(&device, WGPUErrorType_OutOfMemory, {message, WGPU_STRLEN}, errors.userdata1, errors.userdata2);
  }
  return NEXT(wgpuDeviceCreateBuffer)(device, &given);
}

void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder pass, uint32_t x, uint32_t y, uint32_t z) {
  if (faults.bad_groups != 0 && x == faults.bad_groups) x = 70000;  // more than the limit
  NEXT(wgpuComputePassEncoderDispatchWorkgroups)(pass, x, y, z);
}

}  // extern "C"
