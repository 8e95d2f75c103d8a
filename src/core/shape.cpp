#include "rlx/shape.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "rlx/error.h"

namespace rlx {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), "Size (", a, " + ", b, ") does not fit 64 bits.");
  return sum;
}

int64_t checked_sub(int64_t a, int64_t b) {
  int64_t difference = 0;
  require(!__builtin_sub_overflow(a, b, &difference), "Size (", a, " - ", b, ") does not fit 64 bits.");
  return difference;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), "Size (", a, " * ", b, ") does not fit 64 bits.");
  return product;
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n = checked_mul(n, size);
  return n;
}

DimBinding DimBinding::batch_seq(int64_t batch, int64_t seq) {
  return {{symbols::kBatch, batch}, {symbols::kSeq, seq}};
}
DimBinding DimBinding::batch_past_seq(int64_t batch, int64_t past) {
  return {{symbols::kBatch, batch}, {symbols::kPastSeq, past}};
}

std::optional<int64_t> DimBinding::find(uint32_t symbol) const {
  const auto it = sizes_.find(symbol);
  if (it == sizes_.end()) return std::nullopt;
  return it->second;
}

Dim Dim::symbol(uint32_t id, int64_t scale, int64_t offset) {
  require(scale >= 1, "Scale (", scale, ") of symbol ?", id, " is not positive.");
  Dim d;
  d.symbol_ = id;
  d.scale_ = scale;
  d.offset_ = offset;
  return d;
}

int64_t Dim::value() const {
  require(is_static(), "Size ", *this, " is not bound.");
  return offset_;
}

Dim Dim::bind(const DimBinding& binding) const {
  if (is_static()) return *this;
  const auto size = binding.find(symbol_);
  if (!size) return *this;
  const int64_t n = checked_add(checked_mul(*size, scale_), offset_);
  require(n >= 0, "Size ", *this, " is negative (", n, ") where ?", symbol_, " is ", *size, ".");
  return Dim(n);
}

void Shape::no_axis(int64_t axis) const { fail(ErrorKind::kInvalid, str("Shape ", *this, " has no axis ", axis, ".")); }

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_static(); });
}

std::vector<int64_t> Shape::sizes() const {
  std::vector<int64_t> out;
  out.reserve(dims_.size());
  for (const Dim& d : dims_) out.push_back(d.value());
  return out;
}

std::optional<int64_t> Shape::try_elements() const {
  if (!is_static()) return std::nullopt;
  int64_t n = 1;
  bool overflow = false;
  for (const Dim& d : dims_) {
    if (d.is(0)) return 0;
    overflow |= __builtin_mul_overflow(n, d.offset(), &n);
  }
  if (overflow) return std::nullopt;
  return n;
}

int64_t Shape::num_elements() const {
  require(is_static(), "Shape ", *this, " has a size that is not bound.");
  for (const Dim& d : dims_) require(d.value() >= 0, "Size (", d, ") of shape ", *this, " is negative.");
  const auto n = try_elements();
  require(n.has_value(), "Number of elements of shape ", *this, " does not fit 64 bits.");
  return *n;
}

