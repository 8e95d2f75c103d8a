#include "backends/webgpu/lowering/check_indices.h"

#include "wgsl/check_indices.h"
#include "wgsl/check_pages.h"
#include "wgsl/check_splats.h"

namespace rlx::webgpu {

namespace {

using CheckParams = wgsl::check_indices::Params;

// `active`: the count that an active extent cuts.
Dispatch make_check(LowerCall& call, int64_t i, std::span<const IndexRange> ranges, int64_t rows,
                    const LowerCall::IndexErrors& found, uint32_t CheckParams::*active) {
  std::vector<uint32_t> words;
  for (const IndexRange& r : ranges)
    for (const int64_t bound : {r.first, r.end}) {
      require(bound >= INT32_MIN && bound <= INT32_MAX, "Size (", r.end, ") does not fit the 32 bits of an index.");
      words.push_back(static_cast<uint32_t>(static_cast<int32_t>(bound)));
    }
  const int64_t n = call.input_type(i).shape.num_elements();
  return {.kernel = {"check_indices"},
          .operands = {call.read(i), call.table(words), found.errors},
          .params = {CheckParams{.n = to_u32(n),
                                 .rows = to_u32(rows),
                                 .depth = to_u32(static_cast<int64_t>(ranges.size())),
                                 .slot = found.slot},
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
  Dispatch d = make_check(call, i, ranges, 1, *found, &CheckParams::n);
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
  Dispatch d = make_check(call, i, {&range, 1}, rows, *found, cuts_rows ? &CheckParams::rows : &CheckParams::n);
  d.own_bound = true;
  call.emit(std::move(d), "check_indices");
}

void check_pages(LowerCall& call, const PagesInUse& in_use) {
  if (!call.options().webgpu.check_indices) return;
  namespace k = wgsl::check_pages;
  const TensorType &pool = call.input_type(in_use.pool), &table = call.input_type(in_use.table);
  const int64_t batch = table.dim(0).value(), columns = table.dim(1).value();
  const int64_t pages = pool.dim(0).value(), tokens = pool.dim(1).value(), capacity = checked_mul(columns, tokens);
  if (batch == 0) return;
  const Operand lengths = call.read(in_use.lengths);
  const Operand places = columns == 0 ? lengths : call.read(in_use.table);  // what is empty has no bytes to bind
  const auto found = call.index_errors(
      in_use.lengths, {places.value, pages, tokens, columns, in_use.rows, in_use.up_to_length, in_use.cuts_batch},
      [=](int64_t value, int64_t position, int64_t rows) {
        const int64_t b = position / (columns + 1);
        if (position % (columns + 1) != 0)
          return str("Page ", value, " of batch ", b, " is outside the pool (", pages, ").");
        return str("Tokens ", in_use.up_to_length ? 0 : value, " … ", value + rows, " of batch ", b,
                   " do not fit its pages (", capacity, ").");
      });
  if (!found) return;
  to_u32(checked_mul(batch, columns + 1));
  to_u32(capacity);
  call.emit({.kernel = {"check_pages"},
             .operands = {lengths, places, found->errors},
             .params = {k::Params{.batch = to_u32(batch),
                                  .columns = to_u32(columns),
                                  .page_tokens = to_u32(tokens),
                                  .pool_pages = to_u32(pages),
                                  .rows = to_u32(in_use.rows),
                                  .up_to_length = in_use.up_to_length,
                                  .slot = found->slot},
                        {in_use.cuts_batch ? &k::Params::batch : &k::Params::rows}},
             .extent_safe = true,
             .own_bound = true},
            "check_pages");
}

void check_splats(LowerCall& call, int64_t i, const SplatLists& lists) {
  if (!call.options().webgpu.check_indices) return;
  namespace k = wgsl::check_splats;
  const auto found = call.index_errors(
      i, {lists.splats, lists.entries, lists.tiles}, [lists](int64_t value, int64_t position, int64_t) {
        const auto at = static_cast<uint32_t>(value);
        return position == 0 ? str("The range of a tile ends at ", at, " of ", lists.entries, " list entries.")
                             : str("Splat id (", at, ") is out of range for ", lists.splats, " splats.");
      });
  if (!found) return;
  call.emit({.kernel = {"check_splats"},
             .operands = {call.read(i), found->errors},
             .params = k::Params{.n = to_u32(lists.splats),
                                 .tiles = to_u32(lists.tiles),
                                 .limit = to_u32(lists.entries),
                                 .slot = found->slot}},
            "check_splats");
}

}  // namespace rlx::webgpu
