#include "wgsl/scan.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "rlx/ops/cumsum.h"

namespace rlx::webgpu {

namespace {

struct Scan {
  Operand in, starts, out;
  bool has_starts = false, reverse = false, exclusive = false;
  ops::ReduceKind kind = ops::ReduceKind::kSum;
  DType dtype = DType::F32;
  bool extent_safe = false;
};

void emit_scan(LowerCall& call, const Scan& s, const RowPlan& plan) {
  namespace k = wgsl::scan;
  const Combine combine = combine_for(call, s.in, s.out, s.kind, s.dtype, false);
  auto params = plan.params<k::Params>();
  params.identity = combine.identity;
  params.n = params.cols;
  auto types = combine.types;
  types.emplace_back("S", call.element(s.starts));
  Includes includes = joined(row_includes(call, false), combine.includes);
  if (s.has_starts) includes.emplace_back("scan_begin", "scan_go_on");
  call.emit({.kernel = {.kernel = "scan",
                        .types = std::move(types),
                        .constants = joined(joined(plan.constants(), combine.constants),
                                            {{"REVERSE", s.reverse ? 1u : 0u}, {"EXCLUSIVE", s.exclusive ? 1u : 0u}}),
                        .includes = std::move(includes)},
             .operands = {s.in, s.starts, s.out},
             .params = {params, {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = s.extent_safe});
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
  const RowPlan plan = plan_streaming(split, false, combine_for(call, in, out, s.kind, x.dtype, false).may_cut);
  if (plan.chunks > 1) {
    // What comes before each chunk: a scan of the chunks' sums.
    const Storage partial = combine_for(call, in, out, s.kind, x.dtype, false).partial;
    const Operand sums = call.temporary(partial, {plan.rows()}), starts = call.temporary(partial, {plan.rows()});
    emit_reduced_chunks(
        call, {.in = in, .out = sums, .kind = s.kind, .dtype = x.dtype, .split = split, .extent_safe = s.extent_safe},
        plan);
    Scan of_sums = s;
    of_sums.in = of_sums.starts = LowerCall::reading(sums);
    of_sums.out = starts;
    of_sums.exclusive = true;
    emit_scan(call, of_sums, plan_streaming({split.outer, plan.chunks, split.inner}, false, false));
    s.starts = LowerCall::reading(starts);
    s.has_starts = true;
  }
  emit_scan(call, s, plan);
}

}  // namespace rlx::webgpu
