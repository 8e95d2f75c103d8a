#include "rlx/ops/topk.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "backends/webgpu/lowering/scatter_reduce.h"
#include "backends/webgpu/memory.h"
#include "backends/webgpu/split_weights.h"
#include "rlx/ops/argmax.h"
#include "wgsl/arg.h"
#include "wgsl/arg_chunks.h"
#include "wgsl/arg_merge.h"
#include "wgsl/topk.h"
#include "wgsl/topk_entries.h"
#include "wgsl/topk_select.h"
#include "wgsl/topk_sorted.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kSorted = 2048;                       // pairs of words that fit the workgroup memory of every device
constexpr int64_t kSelected = 1024;                     // the same beside a histogram
constexpr int64_t kEntryBytes = 8;                      // a key and an index
constexpr int64_t kTogetherBytes = int64_t{256} << 20;  // of rows that are sorted in the same dispatches

int64_t padded(int64_t cols) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(cols))); }

// Does sorting whole rows take less than finding the first k by kSelected, each with its own search? A search reads a
// row about ten times. A sort reads and writes pairs: once for blocks of 1024, and for each doubling once per distance
// beyond a block and once within (sort_pairs.wgsl). On Mesa's software adapter both cost the same where this says so.
bool is_sorted_whole(int64_t cols, int64_t k) {
  const int64_t searches = (k + kSelected - 1) / kSelected;
  const int64_t doublings = std::bit_width(static_cast<uint64_t>(cols - 1)) - 10;
  const int64_t passes = 1 + doublings * (doublings + 3) / 2;
  return searches * 5 * cols > passes * 2 * padded(cols);
}

// kernels/key.wgsl for the elements of an operand.
KernelKey with_keys(const LowerCall& call, std::string kernel, Operand in, DType dtype, bool largest) {
  KernelKey key{.kernel = std::move(kernel),
                .types = {{"E", std::string(call.element(in))}},
                .constants = {{"LARGEST", largest ? 1u : 0u}}};
  if (!is_float(dtype)) {
    key.includes = {{"key", "key_int"}};
    key.constants.emplace_back("SIGNED", call.storage(in) == Storage::kI32 ? 1u : 0u);
  }
  return key;
}

}  // namespace

void emit_arg(LowerCall& call, const ArgSearch& s) {
  const RowPlan plan = plan_streaming(s.split, false, true);
  const auto emit = [&](KernelKey key, const RowPlan& rows, Operand from, Operand to) {
    namespace k = wgsl::arg;
    static_assert(sizeof(k::Params) == sizeof(wgsl::arg_chunks::Params) &&
                  sizeof(k::Params) == sizeof(wgsl::arg_merge::Params));
    key.constants = joined(std::move(key.constants), rows.constants());
    key.includes = joined(std::move(key.includes), row_includes(call, false));
    call.emit({.kernel = std::move(key),
               .operands = {from, to},
               .params = {rows.params<k::Params>(), {&k::Params::rows}},
               .grid = rows.grid(),
               .extent_safe = s.extent_safe},
              s.largest ? "argmax" : "argmin");
  };
  const auto arg_key = [&](std::string kernel) {
    KernelKey key = with_keys(call, std::move(kernel), s.in, s.dtype, s.largest);
    if (is_float(s.dtype)) key.constants.emplace_back("NAN_KEY", s.nan_key);
    return key;
  };
  if (plan.chunks == 1) return emit(arg_key("arg"), plan, s.in, s.out);
  const Operand parts = call.temporary(Storage::kC64, {plan.rows()});  // a key and an index: two words
  emit(arg_key("arg_chunks"), plan, s.in, parts);
  emit({.kernel = "arg_merge"}, plan_streaming({s.split.outer, plan.chunks, s.split.inner}, false, false),
       LowerCall::reading(parts), s.out);
}

void lower_arg(LowerCall& call) {
  const TensorType& x = call.input_type(0);
  const int64_t axis = normalize_axis(call.attrs<ops::ArgmaxAttrs>().axis, x.rank());
  emit_arg(call, {.in = call.read(0),
                  .out = call.write(0),
                  .dtype = x.dtype,
                  .split = split_at(x.shape, axis),
                  .largest = &call.op() == &ops::argmax,
                  .extent_safe = axis > 0});
}

