// Global functions and the methods of strings, dictionaries and lists.
#include <algorithm>
#include <ctime>

#include "rlx/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace rlx::jinja {

const Value* Arguments::find(size_t index, std::string_view name) const {
  if (index < values.size()) return &values[index];
  const auto found = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == name; });
  return found == named.end() ? nullptr : &found->second;
}

Value Arguments::get(size_t index, std::string_view name, Value otherwise) const {
  const Value* value = find(index, name);
  return value == nullptr ? otherwise : *value;
}

const std::string& Arguments::string(size_t index, std::string_view name) const {
  const Value* value = find(index, name);
  require(value != nullptr && value->string() != nullptr, "The argument '", name, "' is not a string.");
  return *value->string();
}

std::string Arguments::string(size_t index, std::string_view name, std::string_view otherwise) const {
  const Value* value = find(index, name);
  return value == nullptr || value->is_none() ? std::string(otherwise) : string(index, name);
}

int64_t Arguments::integer(size_t index, std::string_view name, int64_t otherwise) const {
  const Value* value = find(index, name);
  if (value == nullptr || value->is_none()) return otherwise;
  require(value->is_integer(), "The argument '", name, "' is not an integer.");
  return value->integer();
}

namespace {

Value range(Interpreter& in, const Arguments& args) {
  const int64_t first = args.integer(0, "start", 0);
  const int64_t start = args.size() > 1 ? first : 0, stop = args.size() > 1 ? args.integer(1, "stop", 0) : first,
                step = args.integer(2, "step", 1);
  require(step != 0, "The step of a range is zero.");
  constexpr size_t kMost = 100'000;
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    items.push_back(i);
    require(items.size() <= kMost, "A range has more than ", kMost, " numbers.");
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return in.checked(std::move(items));
}

Value raise_exception(Interpreter& in, const Arguments& args) {
  fail(ErrorKind::kInvalid, str("The chat template refuses the messages: ", in.text_of(args.get(0, "message", ""))));
}

Value strftime_now(Interpreter& in, const Arguments& args) {
  const std::string format = args.string(0, "format");
  const std::time_t now = in.now() != 0 ? static_cast<std::time_t>(in.now()) : std::time(nullptr);
  std::tm parts{};
  if (in.now() != 0)
    gmtime_r(&now, &parts);
  else
    localtime_r(&now, &parts);
  char text[512];
  return std::string(text, format.size() > 100 ? 0 : std::strftime(text, sizeof(text), format.c_str(), &parts));
}

Value make_dict(Interpreter& in, const Arguments& args) {
  std::vector<std::pair<std::string, Value>> entries;
  if (const Value* from = args.find(0, ""); from != nullptr && from->dict() != nullptr) {
    in.charge(from->weight());
    entries = from->dict()->entries;
  }
  for (const auto& [name, value] : args.named) entries.emplace_back(name, value);
  return Value::dict(std::move(entries));
}

// Whether c is one of the characters that strip takes: white space where none are given.
bool strips(char32_t c, const std::u32string& which, bool given) {
  return given ? which.find(c) != std::u32string::npos : text::is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

std::string strip_method(const std::string& source, bool left, bool right, const Arguments& args) {
  std::u32string all, which;
  for (size_t pos = 0; pos < source.size();) all += text::next_character(source, pos);
  const std::string chars = args.string(0, "chars", "");
  for (size_t pos = 0; pos < chars.size();) which += text::next_character(chars, pos);
  const bool given = args.find(0, "chars") != nullptr && !args.find(0, "chars")->is_none();
  size_t start = 0, end = all.size();
  while (left && start < end && strips(all[start], which, given)) ++start;
  while (right && end > start && strips(all[end - 1], which, given)) --end;
  std::string out;
  for (size_t i = start; i < end; ++i) text::append_utf8(out, all[i]);
  return out;
}

void add_part(std::vector<Value>& parts, std::string_view part) {
  require(parts.size() < kLongestList, "A text is split into more than ", kLongestList, " parts.");
  parts.push_back(std::string(part));
}

std::vector<Value> split_words(std::string_view text, int64_t most) {
  std::vector<Value> parts;
  for (text = text::strip_left(text); !text.empty(); text = text::strip_left(text)) {
    size_t end = 0;
    while (end < text.size() && !text::is_white_space(text::first_character(text.substr(end)).code))
      end += text::first_character(text.substr(end)).size;
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) end = text.size();
    add_part(parts, text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<Value> split_method(Interpreter& in, std::string_view text, const Arguments& args, bool from_right) {
  const int64_t most = args.integer(1, "maxsplit", -1);
  const Value* given = args.find(0, "sep");
  if (given == nullptr || given->is_none()) return split_words(text, from_right ? -1 : most);
  const std::string sep = args.string(0, "sep");
  require(!sep.empty(), "A string is split at an empty one.");
  in.charge_search(text, sep);
  std::vector<Value> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_right ? text.rfind(sep) : text.find(sep);
    if (at == std::string_view::npos) break;
    add_part(parts, from_right ? text.substr(at + sep.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + sep.size());
  }
  parts.push_back(std::string(text));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(std::string_view text) {
  std::vector<Value> lines;
  while (!text.empty()) {
    const size_t end = text.find_first_of("\r\n");
    add_part(lines, text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  return lines;
}

std::string replace_some(std::string_view text, std::string_view from, std::string_view to, int64_t most) {
  std::string out;
  if (from.empty()) {  // between all characters, as Python does
    for (size_t pos = 0; most != 0 && pos <= text.size(); --most) {
      out += to;
      if (pos == text.size()) return out;
      const size_t size = text::first_character(text.substr(pos)).size;
      out += text.substr(pos, size);
      pos += size;
      if (most == 1) return out += text.substr(pos);
    }
    return out.empty() ? std::string(text) : out;
  }
  for (size_t at; most != 0 && (at = text.find(from)) != std::string_view::npos; --most) {
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

bool matches_any(const Arguments& args, auto&& matches) {  // a string, or a list of them
  const Value* what = args.find(0, "prefix");
  require(what != nullptr && (what->string() != nullptr || what->list() != nullptr),
          "The argument 'prefix' is not a string.");
  if (what->string() != nullptr) return matches(*what->string());
  return std::any_of(what->list()->items.begin(), what->list()->items.end(),
                     [&](const Value& v) { return v.string() != nullptr && matches(*v.string()); });
}

bool all_characters(std::string_view text, auto&& is) {
  for (size_t pos = 0; pos < text.size();)
    if (!is(text::next_character(text, pos))) return false;
  return !text.empty();
}

// Each word with a capital (title), or the first character alone.
std::string capitals(std::string_view source, bool every_word) {
  std::string out;
  bool start = true;
  for (size_t pos = 0; pos < source.size();) {
    const std::string c = text::to_utf8(text::next_character(source, pos));
    const std::string upper = text::upper(c), lower = text::lower(c);
    out += start ? upper : lower;
    start = every_word && upper == lower;
  }
  return out;
}

Value string_method(Interpreter& in, const std::string& s, const std::string& name, const Arguments& args) {
  in.charge(s.size() * 4);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    in.charge(s.size() * (args.string(0, "chars", "").size() / 4));
    return strip_method(s, name != "rstrip", name != "lstrip", args);
  }
  if (name == "split") return in.checked(split_method(in, s, args, false));
  if (name == "rsplit") return in.checked(split_method(in, s, args, true));
  if (name == "splitlines") return in.checked(split_lines(s));
  if (name == "startswith" || name == "endswith") in.charge(args.get(0, "prefix", "").weight());
  if (name == "startswith") return matches_any(args, [&](std::string_view p) { return s.starts_with(p); });
  if (name == "endswith") return matches_any(args, [&](std::string_view p) { return s.ends_with(p); });
  if (name == "upper") return text::upper(s);
  if (name == "lower") return text::lower(s);
  if (name == "title" || name == "capitalize") {
    in.charge(s.size() * 60);  // each character alone
    return capitals(s, name == "title");
  }
  if (name == "removeprefix")
    return s.starts_with(args.string(0, "prefix")) ? s.substr(args.string(0, "prefix").size()) : s;
  if (name == "removesuffix")
    return s.ends_with(args.string(0, "suffix")) ? s.substr(0, s.size() - args.string(0, "suffix").size()) : s;
  if (name == "isdigit" || name == "isnumeric") return all_characters(s, text::is_numeric);
  if (name == "isspace") return all_characters(s, text::is_white_space);
  if (name == "isupper") return s == text::upper(s) && s != text::lower(s);
  if (name == "islower") return s == text::lower(s) && s != text::upper(s);
  if (name == "isalpha") return all_characters(s, [](char32_t c) { return text::is_letter(c); });
  if (name == "isalnum") return all_characters(s, [](char32_t c) { return text::is_letter(c) || text::is_numeric(c); });
  if (name == "replace") {
    const std::string from = args.string(0, "old"), to = args.string(1, "new");
    in.charge_search(s, from);
    in.charge(s.size() / std::max<size_t>(from.size(), 1) * to.size());
    return in.checked(replace_some(s, from, to, args.integer(2, "count", -1)));
  }
  if (name == "find" || name == "rfind" || name == "index") {
    in.charge_search(s, args.string(0, "sub"));
    const size_t at = name == "rfind" ? s.rfind(args.string(0, "sub")) : s.find(args.string(0, "sub"));
    require(at != std::string::npos || name != "index", "A string does not have the one that is looked for.");
    return at == std::string::npos ? int64_t{-1}
                                   : static_cast<int64_t>(character_count(std::string_view(s).substr(0, at)));
  }
  if (name == "count") {
    const std::string sub = args.string(0, "sub");
    if (sub.empty()) return static_cast<int64_t>(character_count(s)) + 1;
    in.charge_search(s, sub);
    int64_t count = 0;
    for (size_t at = 0; (at = s.find(sub, at)) != std::string::npos; at += sub.size()) ++count;
    return count;
  }
  if (name == "join") {
    std::string out;
    const Value* items = args.find(0, "iterable");
    require(items != nullptr, "'join' has nothing to join.");
    bool first = true;
    for (const Value& item : in.iterate(*items)) {
      require(item.string() != nullptr, "'join' gets a value of type ", item.type_name(), ".");
      if (!std::exchange(first, false)) out += s;
      in.charge(s.size() + item.weight());
      out += *item.string();
      require(out.size() < size_t{1} << 26, "The chat template makes a text that is too long.");
    }
    return in.checked(std::move(out));
  }
  fail(ErrorKind::kInvalid, str("A string has no method '", name, "'."));
}

std::vector<Value> dict_items(const Dict& dict) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    std::vector<Value> pair;
    pair.push_back(key);
    pair.push_back(value);
    items.push_back(Value::list(std::move(pair), true));
  }
  return items;
}

Value dict_method(Interpreter& in, const Value& object, const Dict& d, const std::string& name, const Arguments& args) {
  if (name == "items") return in.checked(dict_items(d));
  if (name == "get") {
    const Value* found = args.find(0, "key") != nullptr && args.find(0, "key")->string() != nullptr
                             ? d.find(*args.find(0, "key")->string())
                             : nullptr;
    return found != nullptr ? *found : args.get(1, "default", None{});
  }
  if (name == "copy") return object;
  if (name == "keys" || name == "values") {
    std::vector<Value> items;
    for (const auto& [key, value] : d.entries) items.push_back(name == "keys" ? Value(key) : value);
    return in.checked(std::move(items));
  }
  fail(ErrorKind::kInvalid, str("A dictionary has no method '", name, "' that a template may call."));
}

}  // namespace

Value Interpreter::make_namespace(const Arguments& args) {
  constexpr size_t kMost = 10'000;
  require(namespaces_.size() < kMost, "The chat template makes more than ", kMost, " namespaces.");
  namespaces_.emplace_back();
  if (const Value* from = args.find(0, ""); from != nullptr && from->dict() != nullptr) {
    charge(from->weight());
    namespaces_.back() = *from->dict();
  }
  for (const auto& [name, value] : args.named) namespaces_.back().set(name, value);
  return &namespaces_.back();
}

GlobalFunction find_function(std::string_view name) {
  if (name == "range") return range;
  if (name == "namespace") return [](Interpreter& in, const Arguments& args) { return in.make_namespace(args); };
  if (name == "dict") return make_dict;
  if (name == "raise_exception") return raise_exception;
  if (name == "strftime_now") return strftime_now;
  return nullptr;
}

Value Interpreter::call_method(const Value& object, const std::string& name, const Arguments& args) {
  if (const std::string* s = object.string()) return string_method(*this, *s, name, args);
  if (const Dict* d = object.dict()) return dict_method(*this, object, *d, name, args);
  if (const List* l = object.list()) {
    if (name == "copy") return object;
    if (name == "count" || name == "index") {
      const Value what = args.get(0, "value", None{});
      charge(object.weight());
      const auto is = [&](const Value& v) { return equal(v, what); };
      if (name == "count") return static_cast<int64_t>(std::count_if(l->items.begin(), l->items.end(), is));
      const auto found = std::find_if(l->items.begin(), l->items.end(), is);
      require(found != l->items.end(), "A list does not have the value that is looked for.");
      return static_cast<int64_t>(found - l->items.begin());
    }
    fail(ErrorKind::kInvalid, str("A list has no method '", name, "' that a template may call."));
  }
  if (const Loop* loop = object.get<Loop>(); loop != nullptr && name == "cycle") {
    require(args.size() > 0, "'loop.cycle' has nothing to choose from.");
    return args.values[loop->index % args.size()];
  }
  if (const Undefined* u = object.get<Undefined>()) require(false, "'", u->name, "' is undefined.");
  fail(ErrorKind::kInvalid, str("A value of type ", object.type_name(), " has no method '", name, "'."));
}

}  // namespace rlx::jinja
