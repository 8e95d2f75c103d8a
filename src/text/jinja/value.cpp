#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::jinja {

constexpr int kDeepest = 64;

// Beyond any limit, and sums of them are still numbers.
static size_t bounded(size_t weight) { return std::min(weight, size_t{1} << 40); }

const Value* Dict::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

void Dict::set(std::string_view key, Value value) {
  depth = std::max(depth, value.depth() + 1);
  weight = bounded(weight + key.size() + value.weight() + 2 * entries.size());  // a key is looked for among all
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
  if (found == entries.end())
    entries.emplace_back(std::string(key), std::move(value));
  else
    found->second = std::move(value);
}

static void require_shallow(int depth) {
  require(depth <= kDeepest, "A value is nested more than ", kDeepest, " deep.");
}

Value Value::list(std::vector<Value> items, bool tuple) {
  auto made = std::make_shared<List>();
  made->tuple = tuple;
  for (const Value& item : items) {
    made->depth = std::max(made->depth, item.depth() + 1);
    made->weight = bounded(made->weight + item.weight());
  }
  require_shallow(made->depth);
  made->items = std::move(items);
  return std::shared_ptr<const List>(std::move(made));
}

Value Value::dict(std::vector<std::pair<std::string, Value>> entries) {
  auto made = std::make_shared<Dict>();
  for (auto& [key, value] : entries) made->set(key, std::move(value));
  require_shallow(made->depth);
  return std::shared_ptr<const Dict>(std::move(made));
}

static Value from_json_at(const OrderedJson& json, int depth) {
  require_shallow(depth);
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    std::vector<Value> items;
    for (const OrderedJson& item : json) items.push_back(from_json_at(item, depth + 1));
    return Value::list(std::move(items));
  }
  auto made = std::make_shared<Dict>();  // keys are unique already
  for (const auto& [key, value] : json.items()) {
    made->entries.emplace_back(key, from_json_at(value, depth + 1));
    const Value& added = made->entries.back().second;
    made->depth = std::max(made->depth, added.depth() + 1);
    made->weight = bounded(made->weight + key.size() + added.weight() + 2 * made->entries.size());
  }
  return std::shared_ptr<const Dict>(std::move(made));
}

Value Value::from_json(const OrderedJson& json) { return from_json_at(json, 0); }

int64_t Value::integer() const {
  if (const bool* b = get<bool>()) return *b ? 1 : 0;
  return *get<int64_t>();
}

double Value::number() const {
  if (const double* d = get<double>()) return *d;
  return static_cast<double>(integer());
}

int Value::depth() const {
  if (const List* l = list()) return l->depth;
  if (const Dict* d = dict()) return d->depth;
  return 0;
}

size_t Value::weight() const {
  if (const std::string* s = string()) return kLeastWeight + s->size();
  if (const List* l = list()) return l->weight;
  if (const Dict* d = dict()) return d->weight;
  return kLeastWeight;
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_integer()) return integer() != 0;
  if (const double* d = get<double>()) return *d != 0;
  if (const std::string* s = string()) return !s->empty();
  if (const List* l = list()) return !l->items.empty();
  if (const Dict* d = dict()) return !d->entries.empty();
  return true;
}

