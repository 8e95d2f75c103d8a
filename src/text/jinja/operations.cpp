// Arithmetic, access and slices of a template's values.
#include <cmath>

#include "rlx/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace rlx::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (const Undefined* u = v->get<Undefined>()) fail(ErrorKind::kInvalid, str("'", u->name, "' is undefined."));
  fail(ErrorKind::kInvalid,
       str("'", op, "' does not work with values of type ", a.type_name(), " and ", b.type_name(), "."));
}

void require_no_overflow(bool overflow) { require(!overflow, "A number is too large."); }

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    require_no_overflow(__builtin_mul_overflow(result, base, &result));
    if (result == 0 || (result == 1 && base == 1)) break;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

Value integer_operation(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+" || op == "-" || op == "*") {
    require_no_overflow(op == "+"   ? __builtin_add_overflow(a, b, &result)
                        : op == "-" ? __builtin_sub_overflow(a, b, &result)
                                    : __builtin_mul_overflow(a, b, &result));
    return result;
  }
  if (op == "**")
    return b < 0 ? Value(std::pow(static_cast<double>(a), static_cast<double>(b))) : Value(integer_power(a, b));
  require(b != 0, "A number is divided by zero.");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  require(b != -1 || a != INT64_MIN, "A number is too large.");
  const bool down = a % b != 0 && (a < 0) != (b < 0);  // Python rounds down, and the rest has the divisor's sign
  if (op == "//") return a / b - (down ? 1 : 0);
  return a % b + (down ? b : 0);
}

Value float_operation(const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  require(b != 0, "A number is divided by zero.");
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  return a - b * std::floor(a / b);
}

// Where a slice starts and stops, as Python bounds it.
struct Bounds {
  int64_t start, stop, step;
};
Bounds slice_bounds(int64_t size, const Value* start, const Value* stop, const Value* step) {
  const auto number = [](const Value* v, int64_t otherwise) {
    if (v == nullptr || v->is_none()) return otherwise;
    require(v->is_integer(), "A bound of a slice is not an integer.");
    return v->integer();
  };
  const int64_t by = number(step, 1);
  require(by != 0 && by != INT64_MIN, "The step of a slice is not a number other than zero.");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto bound = [&](int64_t at) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::min(std::max(at, low), high);
  };
  const bool has_start = start != nullptr && !start->is_none(), has_stop = stop != nullptr && !stop->is_none();
  return {has_start ? bound(number(start, 0)) : (by > 0 ? low : high),
          has_stop ? bound(number(stop, 0)) : (by > 0 ? high : low), by};
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t pos = 0; pos < text.size();) {
    const size_t size = text::first_character(text.substr(pos)).size;
    out.push_back(text.substr(pos, size));
    pos += size;
  }
  return out;
}

int64_t index_in(const Value& index, size_t size) {
  int64_t at = index.integer();
  if (at < 0) at += static_cast<int64_t>(size);
  return at >= 0 && at < static_cast<int64_t>(size) ? at : -1;
}

Value loop_attribute(const Loop& loop, const std::string& name) {
  const auto index = static_cast<int64_t>(loop.index), count = static_cast<int64_t>(loop.items->items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return count - index;
  if (name == "revindex0") return count - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == count;
  if (name == "length") return count;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  if (name == "previtem") return index > 0 ? loop.items->items[loop.index - 1] : Value::undefined("loop.previtem");
  if (name == "nextitem")
    return index + 1 < count ? loop.items->items[loop.index + 1] : Value::undefined("loop.nextitem");
  return Value::undefined("loop." + name);
}

}  // namespace

