// wgpu-native, watched: how shader modules are made, and which windows of buffers are bound. Its GPU has buffers of
// 16 GiB, larger than this machine may have memory for: of the large ones a first piece alone is made, and bound in the
// place of every window. So programs can be compiled that cannot be run.
#include "watched_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "wgpu.h"

namespace {

constexpr uint64_t kLarge = uint64_t{64} << 20, kPiece = 4096;

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next<decltype(&name)>(#name)

std::mutex mutex;
WatchedModules modules;
std::map<WGPUBuffer, uint64_t> large;  // bytes that were asked for
std::vector<WatchedWindow> windows;
int64_t groups = 0;

}  // namespace

extern "C" {

void watched_modules(WatchedModules* seen) {
  const std::lock_guard lock(mutex);
  *seen = modules;
}

size_t watched_windows(WatchedWindow* out, size_t room) {
  const std::lock_guard lock(mutex);
  const size_t count = windows.size();
  std::copy_n(windows.begin(), std::min(room, count), out);
  windows.clear();
  groups = 0;
  return count;
}

WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice device, WGPUShaderModuleDescriptor const* descriptor) {
  {
    const std::lock_guard lock(mutex);
    ++modules.checked;
  }
  return NEXT(wgpuDeviceCreateShaderModule)(device, descriptor);
}

WGPUShaderModule wgpuDeviceCreateShaderModuleTrusted(WGPUDevice device, WGPUShaderModuleDescriptor const* descriptor,
                                                     WGPUShaderRuntimeChecks checks) {
  {
    const std::lock_guard lock(mutex);
    ++(checks == WGPUShaderRuntimeChecks_None ? modules.unchecked : modules.other);
  }
  return NEXT(wgpuDeviceCreateShaderModuleTrusted)(device, descriptor, checks);
}

WGPUStatus wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits* limits) {
  const WGPUStatus status = NEXT(wgpuAdapterGetLimits)(adapter, limits);
  limits->maxBufferSize = uint64_t{16} << 30;
  limits->maxStorageBufferBindingSize = uint64_t{2} << 30;
  return status;
}

WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter adapter, WGPUDeviceDescriptor const* descriptor,
                                    WGPURequestDeviceCallbackInfo callback) {
  WGPULimits real{};
  NEXT(wgpuAdapterGetLimits)(adapter, &real);
  WGPULimits limits = *descriptor->requiredLimits;
  limits.maxBufferSize = real.maxBufferSize;
  limits.maxStorageBufferBindingSize = real.maxStorageBufferBindingSize;
  WGPUDeviceDescriptor given = *descriptor;
  given.requiredLimits = &limits;
  return NEXT(wgpuAdapterRequestDevice)(adapter, &given, callback);
}

WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const* descriptor) {
  WGPUBufferDescriptor given = *descriptor;
  if (given.size >= kLarge) given.size = kPiece;
  const WGPUBuffer buffer = NEXT(wgpuDeviceCreateBuffer)(device, &given);
  const std::lock_guard lock(mutex);
  large.erase(buffer);  // of an address that was another's
  if (given.size != descriptor->size) large[buffer] = descriptor->size;
  return buffer;
}

WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice device, WGPUBindGroupDescriptor const* descriptor) {
  std::vector<WGPUBindGroupEntry> entries(descriptor->entries, descriptor->entries + descriptor->entryCount);
  {
    const std::lock_guard lock(mutex);
    for (WGPUBindGroupEntry& e : entries) {
      const auto found = large.find(e.buffer);
      if (found == large.end()) continue;
      windows.push_back({groups, e.buffer, found->second, e.offset, e.size});
      e.offset = 0;
      e.size = std::min(e.size, kPiece);
    }
    ++groups;
  }
  WGPUBindGroupDescriptor given = *descriptor;
  given.entries = entries.data();
  return NEXT(wgpuDeviceCreateBindGroup)(device, &given);
}

}  // extern "C"