std::string repr_of(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char digits[64];
  const double size = std::fabs(number);
  const bool plain = number == 0 || (size >= 1e-4 && size < 1e16);  // where Python writes no exponent
  const auto end = std::to_chars(digits, digits + sizeof(digits), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(digits, end.ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

static std::string repr_of(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += str("\\x", "0123456789abcdef"[static_cast<unsigned char>(c) >> 4], "0123456789abcdef"[c & 15]);
    else
      out += c;
  }
  return out += quote;
}

std::string Value::repr() const {
  if (const std::string* s = string()) return repr_of(*s);
  if (const List* l = list()) {
    std::string out = l->tuple ? "(" : "[";
    for (const Value& item : l->items) out += (out.size() > 1 ? ", " : "") + item.repr();
    if (l->tuple && l->items.size() == 1) out += ',';
    return out + (l->tuple ? ")" : "]");
  }
  if (const Dict* d = dict()) {
    std::string out = "{";
    for (const auto& [key, value] : d->entries)
      out += (out.size() > 1 ? ", " : "") + repr_of(key) + ": " + value.repr();
    return out + "}";
  }
  if (is_undefined()) return "Undefined";
  return text();
}

std::string Value::text() const {
  if (is_undefined()) return "";
  if (is_none()) return "None";
  if (const bool* b = get<bool>()) return *b ? "True" : "False";
  if (const int64_t* i = get<int64_t>()) return std::to_string(*i);
  if (const double* d = get<double>()) return repr_of(*d);
  if (const std::string* s = string()) return *s;
  if (list() != nullptr || dict() != nullptr) return repr();
  return str("<", type_name(), ">");
}

std::string_view Value::type_name() const {
  static constexpr std::string_view kNames[] = {"undefined", "None", "boolean",   "integer", "float", "string",
                                                "list",      "dict", "namespace", "loop",    "macro", "function"};
  return kNames[v_.index()];
}

static void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += str("\\u00", "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]);
        else
          out += c;
    }
  }
  out += '"';
}

static void append_json(std::string& out, const Value& value, int indent, bool sort_keys, int level) {
  const auto new_line = [&](int at) {
    if (indent >= 0) out += '\n', out.append(static_cast<size_t>(indent) * static_cast<size_t>(at), ' ');
  };
  const std::string_view comma = indent >= 0 ? "," : ", ";
  if (value.is_none()) {
    out += "null";
  } else if (const bool* b = value.get<bool>()) {
    out += *b ? "true" : "false";
  } else if (value.is_number()) {
    const double* d = value.get<double>();
    out += d != nullptr && std::isnan(*d)   ? "NaN"
           : d != nullptr && std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity")
                                            : value.text();
  } else if (const std::string* s = value.string()) {
    append_json_string(out, *s);
  } else if (const List* l = value.list()) {
    out += '[';
    for (size_t i = 0; i < l->items.size(); ++i) {
      if (i > 0) out += comma;
      new_line(level + 1);
      append_json(out, l->items[i], indent, sort_keys, level + 1);
    }
    if (!l->items.empty()) new_line(level);
    out += ']';
  } else if (const Dict* d = value.dict()) {
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : d->entries) entries.push_back(&entry);
    if (sort_keys)
      std::sort(entries.begin(), entries.end(), [](const auto* x, const auto* y) { return x->first < y->first; });
    out += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out += comma;
      new_line(level + 1);
      append_json_string(out, entries[i]->first);
      out += ": ";
      append_json(out, entries[i]->second, indent, sort_keys, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out += '}';
  } else {
    fail(ErrorKind::kInvalid, str("A value of type ", value.type_name(), " cannot be written as JSON."));
  }
}

std::string Value::json(int indent, bool sort_keys) const {
  std::string out;
  append_json(out, *this, indent, sort_keys, 0);
  return out;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  if (a.is_none() || a.is_undefined()) return a.is_none() ? b.is_none() : b.is_undefined();
  if (a.string() != nullptr) return b.string() != nullptr && *a.string() == *b.string();
  if (a.list() != nullptr && b.list() != nullptr)
    return std::equal(a.list()->items.begin(), a.list()->items.end(), b.list()->items.begin(), b.list()->items.end(),
                      equal);
  if (a.dict() != nullptr && b.dict() != nullptr) {
    const auto& entries = a.dict()->entries;
    return entries.size() == b.dict()->entries.size() &&
           std::all_of(entries.begin(), entries.end(), [&](const auto& e) {
             const Value* other = b.dict()->find(e.first);
             return other != nullptr && equal(e.second, *other);
           });
  }
  return false;
}

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() < b.integer() : a.number() < b.number();
  if (a.string() != nullptr && b.string() != nullptr) return *a.string() < *b.string();
  if (a.list() != nullptr && b.list() != nullptr)
    return std::lexicographical_compare(a.list()->items.begin(), a.list()->items.end(), b.list()->items.begin(),
                                        b.list()->items.end(), less);
  fail(ErrorKind::kInvalid, str("Values of type ", a.type_name(), " and ", b.type_name(), " have no order."));
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace rlx::jinja
