// A GPU as rlx sees it (spec 40, 1): its limits and features, its buffers and pipelines. Knows no op.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/webgpu/handle.h"
#include "rlx/runtime.h"

namespace rlx::webgpu {

struct Limits {
  uint64_t max_buffer_bytes = 0;
  uint64_t max_binding_bytes = 0;  // of one storage binding
  uint32_t binding_alignment = 256;
  uint32_t uniform_alignment = 256;
  uint32_t workgroup_bytes = 16384;
  uint32_t workgroup_threads = 256;
  uint32_t storage_bindings = 8;
  uint32_t groups_per_axis = 65535;
  uint32_t groups_per_row = 65535;  // of a grid that wraps: tests make it smaller
};

struct Features {
  bool f16 = false;
  bool subgroups = false;          // of an adapter: listed; of a device: they passed a self-check
  uint32_t subgroups_feature = 0;  // what the library calls them: WebGPU's feature, or wgpu-native's own
  uint32_t subgroup_min = 0, subgroup_max = 0;
  bool timestamps = false;
  // A workgroup that waits for others that began before it does not keep them from going on. WebGPU does not say so;
  // NVIDIA's hardware does it.
  bool waits = false;
  bool cooperative_matrix = false;  // listed by the adapter; wgpu-native refuses to grant it
};

struct AdapterFacts {
  std::string name;    // NVIDIA H200
  std::string driver;  // vulkan, metal, d3d12
  std::string type;    // discrete, integrated, software
  bool software = false;
  Limits limits;
  Features features;
  std::vector<std::string> feature_names;  // all that it lists
};

// Every adapter of the library, best first: discrete, integrated, other, software. Throws when there is no library.
std::vector<AdapterFacts> adapters(const WebGpuOptions& options);

// Which of them an option means: an index, a part of a name (a number: a whole word of it), a type, or, if empty, the
// first.
// Throws when there is none.
size_t choose_adapter(const std::vector<AdapterFacts>& list, const std::string& wanted);

// A pipeline and the layout of its bind group.
struct Pipeline {
  ComputePipeline pipeline;
  BindGroupLayout layout;
};

// What a pipeline is made of. Binding i is `bindings[i].index`.
struct PipelineSource {
  struct Binding {
    uint32_t index = 0;
    bool writable = false;
    bool uniform = false;
    bool operator==(const Binding&) const = default;
    auto operator<=>(const Binding&) const = default;
  };
  std::string label;
  std::string wgsl;  // specialised
  std::vector<Binding> bindings;
};

struct DeviceCounters {
  int64_t pipelines = 0;
  int64_t buffers = 0;
};

class Device {
 public:
  // The device of an adapter: the best one, or the one the options name by index or a part of its name. One per adapter
  // and process; a lost one is replaced.
  static std::shared_ptr<Device> open(const WebGpuOptions& options);
  ~Device();

  const Api& api() const { return api_; }
  const AdapterFacts& facts() const { return facts_; }
  const Limits& limits() const { return facts_.limits; }
  const Features& features() const { return facts_.features; }
  WGPUDevice raw() const { return device_.get(); }
  WGPUQueue queue() const { return queue_.get(); }
  double timestamp_period_ns() const { return timestamp_period_ns_; }

  Buffer make_buffer(uint64_t bytes, WGPUBufferUsage usage, const std::string& label);
  // Made once per source; safe from several threads.
  const Pipeline& pipeline(const PipelineSource& source, bool checks);

  // Throws what the library has reported of this thread's calls since the last check: a validation error, a full
  // memory; or a lost device. `doing` is the context of the error.
  void check(std::string_view doing);
  bool has_error() const;  // would check() throw?
  bool lost() const;
  // For tests: as if the driver had taken the device away.
  void destroy();

  // Waits until everything submitted is done, and callbacks have run.
  void wait();
  // Maps a buffer for reading; returns when it is mapped. `spin`: it will not take long, so that waiting busily pays.
  const void* map(const Buffer& buffer, uint64_t bytes, bool spin = false);

  DeviceCounters counters() const;

 private:
  struct Errors;
  Device(const Api& api, WGPUAdapter adapter, AdapterFacts facts);
  void check_features();

  const Api& api_;
  AdapterFacts facts_;
  std::unique_ptr<Errors> errors_;  // what callbacks write into: outlives the device
  DeviceHandle device_;
  Queue queue_;
  double timestamp_period_ns_ = 1;
  mutable std::mutex mutex_;
  struct PipelineSlot;
  std::map<std::string, std::shared_ptr<PipelineSlot>> pipelines_;  // by text, bindings and checks
  DeviceCounters counters_;
};

}  // namespace rlx::webgpu
