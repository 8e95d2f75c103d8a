// The functions of webgpu.h that rlx calls, found in a library at run time: nothing is linked, so that one binary runs
// with and without a WebGPU library on the machine.
#pragma once

#include <string>

#include "webgpu.h"
#include "wgpu.h"  // includes webgpu.h; what only wgpu-native has

namespace rlx::webgpu {

#define RLX_WEBGPU_REQUIRED(X)            \
  X(AdapterGetFeatures)                   \
  X(AdapterGetInfo)                       \
  X(AdapterGetLimits)                     \
  X(AdapterInfoFreeMembers)               \
  X(AdapterRelease)                       \
  X(AdapterRequestDevice)                 \
  X(BindGroupLayoutRelease)               \
  X(BindGroupRelease)                     \
  X(BufferGetConstMappedRange)            \
  X(BufferMapAsync)                       \
  X(BufferRelease)                        \
  X(BufferUnmap)                          \
  X(CommandBufferRelease)                 \
  X(CommandEncoderBeginComputePass)       \
  X(CommandEncoderCopyBufferToBuffer)     \
  X(CommandEncoderFinish)                 \
  X(CommandEncoderRelease)                \
  X(CommandEncoderResolveQuerySet)        \
  X(ComputePassEncoderDispatchWorkgroups) \
  X(ComputePassEncoderEnd)                \
  X(ComputePassEncoderRelease)            \
  X(ComputePassEncoderSetBindGroup)       \
  X(ComputePassEncoderSetPipeline)        \
  X(ComputePipelineRelease)               \
  X(CreateInstance)                       \
  X(DeviceCreateBindGroup)                \
  X(DeviceCreateBindGroupLayout)          \
  X(DeviceCreateBuffer)                   \
  X(DeviceCreateCommandEncoder)           \
  X(DeviceCreateComputePipeline)          \
  X(DeviceCreatePipelineLayout)           \
  X(DeviceCreateQuerySet)                 \
  X(DeviceCreateShaderModule)             \
  X(DeviceDestroy)                        \
  X(DeviceGetQueue)                       \
  X(DeviceRelease)                        \
  X(InstanceProcessEvents)                \
  X(InstanceRequestAdapter)               \
  X(PipelineLayoutRelease)                \
  X(QuerySetRelease)                      \
  X(QueueOnSubmittedWorkDone)             \
  X(QueueRelease)                         \
  X(QueueSubmit)                          \
  X(QueueWriteBuffer)                     \
  X(ShaderModuleRelease)                  \
  X(SupportedFeaturesFreeMembers)

// wgpu-native's own: null elsewhere, and something portable is done instead.
#define RLX_WEBGPU_OPTIONAL(X)       \
  X(DeviceCreateShaderModuleTrusted) \
  X(DevicePoll)                      \
  X(GetVersion)                      \
  X(InstanceEnumerateAdapters)       \
  X(QueueGetTimestampPeriod)         \
  X(SetLogCallback)                  \
  X(SetLogLevel)

struct Api {
#define RLX_WEBGPU_MEMBER(name) decltype(&wgpu##name) name = nullptr;
  RLX_WEBGPU_REQUIRED(RLX_WEBGPU_MEMBER)
  RLX_WEBGPU_OPTIONAL(RLX_WEBGPU_MEMBER)
#undef RLX_WEBGPU_MEMBER
  std::string path;  // of the library
};

// The functions of a library, which stays loaded for the life of the process. `library` is a file; empty: the one that
// ships with rlx (beside the program or the library, then where the build found it), then the system's. Throws
// kUnavailable with what was looked for and how to get it.
const Api& load_api(const std::string& library);

}  // namespace rlx::webgpu
