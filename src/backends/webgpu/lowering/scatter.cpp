// Updates written to or combined at places that indices name. Floats are not added by atomics: the updates of a place
// are found by a sort and combined in ascending order, so results do not depend on the order of threads.
#include "rlx/ops/scatter.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "backends/webgpu/lowering/scatter_reduce.h"
#include "rlx/ops/gather.h"
#include "rlx/ops/sequence_state.h"
#include "wgsl/kv_append.h"
#include "wgsl/scatter_claim.h"
#include "wgsl/scatter_keys.h"
#include "wgsl/scatter_rows.h"
#include "wgsl/sort_pairs.h"

namespace rlx::webgpu {

namespace {

using ops::ScatterReduction;

constexpr int64_t kBlock = 1024;  // of sort_pairs.wgsl
using Rows = ScatterRows;

// Entries (key, update); so many that they can be sorted, or only those there are.
int64_t entries_of(int64_t count, bool sorted) {
  return sorted ? std::max<int64_t>(kBlock, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))))
                : std::max<int64_t>(count, 1);
}

// The flat place of each tuple of `sizes.size()` indices.
Operand emit_keys(LowerCall& call, Operand indices, const std::vector<int64_t>& sizes, int64_t count, bool sorted) {
  namespace k = wgsl::scatter_keys;
  const int64_t total = entries_of(count, sorted);
  const Operand entries = call.temporary(Storage::kU32, {total, 2});
  std::vector<uint32_t> words;
  for (const int64_t n : sizes) words.push_back(to_u32(n));
  if (words.empty()) words.push_back(0);  // a table is not empty
  call.emit(
      {.kernel = {"scatter_keys"},
       .operands = {indices, call.table(words), entries},
       .params =
           k::Params{.n = to_u32(count), .total = to_u32(total), .depth = to_u32(static_cast<int64_t>(sizes.size()))},
       .grid = {.x = {.items = total, .per_group = 256}}},
      "scatter_keys");
  return entries;
}

// The place of each update of scatter_elements: its own, but for the axis.
Operand emit_element_keys(LowerCall& call, size_t axis, int64_t count, bool sorted) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), updates = call.input_type(1).shape.sizes();
  const std::vector<int64_t> strides = row_major_strides(x);
  std::vector<size_t> axes(updates.size()), others;
  for (size_t k = 0; k < axes.size(); ++k) {
    axes[k] = k;
    if (k != axis) others.push_back(k);
  }
  const int64_t total = entries_of(count, sorted);
  const Operand entries = call.temporary(Storage::kU32, {total, 2});
  ParamFields fields;
  fields.add("n", count);
  fields.add("total", total);
  fields.add("size", x[axis]);
  fields.add("step", strides[axis]);
  const std::string coordinates = coordinate_text(fields, updates, axes),
                    offset = offset_text(fields, "x", strides, others);
  fields.add("indices_base", 0);
  fields.add("entries_base", 0);
  const std::string source = str("// @include \"index.wgsl\"\nstruct Params {\n", fields.text, R"(}
@group(0) @binding(0) var<storage, read> indices: array<i32>;
@group(0) @binding(1) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

fn key_of(i: u32) -> u32 {
  let at = index_or_nowhere(indices[p.indices_base + i], p.size);
  if (at == NOWHERE) { return NOWHERE; }
  var r = i;
)",
                                 coordinates, "  return at * p.step", offset, R"(;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.total) { return; }
  var key = NOWHERE;
  if (i < p.n) { key = key_of(i); }
  entries[p.entries_base + i] = vec2<u32>(key, i);
}
)");
  call.emit({.kernel = {.kernel = "scatter_element_keys", .source = std::make_shared<std::string>(source)},
             .operands = {call.read(1), entries},
             .params = {std::move(fields.words), {}},
             .grid = {.x = {.items = total, .per_group = 256}}},
            "scatter_keys");
  return entries;
}

}  // namespace

void emit_sort(LowerCall& call, Operand entries, const SortedRows& rows) {
  namespace k = wgsl::sort_pairs;
  const int64_t pairs = rows.count * rows.cols / 2;
  const auto step = [&](uint32_t kind, int64_t size, int64_t distance) {
    const int64_t per_group = kind == 1 ? 256 : kBlock / 2;
    const uint32_t turned = size < rows.cols ? to_u32(size) : 0;  // which of the sequences are: none of whole rows
    call.emit({.kernel = {"sort_pairs", {}, {{"STEP", kind}}},
               .operands = {entries},
               .params = {k::Params{.pairs = to_u32(pairs), .turned = turned, .distance = to_u32(distance)},
                          {&k::Params::pairs}},
               .grid = {.x = {.items = pairs, .per_group = per_group, .active = true}},
               .extent_safe = rows.extent_safe},
              "sort_pairs");
  };
  step(0, 0, 0);
  for (int64_t size = 2 * kBlock; size <= rows.cols; size *= 2) {
    for (int64_t distance = size / 2; distance >= kBlock; distance /= 2) step(1, size, distance);
    step(2, size, 0);
  }
}

