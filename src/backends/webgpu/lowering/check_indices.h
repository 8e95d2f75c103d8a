// Indices out of range as errors, where the options ask for it (spec 10, Q16).
#pragma once

#include <span>
#include <string>

#include "backends/webgpu/lower.h"
#include "rlx/error.h"

namespace rlx::webgpu {

struct IndexRange {
  int64_t first, end;
};
inline IndexRange wrapping(int64_t size) { return {-size, size}; }  // negative ones count from the end

// How an error reads, in the oracle's words; `position`: which of the indices, `end`: of its range.
using IndexComplaint = std::string (*)(int64_t value, int64_t position, int64_t end);
inline std::string index_complaint(int64_t value, int64_t position, int64_t end) {
  (void)position;
  return str("Index (", value, ") is out of range for size (", end, ").");
}

// Element e of operand i must lie in ranges[e % ranges.size()]. Nothing is done unless WebGpuOptions::check_indices.
void check_indices(LowerCall& call, int64_t i, std::span<const IndexRange> ranges,
                   IndexComplaint complaint = index_complaint);
inline void check_indices(LowerCall& call, int64_t i, IndexRange range, IndexComplaint complaint = index_complaint) {
  check_indices(call, i, std::span(&range, 1), complaint);
}
// Element e of operand i is the first of `rows` rows of batch e below `end`; an active extent cuts the rows, or the
// elements.
void check_first_rows(LowerCall& call, int64_t i, int64_t rows, int64_t end, bool cuts_rows);

// Tokens of sequences lie in pages of a pool, by a table: those before a length, or `rows` from it on.
struct PagesInUse {
  int64_t pool, table, lengths;  // operands
  int64_t rows = 0;
  bool up_to_length = false;
  bool cuts_batch = false;  // an active extent does, and not the rows
};
void check_pages(LowerCall& call, const PagesInUse& in_use);

// Of operand i, the lists of gaussian_splat_rasterize: a tile's range, and the splats of its entries. The oracle does
// not come to entries behind splats that hide them, the check does.
struct SplatLists {
  int64_t splats, entries, tiles;
};
void check_splats(LowerCall& call, int64_t i, const SplatLists& lists);

}  // namespace rlx::webgpu
