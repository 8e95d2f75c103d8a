#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace rlx::jinja {
namespace {

const std::string& as_string(const Value& value, std::string_view filter) {
  if (const Undefined* u = value.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
  require(value.string() != nullptr, "The filter '", filter, "' gets a value of type ", value.type_name(), ".");
  return *value.string();
}

// a.b.0: attributes of attributes.
Value attribute_path(Interpreter& in, Value value, std::string_view path, const Value* otherwise = nullptr) {
  while (true) {
    const size_t dot = path.find('.');
    const std::string part(path.substr(0, dot));
    int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = !part.empty() && parsed.ec == std::errc() && parsed.ptr == part.data() + part.size();
    value = number ? in.item(value, index) : in.attribute(value, part);
    if (otherwise != nullptr && value.is_undefined()) value = *otherwise;
    if (dot == std::string_view::npos) return value;
    path.remove_prefix(dot + 1);
  }
}

Arguments without_first(const Arguments& args, size_t count) {
  Arguments rest = args;
  rest.values.erase(rest.values.begin(),
                    rest.values.begin() + static_cast<ptrdiff_t>(std::min(count, rest.values.size())));
  return rest;
}

// select, reject and, for an attribute of each item, selectattr and rejectattr.
Value select(Interpreter& in, const Value& value, const Arguments& args, bool by_attribute, bool keep) {
  const size_t skip = by_attribute ? 1 : 0;
  const std::string path = by_attribute ? args.string(0, "attribute") : "";
  const Value* test = args.find(skip, "test");
  require(test == nullptr || test->string() != nullptr, "The name of a test is not a string.");
  const Arguments rest = without_first(args, skip + 1);
  std::vector<Value> out;
  for (const Value& item : in.iterate(value)) {
    in.charge(path.size() + rest.size() * 8);
    const Value subject = by_attribute ? attribute_path(in, item, path) : item;
    const bool holds = test == nullptr ? subject.truth() : in.call_test(*test->string(), subject, rest);
    if (holds == keep) out.push_back(item);
  }
  return in.checked(std::move(out));
}

Value map_filter(Interpreter& in, const Value& value, const Arguments& args) {
  std::vector<Value> out;
  const bool by_attribute = args.size() == 0 && args.find(0, "attribute") != nullptr;
  const Arguments rest = without_first(args, 1);
  for (const Value& item : in.iterate(value)) {
    if (by_attribute) {
      const std::string& path = args.string(0, "attribute");
      in.charge(path.size());
      out.push_back(attribute_path(in, item, path, args.find(1, "default")));
    } else {
      out.push_back(in.call_filter(args.string(0, "filter"), item, rest));
    }
  }
  return in.checked(std::move(out));
}

Value join(Interpreter& in, const Value& value, const Arguments& args) {
  const std::string between = args.string(0, "d", "");
  const std::string path = args.string(1, "attribute", "");
  std::string out;
  bool first = true;
  for (const Value& item : in.iterate(value)) {
    if (!std::exchange(first, false)) out += between;
    in.charge(path.size() + between.size());
    out += in.text_of(path.empty() ? item : attribute_path(in, item, path));
    require(out.size() < size_t{1} << 26, "The chat template makes a text that is too long.");
  }
  return in.checked(std::move(out));
}

Value sorted(Interpreter& in, const Value& value, const Arguments& args) {
  std::vector<Value> items = in.iterate(value);
  const bool reverse = args.get(0, "reverse", false).truth(), exact = args.get(1, "case_sensitive", false).truth();
  const std::string path = args.string(2, "attribute", "");
  std::vector<std::pair<Value, size_t>> keys;
  for (size_t i = 0; i < items.size(); ++i) {
    in.charge(path.size());
    Value key = path.empty() ? items[i] : attribute_path(in, items[i], path);
    in.charge(key.weight() * 16);  // it is compared about as often as the number of keys has bits
    if (key.string() != nullptr && !exact) key = text::lower(*key.string());
    keys.emplace_back(std::move(key), i);
  }
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> out;
  for (const auto& [key, i] : keys) out.push_back(items[i]);
  return in.checked(std::move(out));
}

Value dict_sorted(Interpreter& in, const Value& value, const Arguments& args) {
  require(value.dict() != nullptr, "The filter 'dictsort' gets a value of type ", value.type_name(), ".");
  const bool exact = args.get(0, "case_sensitive", false).truth(), by_value = args.string(1, "by", "key") == "value";
  const bool reverse = args.get(2, "reverse", false).truth();
  std::vector<Value> items;
  for (const Value& item : in.iterate(in.call_method(value, "items", {}))) items.push_back(item);
  in.charge(value.weight() * 16);
  const auto key = [&](const Value& item) {
    const Value& k = item.list()->items[by_value ? 1 : 0];
    return k.string() != nullptr && !exact ? Value(text::lower(*k.string())) : k;
  };
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    return reverse ? less(key(b), key(a)) : less(key(a), key(b));
  });
  return in.checked(std::move(items));
}

std::string indent(std::string_view text, std::string_view by, bool first, bool blank) {
  std::string out = first ? std::string(by) : "";
  bool start = true;
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!start) {
      out += '\n';
      if (!line.empty() || blank) out += by;
    }
    start = false;
    out += line;
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