std::vector<uint32_t> Shape::dynamic_symbols() const {
  std::vector<uint32_t> ids;
  for (const Dim& d : dims_)
    if (!d.is_static()) ids.push_back(d.symbol_id());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Shape Shape::bind(const DimBinding& binding) const {
  Shape out;
  for (const Dim& d : dims_) out.push_back(d.bind(binding));
  return out;
}

int64_t TensorType::size_bytes() const {
  return checked_mul(shape.num_elements(), static_cast<int64_t>(size_of(dtype)));
}

Dim SymbolTable::named(const std::string& name) {
  for (const auto& [id, existing] : names_)
    if (existing == name) return Dim::symbol(id);
  const Dim d = fresh();
  names_[d.symbol_id()] = name;
  return d;
}

Dim SymbolTable::fresh() {
  require(next_ <= std::numeric_limits<uint32_t>::max(), "The last symbol id (", next_ - 1, ") is in use already.");
  return Dim::symbol(static_cast<uint32_t>(next_++));
}

void SymbolTable::note_used(uint32_t id) { next_ = std::max(next_, uint64_t{id} + 1); }

void SymbolTable::note_used(const Shape& shape) {
  for (const uint32_t id : shape.dynamic_symbols()) note_used(id);
}

void SymbolTable::set_name(uint32_t id, std::string name) {
  names_[id] = std::move(name);
  note_used(id);
}

const std::string* SymbolTable::find_name(uint32_t id) const {
  const auto it = names_.find(id);
  return it == names_.end() ? nullptr : &it->second;
}

Dim SymbolTable::derive(DerivedDim::Kind kind, Dim a, Dim b) {
  // Sums and products in one order, so that s + t and t + s are one symbol.
  const auto key = [](const Dim& d) { return std::tuple(d.symbol_id(), d.scale(), d.offset()); };
  if (kind != DerivedDim::Kind::kQuotient && key(b) < key(a)) std::swap(a, b);
  note_used(Shape{a, b});  // a definition names earlier symbols only: complete() relies on it
  const DerivedDim definition{kind, a, b};
  if (definition == DerivedDim{DerivedDim::Kind::kProduct, Dim::symbol(symbols::kBatch), Dim::symbol(symbols::kSeq)}) {
    derived_.emplace(symbols::kRows, definition);
    return Dim::symbol(symbols::kRows);
  }
  for (const auto& [id, existing] : derived_)
    if (existing == definition) return Dim::symbol(id);
  const Dim d = fresh();
  derived_.emplace(d.symbol_id(), definition);
  return d;
}

void SymbolTable::define(uint32_t id, DerivedDim definition) {
  for (const Dim& d : {definition.lhs, definition.rhs})
    require(d.is_static() || d.symbol_id() < id, "Symbol ?", id, " is defined by a later symbol (", d, ").");
  derived_.insert_or_assign(id, definition);
  note_used(id);
}

void SymbolTable::require_one_or(const Dim& dim, int64_t n) {
  const DimConstraint constraint{dim, n};
  if (std::find(constraints_.begin(), constraints_.end(), constraint) == constraints_.end())
    constraints_.push_back(constraint);
}

// Affine result, or a number when the symbol cancels.
static Dim affine(uint32_t id, int64_t scale, int64_t offset) {
  return scale == 0 ? Dim(offset) : Dim::symbol(id, scale, offset);
}

Dim SymbolTable::add(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_add(a.value(), b.value()));
  if (b.is_static()) return affine(a.symbol_id(), a.scale(), checked_add(a.offset(), b.offset()));
  if (a.is_static()) return add(b, a);
  if (a.symbol_id() == b.symbol_id())
    return affine(a.symbol_id(), checked_add(a.scale(), b.scale()), checked_add(a.offset(), b.offset()));
  // Numbers stay outside, so that equal sums share one symbol.
  const Dim sum =
      derive(DerivedDim::Kind::kSum, Dim::symbol(a.symbol_id(), a.scale()), Dim::symbol(b.symbol_id(), b.scale()));
  return add(sum, Dim(checked_add(a.offset(), b.offset())));
}

Dim SymbolTable::sub(const Dim& a, const Dim& b) {
  if (b.is_static()) return add(a, Dim(checked_sub(0, b.value())));
  require(!a.is_static() && a.symbol_id() == b.symbol_id() && a.scale() >= b.scale(), "Size ", a, " - ", b,
          " is not a sum of symbols with positive factors.");
  return affine(a.symbol_id(), a.scale() - b.scale(), checked_sub(a.offset(), b.offset()));
}

Dim SymbolTable::mul(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_mul(a.value(), b.value()));
  if (a.is_static()) return mul(b, a);
  if (b.is_static()) {
    if (b.is(0)) return Dim(0);
    return affine(a.symbol_id(), checked_mul(a.scale(), b.value()), checked_mul(a.offset(), b.value()));
  }
  // As in add: factors stay outside.
  if (a.offset() != 0 || b.offset() != 0) return derive(DerivedDim::Kind::kProduct, a, b);
  const Dim product = derive(DerivedDim::Kind::kProduct, Dim::symbol(a.symbol_id()), Dim::symbol(b.symbol_id()));
  return mul(product, Dim(checked_mul(a.scale(), b.scale())));
}

Dim SymbolTable::div(const Dim& a, const Dim& b) {
  require(!b.is_static() || b.value() > 0, "Size ", a, " is divided by ", b, ".");
  if (a.is_static() && b.is_static()) {
    const int64_t q = a.value() / b.value();
    return Dim(a.value() % b.value() < 0 ? q - 1 : q);
  }
  if (a == b) return Dim(1);
  if (b.is_static() && a.scale() % b.value() == 0) {
    const int64_t n = b.value();
    const int64_t rest = a.offset() % n;
    return affine(a.symbol_id(), a.scale() / n,
                  a.offset() / n - (rest < 0 ? 1 : 0));  // floor: the symbol's part is whole
  }
  // (s * n) / s, and a product divided by one of its factors.
  if (!a.is_static() && !b.is_static()) {
    if (a.symbol_id() == b.symbol_id() && a.offset() == 0 && b.offset() == 0 && a.scale() % b.scale() == 0)
      return Dim(a.scale() / b.scale());
    const auto it = derived_.find(a.symbol_id());
    if (it != derived_.end() && it->second.kind == DerivedDim::Kind::kProduct && a.offset() == 0) {
      if (it->second.rhs == b) return mul(it->second.lhs, Dim(a.scale()));
      if (it->second.lhs == b) return mul(it->second.rhs, Dim(a.scale()));
    }
  }
  return derive(DerivedDim::Kind::kQuotient, a, b);
}

