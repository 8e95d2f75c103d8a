// Tensor: typed, dense, row-major bytes that are owned, borrowed or mapped.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rlx/dtype.h"
#include "rlx/error.h"
#include "rlx/shape.h"

namespace rlx {

// C++ types whose bytes are those of a dtype. F16 and BF16 are read and written as uint16_t bit patterns.
template <class T>
constexpr bool holds(DType dtype) {
  if constexpr (std::is_same_v<T, float>) return dtype == DType::F32;
  if constexpr (std::is_same_v<T, double>) return dtype == DType::F64;
  if constexpr (std::is_same_v<T, uint16_t>) return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::U16;
  if constexpr (std::is_same_v<T, int8_t>) return dtype == DType::I8;
  if constexpr (std::is_same_v<T, int16_t>) return dtype == DType::I16;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == DType::I32;
  if constexpr (std::is_same_v<T, int64_t>) return dtype == DType::I64;
  if constexpr (std::is_same_v<T, uint8_t>) return dtype == DType::U8 || dtype == DType::Bool;
  if constexpr (std::is_same_v<T, uint32_t>) return dtype == DType::U32;
  if constexpr (std::is_same_v<T, uint64_t>) return dtype == DType::U64;
  if constexpr (std::is_same_v<T, bool>) return dtype == DType::Bool;
  if constexpr (std::is_same_v<T, std::complex<float>>) return dtype == DType::C64;
  return false;
}

// Copies share the bytes; clone() copies them. A borrowed tensor is valid as long as the memory it was made of.
class Tensor {
 public:
  Tensor() = default;                               // F32 [0]
  Tensor(DType dtype, std::vector<int64_t> sizes);  // owned, zeros

  // Owned, from values in row-major order; throws when their number does not match the sizes.
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> sizes, std::span<const T> values);
  static Tensor f32(std::vector<int64_t> sizes, std::vector<float> values);
  static Tensor i32(std::vector<int64_t> sizes, std::vector<int32_t> values);
  static Tensor i64(std::vector<int64_t> sizes, std::vector<int64_t> values);
  // Values converted by the rules of Cast (spec 10, 1.4).
  static Tensor from_doubles(DType dtype, std::vector<int64_t> sizes, std::span<const double> values);

  // Bytes that somebody else owns (owner null), or that owner keeps alive (a mapped file).
  static Tensor borrow(DType dtype, std::vector<int64_t> sizes, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner = nullptr);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  int64_t rank() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t num_elements() const { return elements_; }
  TensorType type() const { return {Shape(sizes_), dtype_}; }

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  std::span<std::byte> mutable_bytes();  // throws on borrowed and on sealed bytes
  bool is_owned() const { return writable_; }

  // A promise that nobody writes these bytes any more, also not through spans that were got before: mutable_bytes()
  // throws from now on, of copies too. A GPU uploads a sealed input once, however often it is run with.
  void seal();
  // Which bytes these are, while they cannot change: tensors with the same one hold the same bytes. 0 when they may
  // change: borrowed, or handed out by mutable_bytes(), and not sealed since.
  uint64_t fixed_id() const;

  // The elements as C++ values. Borrowed bytes may stand at any address; an Error says when T needs an aligned one.
  template <class T>
  std::span<const T> values() const {
    check_holds(holds<T>(dtype_), alignof(T));
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<T> mutable_values() {
    check_holds(holds<T>(dtype_), alignof(T));
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<size_t>(elements_)};
  }

  double at(int64_t index) const;  // any real dtype, by flat index; of C64 the real part
  std::vector<double> to_doubles() const;

  Tensor clone() const;
  Tensor reshaped(std::vector<int64_t> sizes) const;  // shares the bytes
  Tensor cast(DType to) const;                        // spec 10, 1.4

  // Same dtype, sizes and bytes.
  bool operator==(const Tensor& other) const;

 private:
  void check_holds(bool ok, size_t alignment) const;

  DType dtype_ = DType::F32;
  std::vector<int64_t> sizes_ = {0};
  int64_t elements_ = 0;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  bool writable_ = true;
  struct Block;  // what copies share
  std::shared_ptr<Block> block_;
};

using NamedTensors = std::map<std::string, Tensor>;

template <class T>
Tensor Tensor::of(DType dtype, std::vector<int64_t> sizes, std::span<const T> values) {
  Tensor t(dtype, std::move(sizes));
  t.check_holds(holds<T>(dtype), alignof(T));
  require(static_cast<int64_t>(values.size()) == t.num_elements(), "Number of values (", values.size(),
          ") does not match the tensor's elements (", t.num_elements(), ").");
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(t.data_));
  return t;
}

}  // namespace rlx
