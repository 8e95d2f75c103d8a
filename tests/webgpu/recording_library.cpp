// wgpu-native, and a file for every shader module that is made through it, in the folder that RLX_RECORDED_WGSL names:
// for check_wgsl.py, which gives them to another compiler. Bind groups that browsers refuse are in the file "overlaps":
// wgpu lets a dispatch see the same bytes through two bindings that write.
#include <dlfcn.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "wgpu.h"

namespace {

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next<decltype(&name)>(#name)

std::string_view text_of(WGPUStringView text) {
  if (!text.data) return {};
  return {text.data, text.length == WGPU_STRLEN ? std::strlen(text.data) : text.length};
}

std::mutex mutex;
std::set<size_t> seen;                                      // modules
std::map<WGPUBindGroupLayout, std::set<uint32_t>> written;  // the bindings that write

// Where the recording goes; null: nobody wants one.
const char* recorded() {
  const char* folder = std::getenv("RLX_RECORDED_WGSL");
  if (folder) std::filesystem::create_directories(folder);
  return folder;
}

void record(WGPUShaderModuleDescriptor const* descriptor) {
  const char* folder = recorded();
  if (!folder) return;
  const std::string_view code = text_of(reinterpret_cast<const WGPUShaderSourceWGSL*>(descriptor->nextInChain)->code);
  const size_t hash = std::hash<std::string_view>()(code);
  const std::lock_guard lock(mutex);
  if (!seen.insert(hash).second) return;
  std::string name(text_of(descriptor->label).substr(0, 60));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  std::ofstream(std::filesystem::path(folder) / (name + "-" + std::to_string(hash) + ".wgsl")) << code;
}

void record(WGPUBindGroupDescriptor const* descriptor) {
  const char* folder = recorded();
  if (!folder) return;
  const std::lock_guard lock(mutex);
  const std::set<uint32_t>& writes = written[descriptor->layout];
  for (size_t i = 0; i < descriptor->entryCount; ++i)
    for (size_t j = 0; j < i; ++j) {
      const WGPUBindGroupEntry &a = descriptor->entries[i], &b = descriptor->entries[j];
      const bool overlap = a.buffer == b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
      if (!overlap || !(writes.contains(a.binding) || writes.contains(b.binding))) continue;
      std::ofstream(std::filesystem::path(folder) / "overlaps", std::ios::app)
          << "binding " << a.binding << " has " << a.size << " bytes from " << a.offset << " on, binding " << b.binding
          << " has " << b.size << " from " << b.offset << " on\n";
    }
}

}  // namespace

extern "C" {

WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice device,
                                                    WGPUBindGroupLayoutDescriptor const* descriptor) {
  const WGPUBindGroupLayout layout = NEXT(wgpuDeviceCreateBindGroupLayout)(device, descriptor);
  const std::lock_guard lock(mutex);
  std::set<uint32_t>& writes = written[layout];
  writes.clear();  // of an address that was another's
  for (size_t i = 0; i < descriptor->entryCount; ++i)
    if (descriptor->entries[i].buffer.type == WGPUBufferBindingType_Storage)
      writes.insert(descriptor->entries[i].binding);
  return layout;
}

WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice device, WGPUBindGroupDescriptor const* descriptor) {
  record(descriptor);
  return NEXT(wgpuDeviceCreateBindGroup)(device, descriptor);
}

WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice device, WGPUShaderModuleDescriptor const* descriptor) {
  record(descriptor);
  return NEXT(wgpuDeviceCreateShaderModule)(device, descriptor);
}

WGPUShaderModule wgpuDeviceCreateShaderModuleTrusted(WGPUDevice device, WGPUShaderModuleDescriptor const* descriptor,
                                                     WGPUShaderRuntimeChecks checks) {
  record(descriptor);
  return NEXT(wgpuDeviceCreateShaderModuleTrusted)(device, descriptor, checks);
}

}  // extern "C"
