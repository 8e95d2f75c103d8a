// What a template computes with: Python's values, as far as templates see them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rlx::jinja {

class Value;
constexpr size_t kLeastWeight = 8;
using OrderedJson = nlohmann::ordered_json;

struct List {
  std::vector<Value> items;
  int depth = 1;  // of lists in lists: bounded, so that nothing that walks them runs out of stack
  size_t weight = kLeastWeight;
  bool tuple = false;  // printed with round brackets
};

struct Dict {
  std::vector<std::pair<std::string, Value>> entries;  // in order of insertion
  int depth = 1;
  size_t weight = kLeastWeight;
  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
};

struct Undefined {
  std::string name;
};
struct None {};
struct Loop {  // the variable `loop`
  std::shared_ptr<const List> items;
  size_t index = 0;
  int64_t depth = 1;
};
struct Macro;  // a statement of the program, which outlives all values
struct Function {
  std::string_view name;  // a global function; a literal
};

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;  // shared: a copy of a value costs the same whatever it holds
  using Variant = std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const List>,
                               std::shared_ptr<const Dict>, Dict*, Loop, const Macro*,
                               Function>;  // Dict*: a namespace, which the interpreter owns

  Value() : v_(Undefined{}) {}
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && !std::is_same_v<std::remove_cvref_t<T>, std::string>)
      Value(T&& v)
      : v_(std::forward<T>(v)) {}
  Value(std::string text) : v_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}

  static Value list(std::vector<Value> items, bool tuple = false);  // throws where lists nest too deep
  static Value dict(std::vector<std::pair<std::string, Value>> entries);
  static Value undefined(std::string_view name) { return Undefined{std::string(name)}; }
  static Value from_json(const OrderedJson& json);

  template <class T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  const List* list() const {
    const auto* p = get<std::shared_ptr<const List>>();
    return p == nullptr ? nullptr : p->get();
  }
  const Dict* dict() const {
    const auto* p = get<std::shared_ptr<const Dict>>();
    return p == nullptr ? nullptr : p->get();
  }
  const std::string* string() const {
    const auto* p = get<Text>();
    return p == nullptr ? nullptr : p->get();
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  bool is_integer() const { return get<int64_t>() != nullptr || get<bool>() != nullptr; }
  bool is_number() const { return is_integer() || get<double>() != nullptr; }
  int64_t integer() const;  // of is_integer
  double number() const;    // of is_number
  int depth() const;
  // About the bytes that something that walks the whole value sees. Lists hold others without copying them, so that a
  // few statements make one that no walk comes to the end of: charge for a walk before it begins.
  size_t weight() const;

  bool truth() const;
  std::string text() const;  // str(x)
  std::string repr() const;
  std::string_view type_name() const;
  std::string json(int indent,
                   bool sort_keys) const;  // as Python's json.dumps without escapes for non-ASCII; indent < 0: one line

 private:
  Variant v_;
};

bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // throws where the values have no order

// Text as Python's: characters, not bytes.
size_t character_count(std::string_view text);
std::string repr_of(double number);

}  // namespace rlx::jinja