namespace {

KernelKey topk_key(const LowerCall& call, const Selection& t, std::string kernel) {
  KernelKey key = with_keys(call, std::move(kernel), t.in, t.dtype, t.largest);
  if (is_float(t.dtype) && !t.largest) key.constants.emplace_back("NAN_KEY", 0u);  // the largest comes last
  return key;
}

// A workgroup sorts a row.
void emit_short(LowerCall& call, const Selection& t, std::string_view step) {
  namespace k = wgsl::topk;
  KernelKey key = topk_key(call, t, "topk");
  const auto size = static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(t.split.cols, 64))));
  key.constants.emplace_back("SIZE", size);
  key.constants.emplace_back("WG", std::min(size / 2, RowPlan::kThreads));
  const int64_t rows = t.split.outer * t.split.inner;
  call.emit({.kernel = std::move(key),
             .operands = {t.in, t.values, t.ids},
             .params = {k::Params{.rows = to_u32(rows),
                                  .cols = to_u32(t.split.cols),
                                  .inner = to_u32(t.split.inner),
                                  .k = to_u32(t.k)},
                        {&k::Params::rows}},
             .grid = {.x = {.items = rows, .active = true}},
             .extent_safe = t.extent_safe},
            step);
}

// A workgroup finds and sorts kSelected of a row's first k.
void emit_selected(LowerCall& call, const Selection& t, std::string_view step) {
  namespace k = wgsl::topk_select;
  KernelKey key = topk_key(call, t, "topk_select");
  key.constants.emplace_back("SIZE", kSelected);
  key.constants.emplace_back("WG", RowPlan::kThreads);
  const int64_t rows = t.split.outer * t.split.inner, blocks = (t.k + kSelected - 1) / kSelected;
  call.emit({.kernel = std::move(key),
             .operands = {t.in, t.values, t.ids},
             .params = {k::Params{.rows = to_u32(rows),
                                  .cols = to_u32(t.split.cols),
                                  .inner = to_u32(t.split.inner),
                                  .k = to_u32(t.k),
                                  .blocks = to_u32(blocks)},
                        {&k::Params::rows}},
             .grid = {.x = {.items = rows * blocks, .active = true}},
             .extent_safe = t.extent_safe},
            step);
}

// Rows are sorted whole, `together` of them at a time.
void emit_sorted(LowerCall& call, const Selection& t, int64_t together, std::string_view step) {
  using From = wgsl::topk_entries::Params;
  using To = wgsl::topk_sorted::Params;
  const int64_t rows = t.split.outer * t.split.inner, row = padded(t.split.cols);
  const Operand entries = call.temporary(Storage::kU32, {std::min(rows, together), row, 2});
  const bool extent_safe = t.extent_safe && rows <= together;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t count = std::min(together, rows - first);
    call.emit({.kernel = topk_key(call, t, "topk_entries"),
               .operands = {t.in, entries},
               .params = {From{.n = to_u32(count * row),
                               .padded = to_u32(row),
                               .first_row = to_u32(first),
                               .cols = to_u32(t.split.cols),
                               .inner = to_u32(t.split.inner)},
                          {&From::n}},
               .grid = {.x = {.items = count * row, .per_group = 256, .active = true}},
               .extent_safe = extent_safe},
              step);
    emit_sort(call, entries, {.count = count, .cols = row, .extent_safe = extent_safe});
    call.emit({.kernel = {"topk_sorted", {{"E", std::string(call.element(t.in))}}},
               .operands = {t.in, LowerCall::reading(entries), t.values, t.ids},
               .params = {To{.n = to_u32(count * t.k),
                             .k = to_u32(t.k),
                             .padded = to_u32(row),
                             .first_row = to_u32(first),
                             .cols = to_u32(t.split.cols),
                             .inner = to_u32(t.split.inner)},
                          {&To::n}},
               .grid = {.x = {.items = count * t.k, .per_group = 256, .active = true}},
               .extent_safe = extent_safe},
              step);
  }
}

}  // namespace

void emit_topk(LowerCall& call, const Selection& t, std::string_view step) {
  if (t.split.cols <= kSorted) return emit_short(call, t, step);
  if (is_sorted_whole(t.split.cols, t.k)) {
    const int64_t row = padded(t.split.cols) * kEntryBytes;
    const int64_t bound = visible_bytes(limits_for(call.device(), call.options()));
    if (row <= bound) return emit_sorted(call, t, std::max(std::min(bound, kTogetherBytes) / row, int64_t{1}), step);
  }
  emit_selected(call, t, step);
}

void lower_topk(LowerCall& call) {
  const auto& attrs = call.attrs<ops::TopkAttrs>();
  const TensorType& x = call.input_type(0);
  const int64_t axis = normalize_axis(attrs.axis, x.rank());
  const AxisSplit split = split_at(x.shape, axis);
  const int64_t results = split.outer * split.inner * attrs.k;
  const Operand in = call.read(0);
  // Both results in one kernel; what nobody wants goes to a temporary.
  emit_topk(call, {.in = in,
                   .values = call.wants(0) ? call.write(0) : call.temporary(call.storage(in), {results}),
                   .ids = call.wants(1) ? call.write(1) : call.temporary(Storage::kI32, {results}),
                   .dtype = x.dtype,
                   .split = split,
                   .k = attrs.k,
                   .largest = attrs.largest,
                   .extent_safe = axis > 0});
}

}  // namespace rlx::webgpu