Value indent_filter(const Value& value, const Arguments& args) {
  const Value* width = args.find(0, "width");
  std::string by(4, ' ');
  if (width != nullptr && width->string() != nullptr) {
    by = *width->string();
  } else if (width != nullptr) {
    const int64_t count = args.integer(0, "width", 4);
    require(count >= 0 && count <= 1000, "The filter 'indent' gets a width of ", count, ".");
    by.assign(static_cast<size_t>(count), ' ');
  }
  const std::string& text = as_string(value, "indent");
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  require(by.size() <= kLongestText / lines, "The filter 'indent' makes a text that is too long.");
  return indent(text, by, args.get(1, "first", false).truth(), args.get(2, "blank", false).truth());
}

Value to_integer(const Value& value, const Arguments& args) {
  const int64_t otherwise = args.integer(0, "default", 0);
  if (value.is_integer()) return value.integer();
  if (const double* d = value.get<double>())
    return std::isfinite(*d) && std::fabs(*d) < 9e18 ? static_cast<int64_t>(*d) : otherwise;
  if (value.string() == nullptr) return otherwise;
  const std::string_view text = text::strip(*value.string());
  double number = 0;
  int64_t whole = 0;
  const char* end = text.data() + text.size();
  const char* start = text.starts_with('+') ? text.data() + 1 : text.data();
  if (auto r = std::from_chars(start, end, whole); r.ec == std::errc() && r.ptr == end && !text.empty()) return whole;
  if (auto r = std::from_chars(start, end, number); r.ec == std::errc() && r.ptr == end && std::fabs(number) < 9e18)
    return static_cast<int64_t>(number);
  return otherwise;
}

Value to_float(const Value& value, const Arguments& args) {
  if (value.is_number()) return value.number();
  if (value.string() != nullptr) {
    const std::string_view text = text::strip(*value.string());
    double number = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), number);
    if (r.ec == std::errc() && r.ptr == text.data() + text.size() && !text.empty()) return number;
  }
  return args.get(0, "default", 0.0);
}

Value length(const Value& value) {
  if (const std::string* s = value.string()) return static_cast<int64_t>(character_count(*s));
  if (const List* l = value.list()) return static_cast<int64_t>(l->items.size());
  if (const Dict* d = value.dict()) return static_cast<int64_t>(d->entries.size());
  require(value.is_undefined(), "A value of type ", value.type_name(), " has no length.");
  return int64_t{0};
}

Value extreme(Interpreter& in, const Value& value, bool largest) {
  const std::vector<Value> items = in.iterate(value);
  if (items.empty()) return Value::undefined(largest ? "max" : "min");
  in.charge(value.weight());
  const Value* best = &items[0];
  for (const Value& item : items)
    if (largest ? less(*best, item) : less(item, *best)) best = &item;
  return *best;
}

Value rounded(const Value& value, const Arguments& args) {
  require(value.is_number(), "The filter 'round' gets a value of type ", value.type_name(), ".");
  const std::string method = args.string(1, "method", "common");
  const double scale = std::pow(10.0, static_cast<double>(args.integer(0, "precision", 0))),
               scaled = value.number() * scale;
  return (method == "ceil"    ? std::ceil(scaled)
          : method == "floor" ? std::floor(scaled)
                              : std::nearbyint(scaled)) /
         scale;
}

Value unique(Interpreter& in, const Value& value) {
  std::vector<Value> out;
  size_t weight = 0;
  for (const Value& item : in.iterate(value)) {
    in.charge(weight += item.weight());
    const auto folded = [](const Value& v) { return v.string() != nullptr ? Value(text::lower(*v.string())) : v; };
    const Value key = folded(item);
    if (std::none_of(out.begin(), out.end(), [&](const Value& v) { return equal(folded(v), key); }))
      out.push_back(item);
  }
  return in.checked(std::move(out));
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

Value sum(Interpreter& in, const Value& value, const Arguments& args) {
  const std::string path = args.string(0, "attribute", "");
  double total = 0;
  int64_t whole = 0;
  bool is_whole = true;
  for (const Value& item : in.iterate(value)) {
    in.charge(path.size());
    const Value number = path.empty() ? item : attribute_path(in, item, path);
    require(number.is_number(), "The filter 'sum' gets a value of type ", number.type_name(), ".");
    is_whole = is_whole && number.is_integer() &&
               !__builtin_add_overflow(whole, number.is_integer() ? number.integer() : 0, &whole);
    total += number.number();
  }
  return is_whole ? Value(whole) : Value(total);
}

}  // namespace

