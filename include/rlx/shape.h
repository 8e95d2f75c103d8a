// Sizes that may be unknown until a run: Dim, Shape, TensorType, and the symbols they are made of (spec 10, 2).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rlx/dtype.h"

namespace rlx {

// Well-known symbols; 0 to 15 are reserved, names get ids from 16 upwards.
namespace symbols {
inline constexpr uint32_t kBatch = 0;
inline constexpr uint32_t kSeq = 1;
inline constexpr uint32_t kRows = 2;  // derived: BATCH * SEQ
inline constexpr uint32_t kPastSeq = 3;
inline constexpr uint32_t kFirstFree = 16;
}  // namespace symbols

// The sizes of a run: symbol -> size.
class DimBinding {
 public:
  DimBinding() = default;
  DimBinding(std::initializer_list<std::pair<const uint32_t, int64_t>> pairs) : sizes_(pairs) {}
  static DimBinding batch_seq(int64_t batch, int64_t seq);
  static DimBinding batch_past_seq(int64_t batch, int64_t past);

  void set(uint32_t symbol, int64_t size) { sizes_[symbol] = size; }
  std::optional<int64_t> find(uint32_t symbol) const;
  const std::map<uint32_t, int64_t>& sizes() const { return sizes_; }
  bool empty() const { return sizes_.empty(); }
  bool operator==(const DimBinding&) const = default;

 private:
  std::map<uint32_t, int64_t> sizes_;
};

// A size: a number, or scale * symbol + offset with scale >= 1. Text: 384, ?1, ?1*12, ?3+1.
class Dim {
 public:
  Dim(int64_t size = 0) : offset_(size) {}
  static Dim symbol(uint32_t id, int64_t scale = 1, int64_t offset = 0);

  bool is_static() const { return scale_ == 0; }
  int64_t value() const;  // throws when the size is not known
  bool is(int64_t size) const { return is_static() && offset_ == size; }

  uint32_t symbol_id() const { return symbol_; }  // meaningful when not static
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }

  // A known symbol becomes a number, an unknown one stays.
  Dim bind(const DimBinding& binding) const;

  bool operator==(const Dim&) const = default;

 private:
  uint32_t symbol_ = 0;
  int64_t scale_ = 0;  // 0: static
  int64_t offset_ = 0;
};

// Ordered dims. Rank 0 is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  explicit Shape(std::span<const int64_t> sizes) : dims_(sizes.begin(), sizes.end()) {}

  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  // Throws when there is no such axis.
  const Dim& operator[](int64_t axis) const { return dims_[index(axis)]; }
  Dim& operator[](int64_t axis) { return dims_[index(axis)]; }
  const std::vector<Dim>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(dim); }

  bool is_static() const;
  std::vector<int64_t> sizes() const;             // throws when a dim is a symbol
  std::optional<int64_t> try_elements() const;    // nullopt: a dim is a symbol, or the product overflows
  int64_t num_elements() const;                   // the same, as an Error
  std::vector<uint32_t> dynamic_symbols() const;  // sorted, without repeats
  Shape bind(const DimBinding& binding) const;

  bool operator==(const Shape&) const = default;

 private:
  size_t index(int64_t axis) const {
    if (axis < 0 || axis >= rank()) [[unlikely]]
      no_axis(axis);
    return static_cast<size_t>(axis);
  }
  [[noreturn]] void no_axis(int64_t axis) const;

  std::vector<Dim> dims_;
};

// What a value is: shape and declared dtype. Text: [4, ?1, 384] f32.
struct TensorType {
  Shape shape;
  DType dtype = DType::F32;

  int64_t rank() const { return shape.rank(); }
  const Dim& dim(int64_t axis) const { return shape[axis]; }
  int64_t size_bytes() const;  // throws when symbolic, or when it overflows
  bool operator==(const TensorType&) const = default;
};

// A size that is not affine in one symbol: its own symbol, defined by two dims.
struct DerivedDim {
  enum class Kind { kSum, kProduct, kQuotient };  // lhs + rhs, lhs * rhs, floor(lhs / rhs)
  Kind kind;
  Dim lhs, rhs;
  bool operator==(const DerivedDim&) const = default;
};

// A broadcast of a symbolic dim with a size n > 1 is allowed as long as the dim turns out to be 1 or n (spec 10, Q5).
struct DimConstraint {
  Dim dim;
  int64_t one_or = 0;
  bool operator==(const DimConstraint&) const = default;
};

// Names, definitions and constraints of a graph's symbols. Equal definitions (a sum or product in either order) share
// one symbol, so that inferring a graph twice gives the same types. A definition names symbols with smaller ids only.
class SymbolTable {
 public:
  Dim named(const std::string& name);  // the symbol of that name, made on first use
  Dim fresh();
  void note_used(const Shape& shape);  // ids that callers chose themselves are not handed out again
  void set_name(uint32_t id, std::string name);
  const std::string* find_name(uint32_t id) const;

  Dim add(const Dim& a, const Dim& b);
  Dim sub(const Dim& a, const Dim& b);  // b static, or both in one symbol
  Dim mul(const Dim& a, const Dim& b);
  Dim div(const Dim& a, const Dim& b);  // floor; b is positive
  Dim product(std::span<const Dim> dims);

  void define(uint32_t id, DerivedDim definition);  // for the parser
  void require_one_or(const Dim& dim, int64_t n);

  const std::map<uint32_t, std::string>& names() const { return names_; }
  const std::map<uint32_t, DerivedDim>& derived() const { return derived_; }
  const std::vector<DimConstraint>& constraints() const { return constraints_; }

  // The binding with the values of derived symbols added. Throws on a negative size, an overflow or a broken
  // constraint.
  DimBinding complete(const DimBinding& binding) const;
  // Is a size that broadcasting wants to be 1 or n the same of both in this? They are complete.
  bool broadcast_alike(const DimBinding& a, const DimBinding& b) const;

  bool operator==(const SymbolTable&) const = default;

 private:
  Dim derive(DerivedDim::Kind kind, Dim a, Dim b);
  void note_used(uint32_t id);

  std::map<uint32_t, std::string> names_;
  std::map<uint32_t, DerivedDim> derived_;
  std::vector<DimConstraint> constraints_;
  uint64_t next_ = symbols::kFirstFree;  // 64 bits: one past the last id is a number too
};

// NumPy broadcasting with symbols (spec 10, 2.2 and Q5).
Dim broadcast_dim(const Dim& a, const Dim& b, SymbolTable& symbols);
Shape broadcast_shapes(const Shape& a, const Shape& b, SymbolTable& symbols);

// Maps -rank … rank-1 to 0 … rank-1; throws otherwise.
int64_t normalize_axis(int64_t axis, int64_t rank);

// Arithmetic that throws instead of wrapping around.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_sub(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
int64_t product(std::span<const int64_t> sizes);

void append_text(std::string& out, const Dim& dim);
void append_text(std::string& out, const Shape& shape);
void append_text(std::string& out, const TensorType& type);

}  // namespace rlx
