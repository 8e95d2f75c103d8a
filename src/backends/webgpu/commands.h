// What a run asks of the GPU, in order: dispatches and copies, submitted together.
#pragma once

#include "backends/webgpu/dispatches.h"

namespace rlx::webgpu {

class Commands {
 public:
  Commands(Device& device, DeviceStats& stats) : device_(device), api_(device.api()), stats_(stats) {}

  void dispatch(const ReadyDispatch& d);
  // The same in a pass of its own that writes two timestamps.
  void dispatch_timed(const ReadyDispatch& d, WGPUQuerySet queries, uint32_t first);
  void resolve(WGPUQuerySet queries, uint32_t count, WGPUBuffer to, uint64_t offset);
  // Different buffers; multiples of four bytes.
  void copy(WGPUBuffer from, uint64_t from_offset, WGPUBuffer to, uint64_t to_offset, uint64_t bytes);

  bool empty() const { return !encoder_; }
  void submit(std::string_view doing);
  void drop();  // after an error: what is encoded is not run
  // Is the dispatch refused when it is alone? To find the one that an error is about.
  bool is_faulty(const ReadyDispatch& d);

 private:
  WGPUCommandEncoder encoder();  // between passes
  void end_pass();

  Device& device_;
  const Api& api_;
  DeviceStats& stats_;
  CommandEncoder encoder_;
  ComputePass pass_;
};

}  // namespace rlx::webgpu
