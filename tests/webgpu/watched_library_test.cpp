// What reaches the WebGPU library: modules with checks and without, windows of buffers beyond 4 GiB.
#include "watched_library.h"

#include <dlfcn.h>

#include <set>

#include "as_oracle.h"
#include "backends/webgpu/commands.h"
#include "backends/webgpu/device.h"

namespace rlx::test {

namespace {

void* library() { return dlopen(RLX_WATCHED_WEBGPU, RTLD_NOW | RTLD_LOCAL); }

template <class F>
F watched(const char* name) {
  return reinterpret_cast<F>(dlsym(library(), name));
}

WatchedModules modules() {
  WatchedModules seen;
  watched<decltype(&watched_modules)>("watched_modules")(&seen);
  return seen;
}

std::vector<WatchedWindow> windows() {
  std::vector<WatchedWindow> seen(1000);
  seen.resize(watched<decltype(&watched_windows)>("watched_windows")(seen.data(), seen.size()));
  return seen;
}

CompileOptions watched_options() {
  CompileOptions options = webgpu_options();
  options.webgpu.library = RLX_WATCHED_WEBGPU;
  return options;
}

}  // namespace

class WatchedLibrary : public WebGpu {
 protected:
  void SetUp() override {
    WebGpu::SetUp();
    ASSERT_NE(library(), nullptr) << dlerror();
  }
};

TEST_F(WatchedLibrary, ModulesHaveChecksWhereTheOptionsWantThem) {
  Maker m;
  m.out(ops::softmax(ops::tanh(m.in({4, 40}))));
  for (const bool checks : {true, false, true}) {
    CompileOptions options = watched_options();
    options.webgpu.bounds_checks = checks;
    webgpu::Device::open(options.webgpu);  // tries kernels of its own
    const WatchedModules before = modules();
    const Executable exe = compile(m.g, options);
    const WatchedModules after = modules();
    const int64_t with = after.checked - before.checked, without = after.unchecked - before.unchecked;
    EXPECT_EQ(after.other, 0);
    EXPECT_EQ(checks ? without : with, 0) << (checks ? "checks" : "no checks");
    static std::set<bool> seen;  // modules are made once
    EXPECT_EQ((checks ? with : without) > 0, seen.insert(checks).second) << (checks ? "checks" : "no checks");
  }
}

// Of arrays too, where no driver looks: an index beyond the end means the last element.
TEST_F(WatchedLibrary, ChecksKeepAnIndexInsideItsArray) {
  const auto device = webgpu::Device::open(watched_options().webgpu);
  const webgpu::Api& api = device->api();
  const webgpu::Pipeline& pipeline = device->pipeline({.label = "beyond",
                                                       .wgsl = R"(
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> cells: array<u32, 4>;
@compute @workgroup_size(1)
fn main() {
  for (var i = 0u; i < 4u; i++) { cells[i] = 10u + i; }
  data[1] = cells[data[0]];
}
)",
                                                       .bindings = {{.index = 0, .writable = true}}},
                                                      true);
  const webgpu::Buffer buffer =
      device->make_buffer(16, WGPUBufferUsage_Storage | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc, "data");
  const webgpu::Buffer staging = device->make_buffer(16, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "staging");
  const uint32_t words[4] = {9, 0, 0, 0};
  api.QueueWriteBuffer(device->queue(), buffer.get(), 0, words, sizeof words);
  WGPUBindGroupEntry entry{};
  entry.buffer = buffer.get();
  entry.size = 16;
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = pipeline.layout.get();
  descriptor.entries = &entry;
  descriptor.entryCount = 1;
  webgpu::ReadyDispatch dispatch{.pipeline = &pipeline};
  dispatch.group = webgpu::BindGroup(api, api.DeviceCreateBindGroup(device->raw(), &descriptor));
  DeviceStats stats;
  webgpu::Commands commands(*device, stats);
  commands.dispatch(dispatch);
  commands.copy(buffer.get(), 0, staging.get(), 0, 16);
  commands.submit("a test");
  EXPECT_EQ(static_cast<const uint32_t*>(device->map(staging, 16))[1], 13u);
  api.BufferUnmap(staging.get());
}

// Fourteen values of 384 MiB one after the other, in one buffer and in pages of 2 GiB.
TEST_F(WatchedLibrary, WindowsBeyondFourGiB) {
  constexpr int64_t kRows = 98304, kColumns = 1024, kSteps = 15;
  constexpr uint64_t kBytes = uint64_t{kRows} * kColumns * 4;
  Maker m;
  Value v = m.in({kRows, kColumns});
  for (int64_t i = 0; i < kSteps; ++i) v = ops::softmax(v);
  m.out(v);
  for (const uint64_t page : {uint64_t{16} << 30, uint64_t{2} << 30}) {
    SCOPED_TRACE(str("pages of ", page, " bytes"));
    CompileOptions options = watched_options();
    options.no_reuse = true;
    options.in_place = false;
    options.webgpu.max_buffer_bytes = static_cast<int64_t>(page);
    webgpu::Device::open(options.webgpu);  // binds windows of its own
    windows();
    const bool one = page > uint64_t{4} << 30;
    EXPECT_EQ(compile(m.g, options).plan().arena_bytes,
              static_cast<int64_t>(one ? 14 * kBytes : 2 * page + 4 * kBytes));
    const std::vector<WatchedWindow> seen = windows();
    ASSERT_EQ(seen.size(), static_cast<size_t>(2 * kSteps));  // an operand and a result each
    std::set<std::pair<const void*, uint64_t>> results;
    std::set<const void*> buffers;
    uint64_t largest = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].group, static_cast<int64_t>(i / 2));
      EXPECT_EQ(seen[i].bytes, kBytes);
      EXPECT_EQ(seen[i].offset % 256, 0u);
      EXPECT_LE(seen[i].offset + seen[i].bytes, seen[i].buffer_bytes);
      EXPECT_LE(seen[i].buffer_bytes, page);
      if (i % 2 == 0 && i > 0) {  // the next step reads what this one wrote
        EXPECT_EQ(seen[i].buffer, seen[i - 1].buffer);
        EXPECT_EQ(seen[i].offset, seen[i - 1].offset);
      }
      if (i % 2 == 0) continue;
      results.emplace(seen[i].buffer, seen[i].offset);
      buffers.insert(seen[i].buffer);
      largest = std::max(largest, seen[i].offset);
    }
    EXPECT_EQ(results.size(), static_cast<size_t>(kSteps));
    for (auto a = results.begin(), b = std::next(a); b != results.end(); ++a, ++b)
      EXPECT_TRUE(a->first != b->first || b->second >= a->second + kBytes);
    if (one) {
      EXPECT_EQ(buffers.size(), 2u);  // activations, and the output
      EXPECT_GT(largest, uint64_t{1} << 32);
    } else {
      EXPECT_EQ(buffers.size(), 4u);  // five to a page
    }
  }
}

}  // namespace rlx::test