namespace {

// y = x, then the last update of each row.
void emit_replace(LowerCall& call, Operand entries, Operand x, Operand updates, const Rows& rows) {
  const Operand y = call.write(0), winners = call.temporary(Storage::kU32, {rows.cols});
  emit_zeros(call, winners, rows.cols);
  call.emit({.kernel = {"scatter_claim"},
             .operands = {LowerCall::reading(entries), winners},
             .params = wgsl::scatter_claim::Params{.n = to_u32(rows.count)},
             .grid = {.x = {.items = rows.count, .per_group = 256}}},
            "scatter_claim");
  emit_copy(call, x, y, rows.cols * rows.inner);
  const Unit unit = widest_unit(call, std::array{updates, y}, std::array{rows.inner});
  const int64_t row = rows.inner / unit.elements, n = rows.count * row;
  call.emit({.kernel = {"scatter_rows", {{"T", unit.type}}},
             .operands = {updates, LowerCall::reading(entries), LowerCall::reading(winners), y},
             .params = wgsl::scatter_rows::Params{.n = to_u32(n), .row = to_u32(row)},
             .grid = {.x = {.items = n, .per_group = 256}}},
            "scatter_rows");
}

// x with its updates, whose keys `emit_keys` makes.
template <class EmitKeys>
void emit_updates(LowerCall& call, const Rows& rows, ScatterReduction reduction, const EmitKeys& emit_keys) {
  const Operand x = call.read(0);
  if (rows.count == 0 || rows.inner == 0) return emit_copy(call, x, call.write(0), rows.cols * rows.inner);
  const bool sorted = reduction != ScatterReduction::kNone;
  const Operand entries = emit_keys(sorted), updates = call.read(2);
  if (!sorted) return emit_replace(call, entries, x, updates, rows);
  const int64_t total = entries_of(rows.count, true);
  emit_sort(call, entries, {.cols = total});
  emit_scatter_reduce(call, entries, total, x, updates, rows, reduction);
}

// Zeros, and the updates added: along `axis` of the result.
void emit_sums(LowerCall& call, int64_t axis) {
  const auto [outer, cols, inner] = split_at(call.output_type(0).shape, axis);
  const Rows rows{outer, cols, inner, call.input_type(1).shape.num_elements()};
  if (rows.count == 0) return emit_zeros(call, call.write(0), outer * cols * inner);
  check_indices(call, 1, wrapping(cols));
  const Operand entries = emit_keys(call, call.read(1), {cols}, rows.count, true);
  const int64_t total = entries_of(rows.count, true);
  emit_sort(call, entries, {.cols = total});
  emit_scatter_reduce(call, entries, total, std::nullopt, call.read(0), rows, ScatterReduction::kAdd);
}

}  // namespace

void lower_scatter_add(LowerCall& call) { emit_sums(call, 0); }
void lower_gather_backward(LowerCall& call) { emit_sums(call, call.attrs<ops::GatherBackwardAttrs>().axis); }

void lower_scatter_elements(LowerCall& call) {
  const auto& attrs = call.attrs<ops::ScatterElementsAttrs>();
  const auto axis = static_cast<size_t>(normalize_axis(attrs.axis, call.input_type(0).rank()));
  const Rows rows{1, call.input_type(0).shape.num_elements(), 1, call.input_type(1).shape.num_elements()};
  check_indices(call, 1, wrapping(call.input_type(0).dim(static_cast<int64_t>(axis)).value()));
  emit_updates(call, rows, attrs.reduction,
               [&](bool sorted) { return emit_element_keys(call, axis, rows.count, sorted); });
}

void lower_scatter_nd(LowerCall& call) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), tuples = call.input_type(1).shape.sizes();
  const auto depth = static_cast<size_t>(tuples.back());
  const std::span<const int64_t> all(x);
  const Rows rows{1, product(all.first(depth)), product(all.subspan(depth)),
                  product(std::span<const int64_t>(tuples).first(tuples.size() - 1))};
  const std::vector<int64_t> sizes(x.begin(), x.begin() + tuples.back());
  std::vector<IndexRange> ranges;
  for (const int64_t size : sizes) ranges.push_back(wrapping(size));
  check_indices(call, 1, ranges);
  emit_updates(call, rows, call.attrs<ops::ScatterNdAttrs>().reduction,
               [&](bool sorted) { return emit_keys(call, call.read(1), sizes, rows.count, sorted); });
}

void lower_kv_append(LowerCall& call) {
  namespace k = wgsl::kv_append;
  const int64_t axis = normalize_axis(call.attrs<ops::KvAppendAttrs>().axis, call.input_type(0).rank());
  const auto [outer, cap, inner] = split_at(call.input_type(0).shape, axis);
  const int64_t count = split_at(call.input_type(1).shape, axis).cols;
  const Operand cache = call.read(0), rows = call.read(1), len = call.read(2), y = call.write(0);
  const int64_t bucket = call.bucket_axis(1);
  const bool cut_batch = bucket == 0 && axis != 0;  // else the rows that are appended
  emit_copy(call, cache, y, outer * cap * inner);
  check_first_rows(call, 2, count, cap, !cut_batch);
  if (outer * count * inner == 0) return;
  const Unit unit = widest_unit(call, std::array{rows, y}, std::array{inner});
  const int64_t row = inner / unit.elements, n = outer * count * row;
  const int64_t per_batch = outer / call.input_type(0).shape[0].value();
  call.emit({.kernel = {"kv_append", {{"T", unit.type}}},
             .operands = {rows, len, y},
             .params = {k::Params{.n = to_u32(n),
                                  .used = to_u32(count),
                                  .row = to_u32(row),
                                  .count = to_u32(count),
                                  .cap = to_u32(cap),
                                  .per_batch = to_u32(per_batch)},
                        {cut_batch ? &k::Params::n : &k::Params::used}},
             .grid = {.x = {.items = n, .per_group = 256, .active = cut_batch}},
             .extent_safe = cut_batch || (bucket == axis && call.bucket_axis(0) < 0),
             .own_bound = true});
}

}  // namespace rlx::webgpu
