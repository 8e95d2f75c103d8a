#include "wgsl/scan.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "rlx/ops/cumsum.h"
#include "wgsl/scan_row.h"

namespace rlx::webgpu {

namespace {

struct Scan {
  Operand in, starts, out;
  bool has_starts = false, reverse = false, exclusive = false;
  ops::ReduceKind kind = ops::ReduceKind::kSum;
  DType dtype = DType::F32;
  bool extent_safe = false;
};

// Rows in one piece whose values between two passes are single numbers: loads of four, in registers.
bool by_rows(const LowerCall& call, const Scan& s, const AxisSplit& split) {
  const bool pairs = call.storage(s.in) == Storage::kC64 || (is_float(s.dtype) && s.kind == ops::ReduceKind::kProd);
  return !pairs && loads_by_four(call, split, {s.in, s.out});
}

// P: wgsl::scan's Params, or wgsl::scan_row's, whose plan has `kept` loads of four.
template <class P>
void emit_scan(LowerCall& call, const Scan& s, const RowPlan& plan) {
  const Combine combine = combine_for(call, s.in, s.out, s.kind, s.dtype, false);
  auto params = plan.params<P>();
  params.identity = combine.identity;
  params.n = params.cols;
  auto types = combine.types;
  const bool rows = plan.kept > 0;
  // Without starts the operand is bound in their place.
  types.emplace_back("S", load_type(call.element(s.starts), rows && !s.has_starts));
  if (rows) {
    types.emplace_back("VE", load_type(call.element(s.in), true));
    types.emplace_back("VT", load_type(call.element(s.out), true));
  }
  Includes includes = joined(row_includes(call, false), combine.includes);
  if (s.has_starts) includes.emplace_back("scan_begin", "scan_go_on");
  call.emit({.kernel = {.kernel = rows ? "scan_row" : "scan",
                        .types = std::move(types),
                        .constants = joined(joined(plan.constants(), combine.constants),
                                            {{"REVERSE", s.reverse ? 1u : 0u}, {"EXCLUSIVE", s.exclusive ? 1u : 0u}}),
                        .includes = std::move(includes)},
             .operands = {s.in, s.starts, s.out},
             .params = {params, {&P::rows}},
             .grid = plan.grid(),
             .extent_safe = s.extent_safe});
}

// Rows of up to 16,384 elements in one pass, where the device's workgroups have 512 threads.
RowPlan plan_rows(const LowerCall& call, const AxisSplit& split) {
  constexpr int64_t kKept = 4;
  RowPlan plan{.outer = split.outer, .cols = split.cols / 4, .inner = 1, .kept = kKept};
  if (const uint32_t threads = row_threads(call);
      plan.cols > plan.threads * kKept && plan.cols <= threads * 2 * kKept) {
    plan.threads = threads;
    if (plan.cols > threads * kKept) plan.kept = 2 * kKept;
  }
  plan.chunk = std::min<int64_t>(plan.cols, int64_t{plan.threads} * plan.kept);
  plan.chunks = (plan.cols + plan.chunk - 1) / plan.chunk;
  plan.lanes = std::bit_ceil(static_cast<uint32_t>((plan.chunk + plan.kept - 1) / plan.kept));
  return plan;
}

}  // namespace

void lower_scan(LowerCall& call) {
  const auto& attrs = call.attrs<ops::CumsumAttrs>();
  const TensorType& x = call.input_type(0);
  const int64_t axis = normalize_axis(attrs.axis, x.rank());
  const AxisSplit split = split_at(x.shape, axis);
  const Operand in = call.read(0), out = call.write(0);
  Scan s{.in = in, .starts = in, .out = out, .exclusive = attrs.exclusive, .dtype = x.dtype, .extent_safe = axis > 0};
  s.kind = &call.op() == &ops::cumprod ? ops::ReduceKind::kProd : ops::ReduceKind::kSum;
  s.reverse = attrs.reverse != (&call.op() == &ops::cumsum_backward);
  const Combine combine = combine_for(call, in, out, s.kind, x.dtype, false);
  const bool rows = by_rows(call, s, split);
  RowPlan plan = rows ? plan_rows(call, split) : plan_streaming(split, false, combine.may_cut);
  if (plan.chunks > 1) {
    // What comes before each chunk: a scan of the chunks' sums.
    const Operand sums = call.temporary(combine.partial, {plan.rows()}),
                  starts = call.temporary(combine.partial, {plan.rows()});
    RowPlan elements = plan;  // the same chunks, counted in elements
    if (rows) {
      elements.cols *= 4;
      elements.chunk *= 4;
      elements.kept = 0;
    }
    emit_reduced_chunks(
        call, {.in = in, .out = sums, .kind = s.kind, .dtype = x.dtype, .split = split, .extent_safe = s.extent_safe},
        elements);
    Scan of_sums = s;
    of_sums.in = of_sums.starts = LowerCall::reading(sums);
    of_sums.out = starts;
    of_sums.exclusive = true;
    emit_scan<wgsl::scan::Params>(call, of_sums, plan_streaming({split.outer, plan.chunks, split.inner}, false, false));
    s.starts = LowerCall::reading(starts);
    s.has_starts = true;
  }
  if (rows)
    emit_scan<wgsl::scan_row::Params>(call, s, plan);
  else
    emit_scan<wgsl::scan::Params>(call, s, plan);
}

}  // namespace rlx::webgpu
