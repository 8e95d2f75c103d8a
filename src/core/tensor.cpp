#include "rlx/tensor.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/convert.h"

namespace rlx {

namespace {

int64_t checked_elements(const std::vector<int64_t>& sizes) {
  for (const int64_t size : sizes) require(size >= 0, "Tensor size (", size, ") is negative.");
  return Shape(sizes).num_elements();
}

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

struct Tensor::Block {
  std::shared_ptr<const void> owner;  // of borrowed bytes; may be null
  void* memory = nullptr;             // owned
  std::atomic<uint64_t> id = 0;       // 0: the bytes may change
  std::atomic<bool> sealed = false;
  ~Block() { std::free(memory); }
};

Tensor::Tensor(DType dtype, std::vector<int64_t> sizes)
    : dtype_(dtype), sizes_(std::move(sizes)), elements_(checked_elements(sizes_)) {
  size_bytes_ = static_cast<size_t>(checked_mul(elements_, static_cast<int64_t>(size_of(dtype))));
  if (size_bytes_ == 0) return;
  // calloc: fresh pages are zero already, so a large tensor costs nothing until it is touched.
  block_ = std::make_shared<Block>();
  block_->memory = std::calloc(size_bytes_, 1);
  if (block_->memory == nullptr)
    fail(ErrorKind::kMemory, str("Tensor ", type(), " needs ", size_bytes_, " bytes, which are not available."));
  block_->id = next_id();
  data_ = static_cast<std::byte*>(block_->memory);
}

Tensor Tensor::f32(std::vector<int64_t> sizes, std::vector<float> values) {
  return of<float>(DType::F32, std::move(sizes), values);
}
Tensor Tensor::i32(std::vector<int64_t> sizes, std::vector<int32_t> values) {
  return of<int32_t>(DType::I32, std::move(sizes), values);
}
Tensor Tensor::i64(std::vector<int64_t> sizes, std::vector<int64_t> values) {
  return of<int64_t>(DType::I64, std::move(sizes), values);
}

Tensor Tensor::from_doubles(DType dtype, std::vector<int64_t> sizes, std::span<const double> values) {
  Tensor t(dtype, std::move(sizes));
  require(static_cast<int64_t>(values.size()) == t.elements_, "Number of values (", values.size(),
          ") does not match the tensor's elements (", t.elements_, ").");
  const StoreFn store = store_fn(dtype);
  for (int64_t i = 0; i < t.elements_; ++i) store(t.data_, i, values[static_cast<size_t>(i)]);
  return t;
}

Tensor Tensor::borrow(DType dtype, std::vector<int64_t> sizes, std::span<const std::byte> bytes,
                      std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.sizes_ = std::move(sizes);
  t.elements_ = checked_elements(t.sizes_);
  t.size_bytes_ = static_cast<size_t>(checked_mul(t.elements_, static_cast<int64_t>(size_of(dtype))));
  require(t.size_bytes_ == bytes.size(), "Number of bytes (", bytes.size(), ") does not match tensor ", t.type(), " (",
          t.size_bytes_, " bytes).");
  t.data_ = const_cast<std::byte*>(bytes.data());  // never written: writable_ is false
  t.writable_ = false;
  if (owner != nullptr) {
    t.block_ = std::make_shared<Block>();
    t.block_->owner = std::move(owner);
  }
  return t;
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (!writable_)  // asked first: the message costs an allocation
    fail(ErrorKind::kInvalid, str("Tensor ", type(), " is borrowed or mapped; clone it before writing."));
  if (block_ != nullptr) {
    if (block_->sealed) fail(ErrorKind::kInvalid, str("Tensor ", type(), " is sealed; clone it before writing."));
    block_->id = 0;
  }
  return {data_, size_bytes_};
}

void Tensor::seal() {
  if (block_ == nullptr) block_ = std::make_shared<Block>();
  block_->sealed = true;
  if (block_->id == 0) block_->id = next_id();
}

uint64_t Tensor::fixed_id() const { return block_ == nullptr ? 0 : block_->id.load(); }

double Tensor::at(int64_t index) const {
  require(index >= 0 && index < elements_, "Index (", index, ") is out of range for ", elements_, " elements.");
  return load_fn(dtype_)(data_, index);
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> out(static_cast<size_t>(elements_));
  const LoadFn load = load_fn(dtype_);
  for (int64_t i = 0; i < elements_; ++i) out[static_cast<size_t>(i)] = load(data_, i);
  return out;
}

Tensor Tensor::clone() const {
  Tensor t(dtype_, sizes_);
  if (size_bytes_ > 0) std::memcpy(t.data_, data_, size_bytes_);
  return t;
}

Tensor Tensor::reshaped(std::vector<int64_t> sizes) const {
  require(checked_elements(sizes) == elements_, "Tensor ", type(), " cannot be reshaped to ", sizes, ".");
  Tensor t = *this;
  t.sizes_ = std::move(sizes);
  return t;
}

Tensor Tensor::cast(DType to) const {
  Tensor t(to, sizes_);
  convert_elements(dtype_, data_, to, t.data_, elements_);
  return t;
}

bool Tensor::operator==(const Tensor& other) const {
  return dtype_ == other.dtype_ && sizes_ == other.sizes_ &&
         (size_bytes_ == 0 || std::memcmp(data_, other.data_, size_bytes_) == 0);
}

// Plain ifs: require() would build the type's text for every access.
void Tensor::check_holds(bool ok, size_t alignment) const {
  if (!ok) fail(ErrorKind::kInvalid, str("Tensor ", type(), " is read or written as another element type."));
  if (reinterpret_cast<uintptr_t>(data_) % alignment != 0)
    fail(ErrorKind::kInvalid, str("Tensor ", type(), " is borrowed from an address that is not a multiple of ",
                                  alignment, "; clone it before reading its elements."));
}

}  // namespace rlx
