// A text or a regular expression, as tokenizer.json names what to split at or to replace.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_reader.h"
#include "text/regex.h"

namespace rlx::text {

// A part of a text: a match, or what lies between two.
struct Part {
  Match at;
  bool match = false;
};

// Where the matches go when a text is split.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
SplitBehavior read_behavior(const JsonReader& json);

class Pattern {
 public:
  explicit Pattern(const JsonReader& json);  // {"String": "▁"} or {"Regex": "\\s+"}
  explicit Pattern(std::string_view regex) : regex_(regex) {}

  std::vector<Part> parts(std::string_view text) const;
  std::string replace(std::string_view text, std::string_view content) const;

 private:
  Regex regex_;
};

// The parts of a text where each character that `is_match` accepts is a match.
std::vector<Part> character_parts(std::string_view text, const std::function<bool(char32_t)>& is_match);

// The pieces that remain, in order; pieces may be empty.
std::vector<Match> split(std::vector<Part> parts, SplitBehavior behavior, bool invert = false);

}  // namespace rlx::text
