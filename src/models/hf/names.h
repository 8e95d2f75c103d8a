// Where the weights that GGUF names stand in a Hugging Face file, and what conversion does to them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::models::hf {

enum class Change {
  kNone,
  kTransposed,     // matrices: GPT-2 keeps [in, out]
  kPlusOne,        // norms that the file keeps around 0
  kNegativeExp,    // A = -exp(A_log)
  kFlat,           // without its dims of 1: convolutions [channels, 1, kernel], vectors as matrices of one row
  kStacked,        // one tensor per expert, {e} is its number
  kSkipPositions,  // without the rows of positions that no token has
  kQkvOfGroups,    // rows of q, k and v out of those of q, k, v and z by head of keys
  kGateOfGroups,   // those of z
};

struct NameRow {
  std::string_view gguf;  // behind blk.N.; with its suffix where Hugging Face's has none, or another
  std::string_view hf;    // {i}: the layer. Under the model's prefix, or with ^ in front absolute
  Change change = Change::kNone;
};

struct Place {
  std::string name;  // without prefix unless `absolute`; {e} is still in it for kStacked
  bool absolute = false;
  Change change = Change::kNone;
};

// All places where a weight may stand, the usual ones first.
std::vector<Place> places_of(std::string_view model_type, const std::string& gguf_name);

// What names may begin with: models saved with a head keep the rest under a name of its own.
inline constexpr std::string_view kPrefixes[] = {
    "model.",   "",           "model.language_model.", "language_model.model.", "transformer.", "backbone.", "bert.",
    "roberta.", "distilbert."};

}  // namespace rlx::models::hf