Dim SymbolTable::product(std::span<const Dim> dims) {
  Dim n(1);
  for (const Dim& d : dims) n = mul(n, d);
  return n;
}

DimBinding SymbolTable::complete(const DimBinding& binding) const {
  DimBinding out = binding;
  for (const auto& [id, size] : binding.sizes())
    require(size >= 0, "Symbol ?", id, " is bound to a negative size (", size, ").");
  for (const auto& [id, def] : derived_) {  // ascending: a definition names earlier symbols only
    const Dim lhs = def.lhs.bind(out), rhs = def.rhs.bind(out);
    if (!lhs.is_static() || !rhs.is_static()) continue;
    int64_t size = 0;
    switch (def.kind) {
      case DerivedDim::Kind::kSum: size = checked_add(lhs.value(), rhs.value()); break;
      case DerivedDim::Kind::kProduct: size = checked_mul(lhs.value(), rhs.value()); break;
      case DerivedDim::Kind::kQuotient:
        require(rhs.value() > 0, "Symbol ?", id, " divides ", def.lhs, " (", lhs, ") by ", def.rhs, " (", rhs, ").");
        size = lhs.value() / rhs.value();
        break;
    }
    require(size >= 0, "Derived symbol ?", id, " is negative (", size, ").");
    if (const auto given = binding.find(id))
      require(*given == size, "Symbol ?", id, " is bound to ", *given, ", but its definition gives ", size, ".");
    out.set(id, size);
  }
  for (const auto& [dim, n] : constraints_) {
    const Dim bound = dim.bind(out);
    require(!bound.is_static() || bound.is(1) || bound.is(n), "Size ", dim, " (", bound, ") is broadcast with ", n,
            ", so it must be 1 or ", n, ".");
  }
  return out;
}

bool SymbolTable::broadcast_alike(const DimBinding& a, const DimBinding& b) const {
  return std::ranges::all_of(constraints_, [&](const auto& constraint) {
    const Dim& dim = constraint.dim;
    return dim.bind(a).is(1) == dim.bind(b).is(1);
  });
}

Dim broadcast_dim(const Dim& a, const Dim& b, SymbolTable& symbols) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.is_static() && b.is_static()) fail(ErrorKind::kInvalid, str("Sizes ", a, " and ", b, " do not broadcast."));
  require(a.is_static() || b.is_static(), "Sizes ", a, " and ", b, " do not broadcast until they are bound.");
  const Dim& n = a.is_static() ? a : b;
  const Dim& s = a.is_static() ? b : a;
  symbols.require_one_or(s, n.value());
  return n;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, SymbolTable& symbols) {
  const int64_t rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    try {
      out.push_back(broadcast_dim(ia < 0 ? Dim(1) : a[ia], ib < 0 ? Dim(1) : b[ib], symbols));
    } catch (Error& e) {
      e.add_context(str("broadcasting ", a, " with ", b));
      throw;
    }
  }
  return out;
}

int64_t normalize_axis(int64_t axis, int64_t rank) {
  require(axis >= -rank && axis < rank, "Axis (", axis, ") is out of range for rank (", rank, ").");
  return axis < 0 ? axis + rank : axis;
}

void append_text(std::string& out, const Dim& dim) {
  if (dim.is_static()) {
    append_text(out, dim.offset());
    return;
  }
  out += '?';
  append_text(out, dim.symbol_id());
  if (dim.scale() != 1) {
    out += '*';
    append_text(out, dim.scale());
  }
  if (dim.offset() != 0) {
    if (dim.offset() > 0) out += '+';
    append_text(out, dim.offset());
  }
}

void append_text(std::string& out, const Shape& shape) { append_text(out, shape.dims()); }

void append_text(std::string& out, const TensorType& type) {
  append_text(out, type.shape);
  out += ' ';
  append_text(out, type.dtype);
}

}  // namespace rlx
