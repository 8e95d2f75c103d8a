// Owners of WebGPU objects; nothing else releases one.
#pragma once

#include <utility>

#include "backends/webgpu/api.h"

namespace rlx::webgpu {

template <class T, auto Release>  // Release: a member of Api
class Handle {
 public:
  Handle() = default;
  Handle(const Api& api, T raw) : api_(&api), raw_(raw) {}
  Handle(Handle&& other) noexcept : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_) (api_->*Release)(raw_);
  }
  T get() const { return raw_; }
  void leave() { raw_ = nullptr; }  // to nobody: it is never released
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  const Api* api_ = nullptr;
  T raw_ = nullptr;
};

using AdapterHandle = Handle<WGPUAdapter, &Api::AdapterRelease>;
using BindGroup = Handle<WGPUBindGroup, &Api::BindGroupRelease>;
using BindGroupLayout = Handle<WGPUBindGroupLayout, &Api::BindGroupLayoutRelease>;
using Buffer = Handle<WGPUBuffer, &Api::BufferRelease>;
using CommandBuffer = Handle<WGPUCommandBuffer, &Api::CommandBufferRelease>;
using CommandEncoder = Handle<WGPUCommandEncoder, &Api::CommandEncoderRelease>;
using ComputePass = Handle<WGPUComputePassEncoder, &Api::ComputePassEncoderRelease>;
using ComputePipeline = Handle<WGPUComputePipeline, &Api::ComputePipelineRelease>;
using DeviceHandle = Handle<WGPUDevice, &Api::DeviceRelease>;
using PipelineLayout = Handle<WGPUPipelineLayout, &Api::PipelineLayoutRelease>;
using QuerySet = Handle<WGPUQuerySet, &Api::QuerySetRelease>;
using Queue = Handle<WGPUQueue, &Api::QueueRelease>;
using ShaderModule = Handle<WGPUShaderModule, &Api::ShaderModuleRelease>;

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(WGPUStringView view) {
  return view.data == nullptr ? "" : view.length == WGPU_STRLEN ? view.data : std::string(view.data, view.length);
}

}  // namespace rlx::webgpu
