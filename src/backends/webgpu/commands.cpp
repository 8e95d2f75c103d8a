#include "backends/webgpu/commands.h"

#include "rlx/error.h"

namespace rlx::webgpu {

WGPUCommandEncoder Commands::encoder() {
  end_pass();
  if (!encoder_) {
    const WGPUCommandEncoderDescriptor descriptor{};
    encoder_ = CommandEncoder(api_, api_.DeviceCreateCommandEncoder(device_.raw(), &descriptor));
  }
  return encoder_.get();
}

void Commands::end_pass() {
  if (pass_) api_.ComputePassEncoderEnd(pass_.get());
  pass_ = {};
}

void Commands::drop() {
  end_pass();
  encoder_ = {};
}

static void encode(const Api& api, WGPUComputePassEncoder pass, const ReadyDispatch& d) {
  api.ComputePassEncoderSetPipeline(pass, d.pipeline->pipeline.get());
  api.ComputePassEncoderSetBindGroup(pass, 0, d.group.get(), 0, nullptr);
  api.ComputePassEncoderDispatchWorkgroups(pass, d.x, d.y, d.z);
}

void Commands::dispatch(const ReadyDispatch& d) {
  if (!pass_) {
    const WGPUComputePassDescriptor descriptor{};
    pass_ = ComputePass(api_, api_.CommandEncoderBeginComputePass(encoder(), &descriptor));
  }
  encode(api_, pass_.get(), d);
  ++stats_.dispatches;
}

void Commands::dispatch_timed(const ReadyDispatch& d, WGPUQuerySet queries, uint32_t first) {
  WGPUPassTimestampWrites writes{};
  writes.querySet = queries;
  writes.beginningOfPassWriteIndex = first;
  writes.endOfPassWriteIndex = first + 1;
  WGPUComputePassDescriptor descriptor{};
  descriptor.timestampWrites = &writes;
  const ComputePass pass(api_, api_.CommandEncoderBeginComputePass(encoder(), &descriptor));
  encode(api_, pass.get(), d);
  api_.ComputePassEncoderEnd(pass.get());
  ++stats_.dispatches;
}

void Commands::resolve(WGPUQuerySet queries, uint32_t count, WGPUBuffer to, uint64_t offset) {
  api_.CommandEncoderResolveQuerySet(encoder(), queries, 0, count, to, offset);
}

bool Commands::is_faulty(const ReadyDispatch& d) {
  drop();
  dispatch(d);
  end_pass();
  const WGPUCommandBufferDescriptor descriptor{};
  const CommandBuffer commands(api_, api_.CommandEncoderFinish(encoder_.get(), &descriptor));
  encoder_ = {};
  if (!device_.has_error()) return false;
  try {
    device_.check("");
  } catch (const Error&) {  // the one that is already on its way
  }
  return true;
}

void Commands::copy(WGPUBuffer from, uint64_t from_offset, WGPUBuffer to, uint64_t to_offset, uint64_t bytes) {
  api_.CommandEncoderCopyBufferToBuffer(encoder(), from, from_offset, to, to_offset, bytes);
}

void Commands::submit(std::string_view doing) {
  end_pass();
  if (!encoder_) return;
  const WGPUCommandBufferDescriptor descriptor{};
  const CommandBuffer commands(api_, api_.CommandEncoderFinish(encoder_.get(), &descriptor));
  encoder_ = {};
  device_.check(doing);
  const WGPUCommandBuffer raw = commands.get();
  api_.QueueSubmit(device_.queue(), 1, &raw);
  ++stats_.submits;
  device_.check(doing);
}

}  // namespace rlx::webgpu
