#include "backends/webgpu/lowering/check_indices.h"

#include "wgsl/check_indices.h"

namespace rlx::webgpu {

namespace {

using CheckParams = wgsl::check_indices::Params;

// `active`: the count that an active extent cuts.
Dispatch make_check(LowerCall& call, int64_t i, std::span<const IndexRange> ranges, int64_t rows, uint32_t slot,
                    Operand errors, uint32_t CheckParams::*active) {
  std::vector<uint32_t> words;
  for (const IndexRange& r : ranges)
    for (const int64_t bound : {r.first, r.end}) {
      require(bound >= INT32_MIN && bound <= INT32_MAX, "Size (", r.end, ") does not fit the 32 bits of an index.");
      words.push_back(static_cast<uint32_t>(static_cast<int32_t>(bound)));
    }
  const int64_t n = call.input_type(i).shape.num_elements();
  return {.kernel = {"check_indices"},
          .operands = {call.read(i), call.table(words), errors},
          .params = {CheckParams{.n = to_u32(n),
                                 .rows = to_u32(rows),
                                 .depth = to_u32(static_cast<int64_t>(ranges.size())),
                                 .slot = slot},
                     {active}},
          .grid = {.x = {.items = n > 0 ? 1 : 0}},
          .extent_safe = true};
}

}  // namespace

void check_indices(LowerCall& call, int64_t i, std::span<const IndexRange> ranges, IndexComplaint complaint) {
  if (!call.options().webgpu.check_indices || ranges.empty()) return;
  std::vector<int64_t> ends, what = {reinterpret_cast<intptr_t>(complaint)};
  for (const IndexRange& r : ranges) {
    ends.push_back(r.end);
    what.insert(what.end(), {r.first, r.end});
  }
  const auto found = call.index_errors(i, what, [ends, complaint](int64_t value, int64_t position, int64_t) {
    return complaint(value, position, ends[static_cast<size_t>(position) % ends.size()]);
  });
  if (!found) return;
  Dispatch d = make_check(call, i, ranges, 1, found->slot, found->errors, &CheckParams::n);
  d.of_one_value = true;
  call.emit(std::move(d), "check_indices");
}

void check_first_rows(LowerCall& call, int64_t i, int64_t rows, int64_t end, bool cuts_rows) {
  if (!call.options().webgpu.check_indices) return;
  const auto found =
      call.index_errors(i, {rows, end, cuts_rows ? 1 : 0}, [end](int64_t value, int64_t position, int64_t used) {
        return str("Rows ", value, " … ", value + used, " of batch ", position, " do not fit the cache (", end, ").");
      });
  if (!found) return;
  const IndexRange range{0, end};
  Dispatch d = make_check(call, i, {&range, 1}, rows, found->slot, found->errors,
                          cuts_rows ? &CheckParams::rows : &CheckParams::n);
  d.own_bound = true;
  call.emit(std::move(d), "check_indices");
}

}  // namespace rlx::webgpu
