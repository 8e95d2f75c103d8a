// The buffers of a program, and where in them each value lies (spec 20, 2.4; 40, 2).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/webgpu/program.h"

namespace rlx::webgpu {

// With CompileOptions::poison: so many bytes behind every slot are nobody's.
inline constexpr uint64_t kGuardBytes = 256;

inline uint64_t round_up(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The device's limits, or the smaller ones that the options ask for.
Limits limits_for(const Device& device, const CompileOptions& options);
plan::Options plan_options_for(const Limits& limits, const CompileOptions& options);

struct Place {
  int32_t buffer = -1;
  uint64_t offset = 0;
  bool operator==(const Place&) const = default;
};

class Memory {
 public:
  // `sibling`: null, or the memory of a program of the same graph, whose weights, values computed of weights, and
  // states, if these are to be shared, are taken over.
  Memory(Device& device, const Limits& limits, const Program& program, const plan::Plan& plan,
         const CompileOptions& options, const Memory* sibling = nullptr, bool shares_states = true);

  Place place(int32_t value) const { return places_[static_cast<size_t>(value)]; }
  WGPUBuffer buffer(int32_t index) const { return buffers_[static_cast<size_t>(index)]->get(); }
  WGPUBuffer buffer_of(int32_t value) const { return buffer(place(value).buffer); }
  // The bytes behind the value's root that a guard may fill; none where the value has no device bytes.
  uint64_t guard_begin(int32_t value) const;

  const std::vector<int32_t>& arena() const { return arena_; }  // pages
  uint64_t buffer_bytes(int32_t index) const { return sizes_[static_cast<size_t>(index)]; }
  int64_t count() const { return own_buffers_; }
  int32_t first_own() const { return static_cast<int32_t>(buffers_.size()) - static_cast<int32_t>(own_buffers_); }
  bool is_taken_over(int32_t value) const { return taken_[static_cast<size_t>(value)]; }
  bool same_place(int32_t value, const Memory& other, int32_t other_value) const {
    return buffer_of(value) == other.buffer_of(other_value) && place(value).offset == other.place(other_value).offset;
  }

 private:
  // Slots one after the other, in buffers that are made when all are known.
  struct Packer {
    std::string label;
    uint64_t page_bytes = 0;
    std::vector<uint64_t> pages;  // bytes used of each
    struct Item {
      size_t value;
      size_t page;
      uint64_t offset;
    };
    std::vector<Item> items;
  };
  void pack(Packer& packer, size_t value, uint64_t bytes) const;
  void make(const Packer& packer);
  int32_t add_buffer(uint64_t bytes, const std::string& label);
  void take_over(const Memory& sibling, bool shares_states);

  Device& device_;
  const Program& program_;
  uint64_t alignment_, guard_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  int64_t own_buffers_ = 0;  // the last ones; those before them are a sibling's
  std::vector<bool> taken_;  // by value
  std::vector<uint64_t> sizes_;
  std::vector<Place> places_;  // by value
  std::vector<int32_t> arena_;
};

}  // namespace rlx::webgpu
