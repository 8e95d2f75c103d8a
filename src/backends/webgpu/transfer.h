// Tensors to the device and back: bytes as the storage has them (spec 10, 1.5).
#pragma once

#include <span>
#include <vector>

#include "backends/webgpu/commands.h"

namespace rlx::webgpu {

// The dtype whose bytes a storage holds.
DType stored_dtype(Storage storage, DType declared);
void from_storage(const ProgramValue& v, const std::byte* bytes, Tensor& to);

class Uploads {
 public:
  Uploads(Device& device, const Program& program, const Memory& memory, DeviceStats& stats)
      : device_(device), program_(program), memory_(memory), stats_(stats) {}

  // Takes effect before what is submitted later.
  void write(int32_t value, const Tensor& tensor);
  void submitted() { unsubmitted_ = 0; }

 private:
  Device& device_;
  const Program& program_;
  const Memory& memory_;
  DeviceStats& stats_;
  std::vector<std::byte> staged_, aligned_;
  uint64_t unsubmitted_ = 0;  // bytes that the library holds for us until the next submission
};

// Values that a run copies back at its end, and where they are found then. One buffer, reused by every run.
class Readback {
 public:
  Readback(Device& device, const Program& program, const Memory& memory, DeviceStats& stats)
      : device_(device), program_(program), memory_(memory), stats_(stats) {}

  void clear() {
    items_.clear();
    bytes_ = 0;
  }
  size_t add(int32_t value);  // its index
  size_t add_raw(WGPUBuffer from, uint64_t offset, uint64_t bytes);
  bool empty() const { return items_.empty(); }
  void encode(Commands& commands);
  // After submission: waits, and gives the bytes of the items until unmap().
  void map();
  const std::byte* data(size_t item) const { return mapped_ + items_[item].at + items_[item].skip; }
  void read(size_t item, Tensor& to) const;
  void unmap();

 private:
  struct Item {
    int32_t value;  // -1: raw
    WGPUBuffer from;
    uint64_t offset, bytes;  // multiples of four
    uint64_t skip;           // a view of bytes may start anywhere; copies do not
    uint64_t at;
  };
  Buffer& staging() { return is_tiny_ ? tiny_ : staging_; }

  Device& device_;
  const Program& program_;
  const Memory& memory_;
  DeviceStats& stats_;
  std::vector<Item> items_;
  uint64_t bytes_ = 0;
  Buffer staging_, tiny_;
  uint64_t staging_bytes_ = 0;
  bool is_tiny_ = false;
  const std::byte* mapped_ = nullptr;
};

}  // namespace rlx::webgpu