Value Interpreter::binary(const std::string& op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return integer_operation(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return float_operation(op, a.number(), b.number());
  if (op == "+") {
    if (a.string() != nullptr && b.string() != nullptr) return checked(*a.string() + *b.string());
    if (a.list() != nullptr && b.list() != nullptr) {
      std::vector<Value> items = a.list()->items;
      items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
      return checked(std::move(items));
    }
  }
  if (op == "*" && (a.is_integer() || b.is_integer())) {
    const Value& many = a.is_integer() ? b : a;
    const int64_t times = std::max<int64_t>(0, (a.is_integer() ? a : b).integer());
    const std::string* text = many.string();
    const List* list = many.list();
    if (text != nullptr || list != nullptr) {
      const size_t size = text != nullptr ? text->size() : list->items.size();
      require(size == 0 || static_cast<uint64_t>(times) <= (text != nullptr ? kLongestText : kLongestList) / size,
              "A text or list is repeated too often.");
      std::string repeated;
      std::vector<Value> items;
      for (int64_t i = 0; i < times && size > 0; ++i) {
        if (text != nullptr)
          repeated += *text;
        else
          items.insert(items.end(), list->items.begin(), list->items.end());
      }
      return text != nullptr ? checked(std::move(repeated)) : checked(std::move(items));
    }
  }
  fail_operands(op, a, b);
}

Value Interpreter::evaluate_slice(const Expr& e) {
  const Value object = evaluate(*e.args[0]);
  Value bounds[3];
  const Value* given[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    if (e.args[i + 1] == nullptr) continue;
    bounds[i] = evaluate(*e.args[i + 1]);
    given[i] = &bounds[i];
  }
  const auto walk = [&](size_t size, auto&& visit) {
    const Bounds b = slice_bounds(static_cast<int64_t>(size), given[0], given[1], given[2]);
    for (int64_t i = b.start; b.step > 0 ? i < b.stop : i > b.stop;) {
      visit(static_cast<size_t>(i));
      if (__builtin_add_overflow(i, b.step, &i)) break;
    }
  };
  if (const std::string* text = object.string()) {
    charge(text->size() * 8);
    const std::vector<std::string_view> all = characters(*text);
    std::string out;
    walk(all.size(), [&](size_t i) { out += all[i]; });
    return checked(std::move(out));
  }
  const List* list = object.list();
  if (const Undefined* u = object.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
  require(list != nullptr, "A value of type ", object.type_name(), " cannot be sliced.");
  std::vector<Value> out;
  walk(list->items.size(), [&](size_t i) { out.push_back(list->items[i]); });
  return checked(std::move(out));
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (const Undefined* u = object.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
  const Value* found = nullptr;
  if (const Dict* dict = object.dict()) {
    charge(dict->entries.size() * 8);
    found = dict->find(name);
  }
  if (Dict* const* space = object.get<Dict*>()) found = (*space)->find(name);
  if (const Loop* loop = object.get<Loop>()) return loop_attribute(*loop, name);
  return found != nullptr ? *found : Value::undefined(str(object.type_name(), ".", name));
}

Value Interpreter::item(const Value& object, const Value& index) {
  if (index.string() != nullptr) return attribute(object, *index.string());
  if (const Undefined* u = object.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
  if (!index.is_integer()) return Value::undefined("item");
  if (const List* list = object.list()) {
    const int64_t at = index_in(index, list->items.size());
    return at < 0 ? Value::undefined("item") : list->items[static_cast<size_t>(at)];
  }
  if (const std::string* text = object.string()) {
    charge(text->size() * 8);
    const std::vector<std::string_view> all = characters(*text);
    const int64_t at = index_in(index, all.size());
    return at < 0 ? Value::undefined("item") : Value(std::string(all[static_cast<size_t>(at)]));
  }
  return Value::undefined("item");
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  std::vector<Value> items;
  if (const List* list = value.list()) {
    items = list->items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (const std::string* text = value.string()) {
    require(character_count(*text) <= kLongestList, "A text of more than ", kLongestList, " characters is iterated.");
    for (const std::string_view c : characters(*text)) items.push_back(std::string(c));
  } else {
    require(value.is_undefined(), "A value of type ", value.type_name(), " cannot be iterated.");
  }
  charge(items.size() * 8);
  return items;
}

}  // namespace rlx::jinja
