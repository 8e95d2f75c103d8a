#include "import/onnx/ops/strings.h"

#include <locale.h>  // NOLINT: newlocale and towupper_l are POSIX
#include <wctype.h>

#include <algorithm>
#include <regex>
#include <set>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

bool is_strings(const OnnxNode& n, int64_t i) { return n.has(i) && n.item(i).kind == Item::Kind::kStrings; }

const Strings& strings_of(const OnnxNode& n, int64_t i) {
  require(is_strings(n, i), "Input ", i, " is not a tensor of strings.");
  return *n.item(i).strings;
}

Item strings_item(OnnxNode& n, Strings strings) { return n.importer().item(HostValue(std::move(strings))); }

namespace {

// A few nodes can ask for any number: strings that double.
constexpr int64_t kMaxStrings = 1 << 22;
constexpr size_t kMaxBytes = size_t{1} << 23;
constexpr size_t kMaxPattern = 1000;

// Calls `use(a's element, b's element)` for every element of the broadcast; its sizes.
template <class F>
std::vector<int64_t> for_each_pair(OnnxNode& n, const Strings& a, const Strings& b, F use) {
  const Shape shape = broadcast_shapes(Shape(a.sizes), Shape(b.sizes), n.symbols());
  const std::vector<int64_t> sizes = shape.sizes();
  const int64_t count = product(sizes);
  require(count <= kMaxStrings, "A tensor of ", count, " strings is too large.");
  const auto index = [&](const Strings& s, int64_t flat) {
    int64_t at = 0, stride = 1;
    const size_t skipped = sizes.size() - s.sizes.size();
    for (size_t axis = sizes.size(); axis-- > 0; flat /= sizes[axis]) {
      if (axis < skipped) break;
      const int64_t size = s.sizes[axis - skipped];
      if (size != 1) at += flat % sizes[axis] * stride;
      stride *= size;
    }
    return static_cast<size_t>(at);
  };
  for (int64_t i = 0; i < count; ++i) use(a.values[index(a, i)], b.values[index(b, i)]);
  return sizes;
}

Built string_concat(OnnxNode& n) {
  Strings y;
  size_t bytes = 0;
  y.sizes = for_each_pair(n, strings_of(n, 0), strings_of(n, 1), [&](const std::string& a, const std::string& b) {
    bytes += a.size() + b.size();
    require(bytes <= kMaxBytes, "The strings are more than ", kMaxBytes, " bytes.");
    y.values.push_back(a + b);
  });
  return strings_item(n, std::move(y));
}

// As Python's str.split: without a delimiter at runs of white space, none at the ends.
std::vector<std::string> split(const std::string& text, const std::string& delimiter, int64_t max_splits) {
  std::vector<std::string> parts;
  size_t at = 0;
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  if (delimiter.empty()) {
    for (;;) {
      at = text.find_first_not_of(kSpace, at);
      if (at == text.npos) return parts;
      size_t end = text.find_first_of(kSpace, at);
      if (static_cast<int64_t>(parts.size()) == max_splits) end = text.npos;
      if (end == text.npos) end = text.find_last_not_of(kSpace) + 1;
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
  }
  for (;;) {
    const size_t end = static_cast<int64_t>(parts.size()) == max_splits ? text.npos : text.find(delimiter, at);
    parts.push_back(text.substr(at, end - at));
    if (end == text.npos) return parts;
    at = end + delimiter.size();
  }
}

Built string_split(OnnxNode& n) {
  const Strings& x = strings_of(n, 0);
  const std::string delimiter = n.attr("delimiter", "");
  const int64_t max_splits = n.attr("maxsplit", -1);
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> counts;
  size_t longest = 0;
  for (const std::string& text : x.values) {
    rows.push_back(split(text, delimiter, max_splits));
    counts.push_back(static_cast<int64_t>(rows.back().size()));
    longest = std::max(longest, rows.back().size());
  }
  require(checked_mul(static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)) <= kMaxStrings, "A tensor of ",
          rows.size(), " times ", longest, " strings is too large.");
  Strings y{x.sizes, {}};
  y.sizes.push_back(static_cast<int64_t>(longest));
  for (std::vector<std::string>& row : rows) {
    row.resize(longest);  // filled up with empty strings
    y.values.insert(y.values.end(), row.begin(), row.end());
  }
  return std::vector<Item>{strings_item(n, std::move(y)), n.result(n.constant(Tensor::i64(x.sizes, counts)))};
}

// ---- StringNormalizer

// Code points of UTF-8 text one by one; bytes that are none are kept as they are.
std::string change_case(const std::string& text, bool upper) {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    const std::string piece = text.substr(i, length);
    i += piece.size();
    wint_t c = lead < 0x80 ? lead : lead & (0xFFU >> (length + 1));
    for (size_t k = 1; k < piece.size(); ++k) c = (c << 6) | (static_cast<unsigned char>(piece[k]) & 0x3FU);
    const bool plain = lead < 0x80;
    if (!plain && (piece.size() < 2 || locale == locale_t{})) {
      out += piece;
      continue;
    }
    if (plain) {
      c = upper ? static_cast<wint_t>(std::toupper(static_cast<int>(c)))
                : static_cast<wint_t>(std::tolower(static_cast<int>(c)));
    } else {
      c = upper ? towupper_l(c, locale) : towlower_l(c, locale);
    }
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      out += {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3F)),
              static_cast<char>(0x80 | ((c >> 6) & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  return out;
}

Built string_normalizer(OnnxNode& n) {
  const Strings& x = strings_of(n, 0);
  require(x.sizes.size() == 1 || (x.sizes.size() == 2 && x.sizes[0] == 1), "The strings have shape ", x.sizes,
          "; [C] or [1, C] is expected.");
  const std::string action = n.attr("case_change_action", "NONE");
  require(action == "NONE" || action == "LOWER" || action == "UPPER", "The case change '", action, "' is not known.");
  const bool sensitive = n.attr("is_case_sensitive", false);
  const auto folded = [&](const std::string& word) { return sensitive ? word : change_case(word, false); };
  std::set<std::string> stop;
  for (const std::string& word : n.attr("stopwords", std::vector<std::string>())) stop.insert(folded(word));
  Strings y{x.sizes, {}};
  for (const std::string& word : x.values)
    if (!stop.contains(folded(word)))
      y.values.push_back(action == "NONE" ? word : change_case(word, action == "UPPER"));
  if (y.values.empty()) y.values.emplace_back();  // an empty result is one empty string
  y.sizes.back() = static_cast<int64_t>(y.values.size());
  return strings_item(n, std::move(y));
}

// Patterns are written for RE2. What it shares with ECMAScript's syntax is taken; the rest is refused.
Built regex_full_match(OnnxNode& n) {
  const Strings& x = strings_of(n, 0);
  const std::string pattern = n.attr("pattern", "");
  for (const char* only_re2 :
       {"(?P", "(?i", "(?s", "(?m", "(?U", "(?-", "\\p", "\\P", "\\A", "\\z", "\\Q", "\\C", "\\a", "\\x{"})
    if (pattern.find(only_re2) != pattern.npos)
      n.unsupported(str("The pattern '", pattern, "' uses '", only_re2, "' of RE2's syntax, which is not supported."));
  if (pattern.size() > kMaxPattern)
    n.unsupported(str("A pattern of ", pattern.size(), " characters is longer than rlx takes (", kMaxPattern, ")."));
  std::vector<double> matches;
  try {
    // Without the usual matcher of libstdc++, whose stack grows with the text and whose time may double with each
    // character. RE2 has no references back either, which this one refuses.
#ifdef __GLIBCXX__
    const std::regex regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
    const std::regex regex(pattern, std::regex::ECMAScript);
#endif
    for (const std::string& text : x.values) matches.push_back(std::regex_match(text, regex) ? 1 : 0);
  } catch (const std::regex_error& e) {
    n.unsupported(str("The pattern '", pattern, "' is not one that rlx can match (", e.what(), ")."));
  }
  return n.constant(Tensor::from_doubles(DType::Bool, x.sizes, matches));
}

}  // namespace

Value strings_equal(OnnxNode& n) {
  std::vector<double> same;
  const std::vector<int64_t> sizes =
      for_each_pair(n, strings_of(n, 0), strings_of(n, 1),
                    [&](const std::string& a, const std::string& b) { same.push_back(a == b ? 1 : 0); });
  return n.constant(Tensor::from_doubles(DType::Bool, sizes, same));
}

Rows strings_rows() {
  return {
      {"RegexFullMatch", 20, regex_full_match},
      {"StringConcat", 20, string_concat},
      {"StringNormalizer", 10, string_normalizer},
      {"StringSplit", 20, string_split},
  };
}

}  // namespace rlx::onnx
