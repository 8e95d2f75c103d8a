#include "backends/webgpu/subgroups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/webgpu/commands.h"
#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

constexpr size_t kGroups = 4, kResults = 8;

// Whole numbers, whose sums are exact in any order; a group of negative ones; one with NaN.
std::vector<float> numbers(uint32_t threads) {
  std::vector<float> x(size_t{threads} * kGroups);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) - 50.0f;
  for (size_t i = threads; i < 2 * threads; ++i) x[i] = -1.0f - static_cast<float>(i * 29 % 83);
  x[2 * threads + 201] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

std::vector<float> run(Device& device, const std::vector<float>& x, uint32_t threads) {
  const Api& api = device.api();
  const KernelFacts facts = kernel_facts({.kernel = "subgroup_probe", .constants = {{"WG", threads}}});
  const BindingUse uses[2] = {};
  const Pipeline& pipeline = device.pipeline({.label = "subgroup_probe",
                                              .wgsl = specialize(facts, uses),
                                              .bindings = {{.index = 0}, {.index = 1, .writable = true}}},
                                             false);
  const uint64_t x_bytes = x.size() * sizeof(float), y_bytes = x_bytes * kResults;
  const Buffer from = device.make_buffer(x_bytes, WGPUBufferUsage_Storage | WGPUBufferUsage_CopyDst, "probe");
  const Buffer to = device.make_buffer(y_bytes, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc, "probe results");
  const Buffer staging =
      device.make_buffer(y_bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "probe staging");
  api.QueueWriteBuffer(device.queue(), from.get(), 0, x.data(), x_bytes);
  WGPUBindGroupEntry entries[2] = {};
  entries[0].buffer = from.get();
  entries[0].size = x_bytes;
  entries[1].binding = 1;
  entries[1].buffer = to.get();
  entries[1].size = y_bytes;
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = pipeline.layout.get();
  descriptor.entries = entries;
  descriptor.entryCount = 2;
  ReadyDispatch dispatch{.pipeline = &pipeline, .x = kGroups};
  dispatch.group = BindGroup(api, api.DeviceCreateBindGroup(device.raw(), &descriptor));
  DeviceStats stats;
  Commands commands(device, stats);
  commands.dispatch(dispatch);
  commands.copy(to.get(), 0, staging.get(), 0, y_bytes);
  commands.submit("probing subgroups");
  std::vector<float> y(x.size() * kResults);
  std::memcpy(y.data(), device.map(staging, y_bytes), y_bytes);
  api.BufferUnmap(staging.get());
  return y;
}

bool same(float got, float expected) { return std::isnan(expected) ? std::isnan(got) : got == expected; }

// With workgroups of so many threads.
void probe_threads(Device& device, uint32_t threads, SubgroupProbe& probe) {
  const std::vector<float> x = numbers(threads);
  const std::vector<float> y = run(device, x, threads);
  for (size_t g = 0; g < kGroups; ++g) {
    float sum = 0, top = -std::numeric_limits<float>::infinity();
    for (size_t i = g * threads; i < (g + 1) * threads; ++i) {
      sum += x[i];
      top = std::isnan(sum) ? sum : std::max(top, x[i]);
    }
    for (size_t i = g * threads; i < (g + 1) * threads; ++i) {
      const float* got = &y[i * kResults];
      const float size = got[0];
      const bool sane = size >= 1 && size <= static_cast<float>(threads) && size == std::floor(size);
      probe.passed &= sane && same(got[1], sum) && same(got[2], top) && same(got[3], sum) &&
                      same(got[4], sum + static_cast<float>(threads)) && same(got[5], 2 * sum);
      if (!sane) continue;
      probe.min = std::min(probe.min, static_cast<uint32_t>(size));
      probe.max = std::max(probe.max, static_cast<uint32_t>(size));
    }
  }
}

}  // namespace

SubgroupProbe probe_subgroups(Device& device) {
  SubgroupProbe probe{.passed = true, .min = UINT32_MAX};
  try {
    for (const uint32_t threads : {256u, 512u})
      if (threads <= device.limits().workgroup_threads) probe_threads(device, threads, probe);
  } catch (const Error& e) {  // a library may list the feature and refuse the kernel
    if (e.kind() != ErrorKind::kInternal) throw;
    return {};
  }
  return probe;
}

}  // namespace rlx::webgpu
