#include "backends/webgpu/lowering/norm.h"

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "rlx/ops/fused_residual_norm.h"
#include "rlx/ops/norm.h"
#include "wgsl/norm.h"
#include "wgsl/norm_apply.h"
#include "wgsl/norm_lagged.h"
#include "wgsl/norm_stats.h"
#include "wgsl/norm_streamed.h"
#include "wgsl/residual_norm.h"
#include "wgsl/residual_norm_tee.h"
#include "wgsl/residual_sum.h"

namespace rlx::webgpu {

namespace {

NormRows trailing_rows(const Shape& shape, int64_t axis, float eps, bool centred) {
  NormRows r{.split = {1, 1, 1}, .centred = centred, .eps = eps};
  axis = normalize_axis(axis, shape.rank());
  for (int64_t d = 0; d < shape.rank(); ++d) (d < axis ? r.split.outer : r.split.cols) *= shape[d].value();
  r.channels = r.split.cols;
  r.keeps_axis0 = axis > 0;
  return r;
}

NormRows group_rows(const Shape& shape, const ops::GroupNormAttrs& attrs) {
  NormRows r{.split = {shape[0].value() * attrs.num_groups, 1, 1}, .groups = attrs.num_groups, .eps = attrs.eps};
  for (int64_t d = 2; d < shape.rank(); ++d) r.per_gamma *= shape[d].value();
  r.channels = shape[1].value() / attrs.num_groups;
  r.split.cols = r.channels * r.per_gamma;
  return r;
}

// In one dispatch that reads rows or columns twice.
bool emit_streamed(LowerCall& call, const NormRows& rows, Operand in, Operand gamma, Operand beta, bool has_beta,
                   Operand out, bool extent_safe, bool in_place) {
  namespace k = wgsl::norm_streamed;
  const std::optional<StreamPlan> plan = plan_streamed(call, rows.split, in, out);
  // A load along a row is of one channel, or meets as many gammas as it has elements.
  if (!plan || (plan->rows && plan->vector && !norm_by_four(call, rows, {in, out}, {gamma, beta}))) return false;
  const bool gammas_by_four = plan->rows && plan->vector && !rows.grouped();
  auto params = plan->params<k::Params>();
  params.n = to_u32(rows.split.cols);
  params.eps = rows.eps;
  params.groups = to_u32(rows.groups);
  params.group_channels = to_u32(rows.channels);
  params.per_gamma = to_u32(rows.per_gamma);
  Includes includes = stream_includes(call, *plan);
  if (plan->vector) includes.emplace_back("norm_lanes1", "norm_lanes4");
  const std::string_view element = call.element(in);
  call.emit({.kernel = {.kernel = "norm_streamed",
                        .types = {{"V", load_type(element, plan->vector)},
                                  {"G", load_type(element, gammas_by_four)},
                                  {"GF", load_type("f32", gammas_by_four)}},
                        .constants = joined(plan->constants(), {{"HAS_BETA", has_beta ? 1u : 0u},
                                                                {"CENTRED", rows.centred ? 1u : 0u},
                                                                {"GROUPED", rows.grouped() ? 1u : 0u}}),
                        .includes = includes},
             .operands = {in, gamma, beta, out},
             .params = {params, {&k::Params::outer}},
             .grid = plan->grid(),
             .extent_safe = extent_safe,
             .in_place = in_place});
  return true;
}

// In one dispatch that reads rows from memory once: of tensors that are larger than caches, on devices whose workgroups
// may wait for others. In three that do not wait where only the options want it.
bool emit_lagged(LowerCall& call, const NormRows& rows, Operand in, Operand gamma, Operand beta, bool has_beta,
                 Operand out, bool extent_safe, bool in_place) {
  namespace k = wgsl::norm_lagged;
  constexpr int64_t kThreads = 256, kKept = 8, kLine = 32, kNumbers = 3, kTileNumbers = 4;  // as the kernel has them
  constexpr int64_t kLeastBytes = int64_t{64} << 20;
  // Where the streamed form is faster: rows that mostly stay in registers and in a cache (docs/performance.md).
  const int64_t least_cols = rows.grouped() ? 65536 : has_beta ? 16384 : 28672;
  const bool waits = call.device().features().waits;
  const int64_t element_size = element_bytes(call.element(in)), elements = rows.split.outer * rows.split.cols;
  const bool pays = waits && rows.split.cols > least_cols && elements * element_size >= kLeastBytes;
  if (!call.options().webgpu.read_once.value_or(pays) || rows.split.inner > 1 ||
      !norm_by_four(call, rows, {in, out}, {gamma, beta}))
    return false;
  // Rows that share gammas are finished together, or the gammas are as many bytes as the rows.
  const int64_t together = rows.grouped() ? 1 : has_beta ? 4 : 2;
  const int64_t loads = rows.split.cols / 4, chunks = (loads + kThreads * kKept - 1) / (kThreads * kKept);
  const int64_t summed = (loads + chunks * kThreads - 1) / (chunks * kThreads), tile = kThreads * summed;
  const int64_t tiles = (rows.split.outer + together - 1) / together * together * chunks;
  // Enough that results seldom wait for sums, and little enough that a cache still has the tile.
  const int64_t lag_bytes = int64_t{has_beta && !rows.grouped() ? 12 : 8} << 20;
  k::Params params{.outer = to_u32(rows.split.outer),
                   .cols = to_u32(loads),
                   .chunks = to_u32(chunks),
                   .lag = to_u32(lag_bytes / (tile * 4 * element_size) + together * chunks),
                   .eps = rows.eps,
                   .groups = to_u32(rows.groups),
                   .group_channels = to_u32(rows.channels),
                   .per_gamma = to_u32(rows.per_gamma)};
  const int64_t words = kLine + rows.split.outer * (kNumbers + chunks * kTileNumbers);
  const Operand board = call.temporary(Storage::kU32, {words});
  emit_zeros(call, board, words);
  const std::string_view element = call.element(in);
  const Dispatch dispatch{.kernel = {.kernel = "norm_lagged",
                                     .types = {{"V", load_type(element, true)},
                                               {"G", load_type(element, !rows.grouped())},
                                               {"GF", load_type("f32", !rows.grouped())}},
                                     .constants = {{"ROWS", to_u32(together)},
                                                   {"SUMMED", to_u32(summed)},
                                                   {"HAS_BETA", has_beta ? 1u : 0u},
                                                   {"CENTRED", rows.centred ? 1u : 0u},
                                                   {"GROUPED", rows.grouped() ? 1u : 0u}},
                                     .includes = row_includes(call, true)},
                          .operands = {in, gamma, beta, out, board},
                          .params = {params, {&k::Params::outer}},
                          // Of an active extent, the others find no tile.
                          .grid = {.x = {.items = (waits ? 2 : 1) * tiles}},
                          .extent_safe = extent_safe,
                          .in_place = in_place};
  if (waits) {
    call.emit(dispatch);
    return true;
  }
  for (const uint32_t kind : {0u, 1u, 2u}) {  // sums, merges, results
    Dispatch only = dispatch;
    only.kernel.constants.emplace_back("ONLY", kind);
    call.emit(std::move(only));
  }
  return true;
}

// The norm of `in`, in one dispatch or, of long rows, two.
void emit_norm(LowerCall& call, const NormRows& rows, Operand in, Operand gamma, Operand beta, bool has_beta,
               Operand out, bool extent_safe, bool in_place) {
  const bool vector = norm_by_four(call, rows, {in, out}, {gamma, beta});
  if (rows.split.inner > 1 && emit_streamed(call, rows, in, gamma, beta, has_beta, out, extent_safe, in_place)) return;
  RowPlan plan = plan_kept(rows.split, vector, row_threads(call));
  // With gammas and betas for all of them, eight loads take too many of a thread's registers.
  if (has_beta && vector && !rows.grouped() && plan.chunks == 1 && plan.kept == 8 && plan.threads < row_threads(call)) {
    plan.threads = plan.lanes = row_threads(call);
    plan.kept = 4;
  }
  const std::string_view element = call.element(in);
  const std::vector<std::pair<std::string, std::string>> types = {{"V", load_type(element, vector)},
                                                                  {"G", load_type(element, vector && !rows.grouped())}};
  const std::pair<std::string, uint32_t> with_beta = {"HAS_BETA", has_beta ? 1u : 0u};
  if (plan.chunks == 1) {
    namespace k = wgsl::norm;
    auto params = norm_params<k::Params>(rows, plan);
    params.n = to_u32(rows.split.cols);
    params.eps = rows.eps;
    // Gammas that are loaded before the sums take registers. Where few threads have much of a row each, or where
    // finding the gamma takes time, waiting for them would cost more.
    const bool early = !plan.by_columns && (rows.grouped() || plan.kept > (vector ? 4 : 8));
    call.emit(
        {.kernel = {.kernel = "norm",
                    .types = types,
                    .constants = joined(plan.constants(),
                                        {with_beta, {"CENTRED", rows.centred ? 1u : 0u}, {"EARLY", early ? 1u : 0u}}),
                    .includes = norm_includes(call, rows, vector)},
         .operands = {in, gamma, beta, out},
         .params = {params, {&k::Params::rows}},
         .grid = plan.grid(),
         .extent_safe = extent_safe,
         .in_place = in_place});
    return;
  }
  if (emit_lagged(call, rows, in, gamma, beta, has_beta, out, extent_safe, in_place)) return;
  // Gammas of their own for every element of a long row are as many bytes as the row, which every workgroup would read.
  const bool streamed = rows.split.inner == 1 && (rows.grouped() || (!has_beta && rows.split.cols <= 32768));
  if (streamed && emit_streamed(call, rows, in, gamma, beta, has_beta, out, extent_safe, in_place)) return;
  const Operand stats = emit_norm_stats(call, in, rows, plan, vector, extent_safe);
  namespace k = wgsl::norm_apply;
  auto params = norm_params<k::Params>(rows, plan);
  params.eps = rows.eps;
  call.emit({.kernel = {.kernel = "norm_apply",
                        .types = types,
                        .constants = joined(plan.constants(), {with_beta}),
                        .includes = norm_includes(call, rows, vector)},
             .operands = {in, gamma, beta, stats, out},
             .params = {params, {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = extent_safe,
             .in_place = in_place});
}

template <class P>
P residual_params(const RowPlan& plan, const NormRows& rows) {
  auto p = plan.params<P>();
  p.n = to_u32(rows.split.cols);
  p.eps = rows.eps;
  return p;
}

void lower_residual(LowerCall& call, bool has_bias, float eps, bool centred) {
  const TensorType& x = call.input_type(0);
  const NormRows rows = trailing_rows(x.shape, -1, eps, centred);
  const int64_t first = has_bias ? 3 : 2;
  const bool has_beta = call.num_inputs() > first + 1;
  const bool safe = x.rank() > 1;
  const Operand in = call.read(0), residual = call.read(1), gamma = call.read(first);
  const Operand bias = has_bias ? call.read(2) : gamma, beta = has_beta ? call.read(first + 1) : gamma;
  const Storage storage = call.storage(in);
  const int64_t n = x.shape.num_elements();
  const Operand out = call.wants(0) ? call.write(0) : call.temporary(storage, {n});
  const bool vector = norm_by_four(call, rows, {in, residual, out}, {gamma, beta, bias}) &&
                      (!call.wants(1) || call.starts_at_multiple_of(call.write(1), 16));
  const RowPlan plan = plan_kept(rows.split, vector, row_threads(call));
  const std::string_view element = call.element(in);
  const uint32_t bias_constant = has_bias ? 1u : 0u;
  if (plan.chunks > 1) {
    namespace k = wgsl::residual_sum;
    const Operand total = call.wants(1) ? call.write(1) : call.temporary(storage, {n});
    call.emit({.kernel = {.kernel = "residual_sum",
                          .types = {{"T", std::string(element)}},
                          .constants = {{"HAS_BIAS", bias_constant}}},
               .operands = {in, residual, bias, total},
               .params = {k::Params{.n = to_u32(n), .cols = to_u32(rows.split.cols)}, {&k::Params::n}},
               .grid = {.x = {.items = n, .per_group = 256, .active = true}},
               .extent_safe = safe});
    emit_norm(call, rows, LowerCall::reading(total), gamma, beta, has_beta, out, safe, false);
    return;
  }
  KernelKey key{.kernel = call.wants(1) ? "residual_norm_tee" : "residual_norm",
                .types = {{"V", load_type(element, vector)}},
                .constants = joined(
                    plan.constants(),
                    {{"HAS_BIAS", bias_constant}, {"HAS_BETA", has_beta ? 1u : 0u}, {"CENTRED", centred ? 1u : 0u}}),
                .includes = norm_includes(call, rows, vector)};
  std::vector<Operand> operands = {in, residual, bias, gamma, beta, out};
  if (call.wants(1)) {
    namespace k = wgsl::residual_norm_tee;
    operands.push_back(call.write(1));
    call.emit({.kernel = std::move(key),
               .operands = std::move(operands),
               .params = {residual_params<k::Params>(plan, rows), {&k::Params::rows}},
               .grid = plan.grid(),
               .extent_safe = safe,
               .in_place = true},
              str(call.op().name, "_tee"));
    return;
  }
  namespace k = wgsl::residual_norm;
  call.emit({.kernel = std::move(key),
             .operands = std::move(operands),
             .params = {residual_params<k::Params>(plan, rows), {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = safe,
             .in_place = true});
}

}  // namespace

NormRows norm_rows(const LowerCall& call) {
  const Shape& shape = call.input_type(0).shape;
  const OpDef& op = call.op();
  if (&op == &ops::group_norm || &op == &ops::group_norm_backward)
    return group_rows(shape, call.attrs<ops::GroupNormAttrs>());
  if (&op == &ops::layer_norm2d) {
    NormRows r{.split = split_at(shape, 1), .eps = call.attrs<ops::LayerNorm2dAttrs>().eps};
    r.channels = r.split.cols;
    return r;
  }
  if (&op == &ops::rms_norm || &op == &ops::rms_norm_backward) {
    const auto& attrs = call.attrs<ops::RmsNormAttrs>();
    return trailing_rows(shape, attrs.axis, attrs.eps, false);
  }
  const auto& attrs = call.attrs<ops::LayerNormAttrs>();
  return trailing_rows(shape, attrs.axis, attrs.eps, true);
}

bool norm_by_four(const LowerCall& call, const NormRows& rows, std::initializer_list<Operand> like_x,
                  std::initializer_list<Operand> like_gamma) {
  if (!loads_by_four(call, rows.split, like_x)) return false;
  return rows.grouped() ? rows.per_gamma % 4 == 0 : loads_by_four(call, rows.split, like_gamma);
}

Includes norm_includes(const LowerCall& call, const NormRows& rows, bool vector) {
  Includes out = row_includes(call, vector);
  if (rows.grouped()) out.emplace_back("norm_gamma", "norm_gamma_grouped");
  return out;
}

Operand emit_norm_stats(LowerCall& call, Operand in, const NormRows& rows, const RowPlan& plan, bool vector,
                        bool extent_safe) {
  namespace k = wgsl::norm_stats;
  const Operand stats = call.temporary(Storage::kF32, {plan.rows(), 4});
  call.emit({.kernel = {.kernel = "norm_stats",
                        .types = {{"V", load_type(call.element(in), vector)}},
                        .constants = joined(plan.constants(), {{"CENTRED", rows.centred ? 1u : 0u}}),
                        .includes = row_includes(call, vector)},
             .operands = {in, stats},
             .params = {plan.params<k::Params>(), {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = extent_safe});
  return LowerCall::reading(stats);
}

void lower_norm(LowerCall& call) {
  const NormRows rows = norm_rows(call);
  const bool has_beta = call.num_inputs() > 2;
  const Operand gamma = call.read(1), beta = has_beta ? call.read(2) : gamma;
  emit_norm(call, rows, call.read(0), gamma, beta, has_beta, call.write(0), rows.keeps_axis0, true);
}

void lower_residual_ln(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FusedResidualLnAttrs>();
  lower_residual(call, attrs.has_bias, attrs.eps, true);
}

void lower_residual_rms_norm(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FusedResidualRmsNormAttrs>();
  lower_residual(call, attrs.has_bias, attrs.eps, false);
}

}  // namespace rlx::webgpu
