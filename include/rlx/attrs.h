// Typed attributes. An op's attributes are a plain struct with one `fields` list; printing, parsing, comparing,
// hashing, binding of symbols and the walk over sub-graphs all follow from that list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "rlx/dtype.h"
#include "rlx/shape.h"
#include "rlx/tensor.h"

namespace rlx {

class Graph;
using GraphPtr = std::shared_ptr<const Graph>;  // a region; null where an optional one is absent

// Raw bytes, as opposed to a list of numbers.
struct Bytes {
  std::vector<uint8_t> data;
  bool operator==(const Bytes&) const = default;
};

struct OpDef;

// One step of an element-wise chain (spec 10, 4.3): an element-wise op applied to operands that are inputs of the
// region or results of earlier steps. Text: chain=[add(i0, i1), cast(s0, f16), relu(s1)].
struct ChainOperand {
  bool is_step = false;  // else an input of the region
  int32_t index = 0;
  bool operator==(const ChainOperand&) const = default;
};
struct ChainStep {
  const OpDef* op = nullptr;
  std::vector<ChainOperand> operands;
  std::optional<DType> to;  // of a cast
  bool operator==(const ChainStep&) const = default;
};
using Chain = std::vector<ChainStep>;
void append_text(std::string& out, const ChainStep& step);

// An attribute that is an enum: declare `enum class Kind : int32_t {...}` counting from 0 and, beside it,
// `constexpr auto names_of(Kind) { return std::array<std::string_view, N>{"a", "b"}; }`.
struct EnumField {
  int32_t* value;
  std::span<const std::string_view> names;
};

// Points at one field of an attribute struct.
using FieldRef = std::variant<bool*, int64_t*, uint64_t*, float*, DType*, Dim*, std::string*, Bytes*,
                              std::vector<int64_t>*, std::vector<float>*, std::vector<Dim>*, std::optional<float>*,
                              std::optional<int64_t>*, std::optional<DType>*, Tensor*, Chain*, GraphPtr*, EnumField>;

struct Field {
  std::string_view name;
  FieldRef ref;
};

// One entry of a `fields` list: field("axis", &SoftmaxAttrs::axis).
template <class Struct, class T>
struct FieldDef {
  std::string_view name;
  T Struct::*member;
};
template <class Struct, class T>
constexpr FieldDef<Struct, T> field(std::string_view name, T Struct::*member) {
  return {name, member};
}

// The names of an enum's values with static storage.
template <class E>
inline constexpr auto enum_names = names_of(E{});

template <class E>
std::string_view name_of(E value) {
  return enum_names<E>[static_cast<size_t>(value)];
}

namespace detail {
template <class T>
FieldRef field_ref(T& value) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    static_assert(sizeof(T) == sizeof(int32_t), "attribute enums are int32_t");
    return EnumField{reinterpret_cast<int32_t*>(&value), std::span<const std::string_view>(enum_names<T>)};
  } else {
    return FieldRef(&value);
  }
}
}  // namespace detail

// How a struct of attributes is made, copied and looked into without knowing its type.
struct AttrsType {
  std::shared_ptr<void> (*make)();  // default values
  std::shared_ptr<void> (*copy)(const void*);
  void (*fields)(void*, std::vector<Field>&);  // in declaration order
};

template <class A>
inline constexpr AttrsType attrs_type = {
    [] { return std::static_pointer_cast<void>(std::make_shared<A>()); },
    [](const void* p) { return std::static_pointer_cast<void>(std::make_shared<A>(*static_cast<const A*>(p))); },
    [](void* p, std::vector<Field>& out) {
      A& attrs = *static_cast<A*>(p);
      std::apply(
          [&](const auto&... def) {
            (out.push_back({def.name, detail::field_ref(attrs.*def.member)}), ...);
          },
          A::fields);
    },
};

// For ops without attributes.
struct NoAttrs {
  static constexpr auto fields = std::tuple<>{};
};

// The attributes of a node: immutable, cheap to copy.
class Attrs {
 public:
  Attrs() : type_(&attrs_type<NoAttrs>), value_(attrs_type<NoAttrs>.make()) {}
  template <class A>
  requires requires { A::fields; }
  Attrs(A attrs) : type_(&attrs_type<A>), value_(std::make_shared<A>(std::move(attrs))) {}
  Attrs(const AttrsType& type, std::shared_ptr<const void> value) : type_(&type), value_(std::move(value)) {}

  // The struct itself; asking for another struct than the op's is a fault of rlx.
  template <class A>
  const A& as() const {
    check_type(type_ == &attrs_type<A>);
    return *static_cast<const A*>(value_.get());
  }

  const AttrsType& type() const { return *type_; }
  const void* get() const { return value_.get(); }

  std::vector<Field> fields() const;  // read only: the pointees are shared
  bool operator==(const Attrs& other) const;
  uint64_t hash() const;

  bool has_dims() const;                        // is any field a Dim or a list of Dims?
  Attrs bind(const DimBinding& binding) const;  // symbols substituted, in regions too
  Attrs map_graphs(const std::function<GraphPtr(const GraphPtr&)>& f) const;
  std::vector<GraphPtr> graphs() const;  // the regions, absent ones left out

 private:
  static void check_type(bool same);

  const AttrsType* type_;
  std::shared_ptr<const void> value_;
};

}  // namespace rlx
