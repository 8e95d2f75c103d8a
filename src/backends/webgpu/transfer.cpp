#include "backends/webgpu/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/aligned.h"
#include "core/convert.h"
#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

constexpr uint64_t kWriteBytes = uint64_t{64} << 20;         // a larger tensor is written in parts
constexpr uint64_t kUnsubmittedBytes = uint64_t{256} << 20;  // the library keeps a copy of what is written until then
constexpr uint64_t kTinyBytes = 16, kTinyBuffer = 256;

constexpr int64_t kLargestWholeF32 = int64_t{1} << 24;

// 64-bit integers live in 32 bits on the device, all of them in f32 if the options want it so.
void check_range(const ProgramValue& to, const std::byte* bytes, int64_t n) {
  const DType dtype = to.type.dtype;
  if (is_int(dtype) && to.storage == Storage::kF32) {
    const LoadIntFn load = load_int_fn(dtype);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t x = load(bytes, i);
      const bool exact = is_signed(dtype) ? x >= -kLargestWholeF32 && x <= kLargestWholeF32
                                          : static_cast<uint64_t>(x) <= static_cast<uint64_t>(kLargestWholeF32);
      if (!exact)
        fail(ErrorKind::kUnsupported, str("Value ", is_signed(dtype) ? str(x) : str(static_cast<uint64_t>(x)), " of ",
                                          to.label, " (", to.type, ") is not exact as f32, which f32_uniform stores."));
    }
    return;
  }
  if (dtype != DType::I64 && dtype != DType::U64) return;
  const LoadIntFn load = load_int_fn(dtype);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = load(bytes, i);
    const bool fits = is_signed(dtype) ? x >= INT32_MIN && x <= INT32_MAX : static_cast<uint64_t>(x) <= UINT32_MAX;
    if (!fits)
      fail(ErrorKind::kUnsupported,
           str("Value ", is_signed(dtype) ? str(x) : str(static_cast<uint64_t>(x)), " of ", to.label, " (", to.type,
               ") does not fit the 32 bits that integers have on the webgpu device; use the cpu device."));
  }
}

}  // namespace

DType stored_dtype(Storage storage, DType declared) {
  switch (storage) {
    case Storage::kF32: return DType::F32;
    case Storage::kF16: return DType::F16;
    case Storage::kI32: return DType::I32;
    case Storage::kU32: return DType::U32;
    default: return declared;
  }
}

void from_storage(const ProgramValue& v, const std::byte* bytes, Tensor& to) {
  if (to.num_elements() == 0) return;
  const DType stored = stored_dtype(v.storage, v.type.dtype);
  if (stored == v.type.dtype)
    std::memcpy(to.mutable_bytes().data(), bytes, to.bytes().size());
  else
    convert_elements(stored, bytes, v.type.dtype, to.mutable_bytes().data(), to.num_elements());
}

void Uploads::write(int32_t value, const Tensor& tensor) {
  const ProgramValue& to = program_.values[static_cast<size_t>(value)];
  const int64_t n = tensor.num_elements();
  if (n == 0) return;
  const DType stored = stored_dtype(to.storage, to.type.dtype);
  const std::byte* bytes = tensor.bytes().data();
  uint64_t size = tensor.bytes().size();
  if (stored != to.type.dtype || size % 4 != 0) {
    staged_.resize(round_up(static_cast<uint64_t>(n) * size_of(stored), 4));
    if (stored != to.type.dtype) {
      if (!is_aligned(tensor)) {
        aligned_.assign(bytes, bytes + size);
        bytes = aligned_.data();
      }
      if (to.bounds_loops && to.storage == Storage::kI32) {
        for (int64_t i = 0; i < n; ++i) {
          const int64_t x = reinterpret_cast<const int64_t*>(bytes)[i];
          reinterpret_cast<int32_t*>(staged_.data())[i] =
              static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
        }
      } else {
        check_range(to, bytes, n);
        convert_elements(to.type.dtype, bytes, stored, staged_.data(), n);
      }
    } else {
      std::memcpy(staged_.data(), bytes, size);
    }
    bytes = staged_.data();
    size = staged_.size();
  }
  const Place place = memory_.place(value);
  for (uint64_t at = 0; at < size; at += kWriteBytes) {
    const uint64_t part = std::min(kWriteBytes, size - at);
    device_.api().QueueWriteBuffer(device_.queue(), memory_.buffer(place.buffer), place.offset + at, bytes + at, part);
    unsubmitted_ += part;
    if (unsubmitted_ < kUnsubmittedBytes) continue;
    device_.api().QueueSubmit(device_.queue(), 0, nullptr);
    ++stats_.submits;
    device_.wait();
    unsubmitted_ = 0;
  }
  stats_.bytes_up += static_cast<int64_t>(size);
  for (std::vector<std::byte>* kept : {&staged_, &aligned_})
    if (kept->capacity() > kWriteBytes) *kept = {};  // of a weight: not needed again
  if (device_.has_error()) device_.check(str("writing ", to.label));
}

