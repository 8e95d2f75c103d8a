// Dispatches made ready to be encoded: windows of buffers, shared bindings, parameter words, pipelines, bind groups
// (spec 40, 3 and 4). Made once; only the active extent changes them afterwards.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/webgpu/memory.h"

namespace rlx::webgpu {

// Rows in use and rows compiled for: a count n becomes ceil(n * actual / upper).
struct Extent {
  int64_t actual = 1, upper = 1;
  int64_t of(int64_t n) const;
};

// What a dispatch sees in the runs to come: all rows, those of the active extent, or none, as if it were not there.
enum class Rows : uint8_t { kAll, kInUse, kNone };

struct ReadyDispatch {
  const Step* step = nullptr;
  const Dispatch* dispatch = nullptr;
  const Pipeline* pipeline = nullptr;
  BindGroup group;
  std::vector<uint32_t> params;  // bases filled in, full extent
  uint32_t params_offset = 0;    // in the parameter buffer
  Rows rows = Rows::kAll;
  bool is_done = false;          // a copy of bytes to their own place
  uint32_t x = 1, y = 1, z = 1;  // workgroups; 0: nothing to do
};

class Dispatches {
 public:
  Dispatches(Device& device, const Limits& limits, const Program& program, const Memory& memory,
             const CompileOptions& options);

  // Returns its index. Everything is added before make().
  size_t add(const Step& step, const Dispatch& dispatch);
  void make(DeviceStats& stats);

  const ReadyDispatch& operator[](size_t index) const { return ready_[index]; }
  size_t size() const { return ready_.size(); }

  // From now on; `rows` by dispatch.
  void set_extent(const Extent& extent, const std::vector<Rows>& rows, DeviceStats& stats);

 private:
  struct Window {
    int32_t buffer = -1;
    uint64_t begin = 0, end = 0;  // bytes
  };
  // A pipeline and bind group to be made, in the order of the dispatches.
  struct Pending {
    struct Entry {
      PipelineSource::Binding binding;
      int32_t buffer;  // -1: the parameters
      uint64_t offset, size;
    };
    const KernelFacts* facts = nullptr;
    std::vector<BindingUse> uses;
    std::vector<Entry> entries;
    std::string key;     // of the pipeline
    size_t same_as = 0;  // the first with this key
  };

  const KernelFacts& facts_of(const KernelKey& key, std::string& text);
  Window window_of(const Operand& operand) const;
  void share_bindings(const Dispatch& d, const KernelFacts& facts, std::vector<Window>& windows,
                      std::vector<BindingUse>& uses) const;
  void set_bases(const Dispatch& d, const Pending& pending, const std::vector<Window>& windows,
                 std::vector<uint32_t>& words) const;
  void set_grid(const Grid& grid, const Extent& extent, ReadyDispatch& r) const;
  void make_pipelines(DeviceStats& stats);
  void write_params(const Extent& extent, DeviceStats& stats);

  Device& device_;
  const Limits& limits_;
  const Program& program_;
  const Memory& memory_;
  const CompileOptions& options_;
  std::vector<ReadyDispatch> ready_;
  std::vector<Pending> pending_;
  std::map<std::string, KernelFacts> facts_;  // by key: a model has many dispatches and few kernels
  std::map<std::string, size_t> pipelines_;   // the first of pending_ with a key
  uint64_t params_bytes_ = 0;
  Buffer params_buffer_;
  std::vector<std::byte> params_;  // what the buffer holds
};

}  // namespace rlx::webgpu
