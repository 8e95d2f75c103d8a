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

// Values that a run copies back at its end, and where they are found then. One buffer, reused by every run; several
// where all together are more than `max_bytes`, which is what the device's buffers hold.
class Readback {
 public:
  Readback(Device& device, const Program& program, const Memory& memory, DeviceStats& stats, uint64_t max_bytes)
      : device_(device), program_(program), memory_(memory), stats_(stats), max_bytes_(max_bytes / 16 * 16) {}

  void clear();
  size_t add(int32_t value);  // its index
  size_t add_raw(WGPUBuffer from, uint64_t offset, uint64_t bytes);
  bool empty() const { return items_.empty(); }
  void encode(Commands& commands);
  // After submission: waits, and gives the bytes of the items until unmap().
  void map();
  const std::byte* data(size_t item) const {
    return staging_[items_[item].staging].mapped + items_[item].at + items_[item].skip;
  }
  void read(size_t item, Tensor& to) const;
  void unmap();

 private:
  struct Item {
    int32_t value;  // -1: raw
    WGPUBuffer from;
    uint64_t offset, bytes;  // multiples of four
    uint64_t skip;           // a view of bytes may start anywhere; copies do not
    size_t staging = 0;      // the buffer, and where in it
    uint64_t at = 0;
  };
  struct Staging {
    Buffer buffer;
    uint64_t capacity = 0, used = 0;
    const std::byte* mapped = nullptr;
  };
  size_t place(Item item);

  Device& device_;
  const Program& program_;
  const Memory& memory_;
  DeviceStats& stats_;
  uint64_t max_bytes_;
  std::vector<Item> items_;
  static constexpr size_t kTiny = 0, kFirst = 1;
  std::vector<Staging> staging_ = std::vector<Staging>(2);
  size_t last_ = kFirst;  // of those in use
  bool is_tiny_ = false;
};

}  // namespace rlx::webgpu
