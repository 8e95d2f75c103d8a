// Gradients of norms: statistics of rows, sums along rows, dx; then sums over rows for gamma and beta.
#include "wgsl/norm_backward.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/norm.h"
#include "rlx/ops/norm.h"
#include "wgsl/norm_backward_row.h"
#include "wgsl/norm_backward_sums.h"
#include "wgsl/norm_gradients.h"
#include "wgsl/norm_rows.h"

namespace rlx::webgpu {

namespace {

// Mean, what it leaves and 1 / sqrt(variance + eps) of each row.
Operand emit_moments(LowerCall& call, Operand x, const NormRows& rows, const RowPlan& plan, bool vector) {
  namespace k = wgsl::norm_rows;
  const Operand stats = emit_norm_stats(call, x, rows, plan, vector, false);
  const Operand moments = call.temporary(Storage::kF32, {rows.split.outer, 4});
  RowPlan merge = plan;
  merge.kept = 0;
  merge.lanes = plan.chunks > 8 ? 32 : 1;
  auto params = merge.params<k::Params>();
  params.count = to_u32(rows.split.outer);
  params.eps = rows.eps;
  call.emit({.kernel = {.kernel = "norm_rows", .constants = merge.constants(), .includes = row_includes(call, vector)},
             .operands = {stats, moments},
             .params = params,
             .grid = {.x = {.items = rows.split.outer, .per_group = RowPlan::kThreads / merge.lanes}}});
  return LowerCall::reading(moments);
}

void emit_dx(LowerCall& call, const NormRows& rows, RowPlan plan, bool vector, Operand x, Operand gamma, Operand dy,
             Operand moments, Operand out) {
  plan.kept = 0;
  const std::string_view element = call.element(x);
  const std::vector<std::pair<std::string, std::string>> types = {{"V", load_type(element, vector)},
                                                                  {"G", load_type(element, vector && !rows.grouped())}};
  const Operand sums = call.temporary(Storage::kC64, {plan.rows()});
  call.emit({.kernel = {.kernel = "norm_backward_sums",
                        .types = types,
                        .constants = plan.constants(),
                        .includes = norm_includes(call, rows, vector)},
             .operands = {x, gamma, gamma, dy, moments, sums},
             .params = norm_params<wgsl::norm_backward_sums::Params>(rows, plan),
             .grid = plan.grid()},
            str(call.op().name, "_sums"));
  call.emit({.kernel = {.kernel = "norm_backward",
                        .types = types,
                        .constants = joined(plan.constants(), {{"CENTRED", rows.centred ? 1u : 0u}}),
                        .includes = norm_includes(call, rows, vector)},
             .operands = {x, gamma, gamma, dy, moments, LowerCall::reading(sums), out},
             .params = norm_params<wgsl::norm_backward::Params>(rows, plan),
             .grid = plan.grid()},
            str(call.op().name, "_input"));
}

// dx and the moments of rows that fit registers.
Operand emit_dx_of_rows(LowerCall& call, const NormRows& rows, const RowPlan& plan, bool vector, Operand x,
                        Operand gamma, Operand dy, Operand out) {
  const std::string_view element = call.element(x);
  const Operand moments = call.temporary(Storage::kF32, {rows.split.outer, 4});
  auto params = norm_params<wgsl::norm_backward_row::Params>(rows, plan);
  params.n = to_u32(rows.split.cols);
  params.eps = rows.eps;
  call.emit(
      {.kernel = {.kernel = "norm_backward_row",
                  .types = {{"V", load_type(element, vector)}, {"G", load_type(element, vector && !rows.grouped())}},
                  .constants = joined(plan.constants(), {{"CENTRED", rows.centred ? 1u : 0u}}),
                  .includes = norm_includes(call, rows, vector)},
       .operands = {x, gamma, gamma, dy, moments, out},
       .params = params,
       .grid = plan.grid()},
      str(call.op().name, "_input"));
  return LowerCall::reading(moments);
}

void emit_gradients(LowerCall& call, const NormRows& rows, Operand x, Operand dy, Operand moments, DType dtype) {
  namespace k = wgsl::norm_gradients;
  // A gamma per row of a view of x: of channels, the elements of one sample; else everything above an element.
  const AxisSplit view = rows.grouped() ? AxisSplit{rows.split.outer * rows.channels, rows.per_gamma, 1}
                                        : AxisSplit{1, rows.split.outer, rows.split.cols};
  const int64_t gammas = rows.channels * rows.groups;
  const RowPlan plan = plan_streaming(view, false, !rows.grouped());
  const int64_t parts = plan.rows() / gammas;
  const Operand dgamma = call.temporary(Storage::kF32, {plan.rows()});
  const Operand dbeta = call.temporary(Storage::kF32, {plan.rows()});
  auto params = plan.params<k::Params>();
  params.count = to_u32(rows.split.cols);
  call.emit({.kernel = {.kernel = "norm_gradients",
                        .types = {{"T", std::string(call.element(x))}},
                        .constants = plan.constants(),
                        .includes = row_includes(call, false)},
             .operands = {x, dy, moments, dgamma, dbeta},
             .params = params,
             .grid = plan.grid()},
            str(call.op().name, "_gamma_partial"));
  for (const int64_t result : {1, 2})
    if (call.wants(result))
      emit_reduction(call, {.in = LowerCall::reading(result == 1 ? dgamma : dbeta),
                            .out = call.write(result),
                            .kind = ops::ReduceKind::kSum,
                            .dtype = dtype,
                            .split = {1, parts, gammas},
                            .step = str(call.op().name, result == 1 ? "_gamma" : "_beta",
                                        &call.op() == &ops::rms_norm_backward ? "" : "_reduce")});
}

}  // namespace

void lower_norm_backward(LowerCall& call) {
  const NormRows rows = norm_rows(call);
  const Operand x = call.read(0), gamma = call.read(1), dy = call.read(call.num_inputs() - 1);
  const bool vector = norm_by_four(call, rows, {x, dy}, {gamma}) &&
                      (!call.wants(0) || loads_by_four(call, rows.split, {call.write(0)}));
  const RowPlan plan = plan_kept(rows.split, vector);
  Operand moments;
  if (call.wants(0) && plan.chunks == 1) {
    moments = emit_dx_of_rows(call, rows, plan, vector, x, gamma, dy, call.write(0));
  } else {
    moments = emit_moments(call, x, rows, plan, vector);
    if (call.wants(0)) emit_dx(call, rows, plan, vector, x, gamma, dy, moments, call.write(0));
  }
  if (call.wants(1) || call.wants(2)) emit_gradients(call, rows, x, dy, moments, call.input_type(0).dtype);
}

}  // namespace rlx::webgpu