Value Interpreter::call_filter(const std::string& name, Value value, const Arguments& args) {
  charge(value.string() != nullptr ? value.string()->size() : 0);
  if (name == "default" || name == "d") {
    const bool missing = value.is_undefined() || (args.get(1, "boolean", false).truth() && !value.truth());
    return missing ? args.get(0, "default_value", "") : value;
  }
  if (name == "tojson") {
    const auto indent = static_cast<int>(std::clamp<int64_t>(args.integer(1, "indent", -1), -1, 40));
    charge(value.weight() * (1 + static_cast<size_t>(std::max(indent, 0) * value.depth()) / kLeastWeight));
    return checked(value.json(indent, args.get(3, "sort_keys", false).truth()));
  }
  if (name == "length" || name == "count") return length(value);
  if (name == "items") return value.is_undefined() ? checked(std::vector<Value>{}) : call_method(value, "items", {});
  if (name == "join") return join(*this, value, args);
  if (name == "list") return checked(iterate(value));
  if (name == "map") return map_filter(*this, value, args);
  if (name == "select") return select(*this, value, args, false, true);
  if (name == "reject") return select(*this, value, args, false, false);
  if (name == "selectattr") return select(*this, value, args, true, true);
  if (name == "rejectattr") return select(*this, value, args, true, false);
  if (name == "sort") return sorted(*this, value, args);
  if (name == "dictsort") return dict_sorted(*this, value, args);
  if (name == "unique") return unique(*this, value);
  if (name == "first" || name == "last") {
    if (const std::string* text = value.string(); text != nullptr && !text->empty()) {
      size_t at = 0;
      if (name == "last")
        for (at = text->size() - 1; at > 0 && (static_cast<unsigned char>((*text)[at]) & 0xC0) == 0x80;) --at;
      return text->substr(at, text::first_character(std::string_view(*text).substr(at)).size);
    }
    const std::vector<Value> items = iterate(value);
    return items.empty() ? Value::undefined(name) : name == "first" ? items.front() : items.back();
  }
  if (name == "reverse") {
    std::vector<Value> items = iterate(value);
    std::reverse(items.begin(), items.end());
    if (value.string() == nullptr) return checked(std::move(items));
    std::string out;
    for (const Value& item : items) out += *item.string();
    return checked(std::move(out));
  }
  if (name == "min" || name == "max") return extreme(*this, value, name == "max");
  if (name == "sum") return sum(*this, value, args);
  if (name == "int") return to_integer(value, args);
  if (name == "float") return to_float(value, args);
  if (name == "round") return rounded(value, args);
  if (name == "abs") {
    require(value.is_number(), "The filter 'abs' gets a value of type ", value.type_name(), ".");
    if (value.is_integer()) return value.integer() < 0 ? binary("-", int64_t{0}, value) : value;
    return std::fabs(value.number());
  }
  if (name == "safe") return value;
  if (name == "string") return checked(text_of(value));
  if (name == "indent") {
    const Value out = indent_filter(value, args);
    return checked(*out.string());
  }
  // Jinja's own filters on text take any value as its text.
  if (name == "trim") return call_method(text_of(value), "strip", args);
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize")
    return call_method(text_of(value), name, {});
  if (name == "replace") return call_method(text_of(value), "replace", args);
  if (name == "escape" || name == "e") return checked(escape_html(text_of(value)));
  fail(ErrorKind::kInvalid, str("The filter '", name, "' is not one that rlx knows."));
}

bool Interpreter::call_test(const std::string& name, const Value& value, const Arguments& args) {
  const auto argument = [&] { return args.get(0, "", None{}); };
  const auto whole = [&] {
    require(value.is_integer(), "The test '", name, "' gets a value of type ", value.type_name(), ".");
    return value.integer();
  };
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.string() != nullptr;
  if (name == "mapping") return value.dict() != nullptr;
  if (name == "sequence" || name == "iterable")
    return value.string() != nullptr || value.list() != nullptr || value.dict() != nullptr || value.is_undefined();
  if (name == "number") return value.is_number();
  if (name == "integer") return value.get<int64_t>() != nullptr;
  if (name == "float") return value.get<double>() != nullptr;
  if (name == "boolean") return value.get<bool>() != nullptr;
  if (name == "true") return value.get<bool>() != nullptr && *value.get<bool>();
  if (name == "false") return value.get<bool>() != nullptr && !*value.get<bool>();
  if (name == "callable") return value.get<const Macro*>() != nullptr || value.get<Function>() != nullptr;
  if (name == "odd") return whole() % 2 != 0;
  if (name == "even") return whole() % 2 == 0;
  if (name == "divisibleby") {
    const Value by = argument();
    require(by.is_integer() && by.integer() != 0 && by.integer() != -1,
            "The test 'divisibleby' gets no number to divide by.");
    return whole() % by.integer() == 0;
  }
  if (name == "lower") return call_method(text_of(value), "islower", {}).truth();
  if (name == "upper") return call_method(text_of(value), "isupper", {}).truth();
  if (name == "in") return contains(argument(), value);
  charge_compare(value, argument());
  if (name == "equalto" || name == "eq" || name == "sameas") return equal(value, argument());
  if (name == "ne") return !equal(value, argument());
  if (name == "lt" || name == "lessthan") return less(value, argument());
  if (name == "gt" || name == "greaterthan") return less(argument(), value);
  if (name == "le") return !less(argument(), value);
  if (name == "ge") return !less(value, argument());
  fail(ErrorKind::kInvalid, str("The test '", name, "' is not one that rlx knows."));
}

}  // namespace rlx::jinja