void Readback::clear() {
  items_.clear();
  for (Staging& s : staging_) s.used = 0;
  last_ = kFirst;
}

size_t Readback::place(Item item) {
  const uint64_t size = round_up(item.bytes, 16);
  if (staging_[last_].used > 0 && staging_[last_].used + size > max_bytes_ && ++last_ == staging_.size())
    staging_.emplace_back();
  item.staging = last_;
  item.at = staging_[last_].used;
  staging_[last_].used += size;
  items_.push_back(item);
  return items_.size() - 1;
}

size_t Readback::add(int32_t value) {
  const ProgramValue& v = program_.values[static_cast<size_t>(value)];
  const Place place_of = memory_.place(value);
  const uint64_t begin = place_of.offset / 4 * 4, skip = place_of.offset - begin;
  const uint64_t size = round_up(skip + static_cast<uint64_t>(storage_bytes(v.storage, v.type)), 4);
  return place({value, memory_.buffer(place_of.buffer), begin, size, skip});
}

size_t Readback::add_raw(WGPUBuffer from, uint64_t offset, uint64_t bytes) {
  return place({-1, from, offset, bytes, 0});
}

void Readback::encode(Commands& commands) {
  const auto make = [&](Staging& s, uint64_t bytes, const char* label) {
    ++stats_.buffers;
    s.buffer = device_.make_buffer(bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, label);
    s.capacity = bytes;
  };
  is_tiny_ = items_.size() == 1 && staging_[kFirst].used <= kTinyBytes;
  if (is_tiny_) {
    items_[0].staging = kTiny;
    staging_[kTiny].used = std::exchange(staging_[kFirst].used, 0);
    if (!staging_[kTiny].buffer) make(staging_[kTiny], kTinyBuffer, "tiny staging");
  }
  for (size_t i = kFirst; i <= last_; ++i) {
    Staging& s = staging_[i];
    if (s.used <= s.capacity) continue;
    uint64_t size = 256;
    while (size < s.used) size *= 2;
    make(s, size > max_bytes_ ? s.used : size, "staging");
  }
  for (const Item& item : items_) {
    commands.copy(item.from, item.offset, staging_[item.staging].buffer.get(), item.at, item.bytes);
    stats_.bytes_down += static_cast<int64_t>(item.bytes);
  }
}

void Readback::map() {
  for (Staging& s : staging_)
    if (s.used > 0) s.mapped = static_cast<const std::byte*>(device_.map(s.buffer, s.used, is_tiny_));
}

void Readback::read(size_t item, Tensor& to) const {
  from_storage(program_.values[static_cast<size_t>(items_[item].value)], data(item), to);
}

void Readback::unmap() {
  for (Staging& s : staging_)
    if (std::exchange(s.mapped, nullptr) != nullptr) device_.api().BufferUnmap(s.buffer.get());
}

}  // namespace rlx::webgpu
