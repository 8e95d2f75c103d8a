#include "text/vocabulary.h"

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::text {

void Vocabulary::add(std::string_view piece, int64_t id) {
  constexpr int64_t kMost = int64_t{1} << 24;  // fifty times the largest vocabulary: what is above is a broken file
  if (id < 0 || id >= kMost)
    fail(ErrorKind::kInvalid, str("The id ", id, " of the token '", excerpt(piece), "' is not below ", kMost, "."));
  if (id >= size()) pieces_.resize(static_cast<size_t>(id) + 1);
  pieces_[static_cast<size_t>(id)] = piece;
  ids_.insert_or_assign(std::string(piece), static_cast<int32_t>(id));
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace rlx::text
