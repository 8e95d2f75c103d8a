#include "text/pattern.h"

#include <algorithm>

#include "text/unicode.h"

namespace rlx::text {

static std::string read_regex(const JsonReader& json) {
  if (json.has("String")) return escape_regex(json.at("String").string());
  return json.at("Regex").string();
}

Pattern::Pattern(const JsonReader& json) : regex_(read_regex(json)) {}

SplitBehavior read_behavior(const JsonReader& json) {
  const std::string name = json.string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  fail(ErrorKind::kInvalid, str("'", json.path(), "' ('", name, "') is not a way to split."));
}

std::vector<Part> Pattern::parts(std::string_view text) const {
  std::vector<Part> parts;
  size_t last = 0;
  for (const Match& match : regex_.matches(text)) {
    if (match.start > last) parts.push_back({{last, match.start}, false});
    parts.push_back({match, true});
    last = match.end;
  }
  if (last < text.size()) parts.push_back({{last, text.size()}, false});
  return parts;
}

std::string Pattern::replace(std::string_view text, std::string_view content) const {
  std::string out;
  size_t last = 0;
  for (const Match& match : regex_.matches(text)) {
    out += text.substr(last, match.start - last);
    out += content;
    last = match.end;
  }
  return out += text.substr(last);
}

std::vector<Part> character_parts(std::string_view text, const std::function<bool(char32_t)>& is_match) {
  std::vector<Part> parts;
  size_t last = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    if (!is_match(next_character(text, pos))) continue;
    if (start > last) parts.push_back({{last, start}, false});
    parts.push_back({{start, pos}, true});
    last = pos;
  }
  if (last < text.size()) parts.push_back({{last, text.size()}, false});
  return parts;
}

std::vector<Match> split(std::vector<Part> parts, SplitBehavior behavior, bool invert) {
  std::vector<Match> pieces;
  if (invert)
    for (Part& part : parts) part.match = !part.match;
  bool last_matched = false;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(parts.begin(), parts.end());
  for (const Part& part : parts) {
    bool merge = false;
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (part.match) continue;
        break;
      case SplitBehavior::kIsolated: break;
      case SplitBehavior::kContiguous: merge = part.match == last_matched; break;
      case SplitBehavior::kMergedWithPrevious:
      case SplitBehavior::kMergedWithNext: merge = part.match && !last_matched; break;
    }
    last_matched = part.match;
    if (!merge || pieces.empty())
      pieces.push_back(part.at);
    else if (backwards)
      pieces.back().start = part.at.start;
    else
      pieces.back().end = part.at.end;
  }
  if (backwards) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace rlx::text
