#include "rlx/ops/softmax.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "wgsl/cross_entropy.h"
#include "wgsl/cross_entropy_backward.h"
#include "wgsl/cross_entropy_stats.h"
#include "wgsl/softmax.h"
#include "wgsl/softmax_apply.h"
#include "wgsl/softmax_columns_apply.h"
#include "wgsl/softmax_columns_stats.h"
#include "wgsl/softmax_stats.h"
#include "wgsl/softmax_streamed.h"

namespace rlx::webgpu {

namespace {

// Largest element and sum of exponentials, per chunk of the plan.
Operand emit_stats(LowerCall& call, Operand in, const RowPlan& plan, bool vector, bool extent_safe) {
  namespace k = wgsl::softmax_stats;
  const Operand stats = call.temporary(Storage::kC64, {plan.rows()});
  call.emit({.kernel = {.kernel = "softmax_stats",
                        .types = {{"V", load_type(call.element(in), vector)}},
                        .constants = plan.constants(),
                        .includes = row_includes(call, vector)},
             .operands = {in, stats},
             .params = {plan.params<k::Params>(), {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = extent_safe});
  return LowerCall::reading(stats);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Along an axis that is not the last and that no registers hold, with `inner` columns of loads.
struct Columns {
  Operand in, out;
  AxisSplit split{};
  bool vector = false, safe = false;
  std::string type(const LowerCall& call) const { return load_type(call.element(out), vector); }
};

// In one dispatch that reads rows or columns twice.
bool emit_streamed(LowerCall& call, Operand in, Operand out, const AxisSplit& split, bool safe) {
  namespace k = wgsl::softmax_streamed;
  std::optional<StreamPlan> plan = plan_streamed(call, split, in, out);
  if (!plan) return false;
  if (!plan->rows && !plan->whole()) {
    plan->kept = 12;
    // Where rows are long and columns, too, more neighbours are read faster, while all workgroups have work.
    StreamPlan wider = *plan;
    wider.columns *= 4;
    if (split.cols > 2048 && split.cols <= 4096 && split.inner >= 4096 && wider.groups() >= 120) plan = wider;
  }
  call.emit({.kernel = {.kernel = "softmax_streamed",
                        .types = {{"V", load_type(call.element(out), plan->vector)}},
                        .constants = plan->constants(),
                        .includes = stream_includes(call, *plan)},
             .operands = {in, out},
             .params = {plan->params<k::Params>(), {&k::Params::outer}},
             .grid = plan->grid(),
             .extent_safe = safe,
             .in_place = true});
  return true;
}

// Two passes over neighbouring columns, cut so that both have workgroups enough.
void emit_cut_columns(LowerCall& call, const Columns& c) {
  namespace first = wgsl::softmax_columns_stats;
  namespace second = wgsl::softmax_columns_apply;
  const auto& [in, out, split, vector, safe] = c;
  constexpr int64_t kColumns = 32, kLeast = 64;  // columns of a workgroup, and the fewest places
  // Workgroups of the passes: the first has enough of them to read at full speed, and few results for the second to
  // read, whose many follow the tensor closely.
  constexpr int64_t kStatGroups = 256, kGroups = 8192;
  const auto columns = std::min(kColumns, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(split.inner))));
  const int64_t across = split.outer * ceil_div(split.inner, columns);
  const auto chunks_for = [&](int64_t groups, int64_t least) {
    return std::clamp<int64_t>(ceil_div(groups, across), 1, ceil_div(split.cols, least));
  };
  const int64_t stat_chunks = chunks_for(kStatGroups, kLeast);
  // Every workgroup of the second pass reads the results of its columns: it has more places than these.
  const int64_t chunk = ceil_div(split.cols, chunks_for(kGroups, std::max(kLeast, 4 * stat_chunks)));
  const int64_t chunks = ceil_div(split.cols, chunk);
  const auto params = [&](auto p, int64_t n) {
    p.outer = to_u32(split.outer);
    p.cols = to_u32(split.cols);
    p.inner = to_u32(split.inner);
    p.chunks = to_u32(n);
    p.stat_chunks = to_u32(stat_chunks);
    return p;
  };
  second::Params apply_params = params(second::Params{}, chunks);
  apply_params.chunk = to_u32(chunk);
  const KernelKey key{.types = {{"V", c.type(call)}, {"ST", load_type("f32", vector)}},
                      .constants = {{"LX", to_u32(columns)}},
                      .includes = row_includes(call, vector)};
  KernelKey stats_key = key, apply_key = key;
  stats_key.kernel = "softmax_columns_stats";
  apply_key.kernel = "softmax_columns_apply";
  const Operand stats = call.temporary(Storage::kF32, {split.outer * stat_chunks * split.inner * 2 * (vector ? 4 : 1)});
  call.emit({.kernel = std::move(stats_key),
             .operands = {in, stats},
             .params = {params(first::Params{}, stat_chunks), {&first::Params::outer}},
             .grid = {.x = {.items = across * stat_chunks, .active = true}},
             .extent_safe = safe});
  call.emit({.kernel = std::move(apply_key),
             .operands = {in, LowerCall::reading(stats), out},
             .params = {apply_params, {&second::Params::outer}},
             .grid = {.x = {.items = across * chunks, .active = true}},
             .extent_safe = safe,
             .in_place = true});
}

}  // namespace

void lower_softmax(LowerCall& call) {
  const TensorType& x = call.input_type(0);
  const int64_t axis = normalize_axis(call.attrs<ops::SoftmaxAttrs>().axis, x.rank());
  const AxisSplit split = split_at(x.shape, axis);
  const Operand in = call.read(0), out = call.write(0);
  const bool vector = loads_by_four(call, split, {in, out});
  const bool safe = axis > 0;  // along axis 0 a row would mix active and inactive elements
  if (split.inner > 1 && emit_streamed(call, in, out, split, safe)) return;
  const RowPlan plan = plan_kept(split, vector, row_threads(call));
  const std::string type = load_type(call.element(out), vector);
  if (plan.chunks == 1) {
    namespace k = wgsl::softmax;
    call.emit({.kernel = {.kernel = "softmax",
                          .types = {{"V", type}},
                          .constants = plan.constants(),
                          .includes = row_includes(call, vector)},
               .operands = {in, out},
               .params = {plan.params<k::Params>(), {&k::Params::rows}},
               .grid = plan.grid(),
               .extent_safe = safe,
               .in_place = true});
    return;
  }
  if (split.inner == 1 && emit_streamed(call, in, out, split, safe)) return;
  if (split.inner > 1) {
    Columns columns{in, out, split, loads_by_four(call, {1, split.inner, 1}, {in, out}), safe};
    if (columns.vector) columns.split.inner /= 4;
    emit_cut_columns(call, columns);
    return;
  }
  const Operand stats = emit_stats(call, in, plan, vector, safe);
  namespace k = wgsl::softmax_apply;
  call.emit({.kernel = {.kernel = "softmax_apply",
                        .types = {{"V", type}},
                        .constants = plan.constants(),
                        .includes = row_includes(call, vector)},
             .operands = {in, stats, out},
             .params = {plan.params<k::Params>(), {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = safe,
             .in_place = true});
}

// The same of the classes that are not the row's label.
static Operand emit_other_stats(LowerCall& call, Operand in, Operand labels, const RowPlan& plan, bool vector,
                                bool extent_safe) {
  namespace k = wgsl::cross_entropy_stats;
  const Operand stats = call.temporary(Storage::kC64, {plan.rows()});
  call.emit({.kernel = {.kernel = "cross_entropy_stats",
                        .types = {{"V", load_type(call.element(in), vector)}},
                        .constants = plan.constants(),
                        .includes = row_includes(call, vector)},
             .operands = {in, labels, stats},
             .params = {plan.params<k::Params>(), {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = extent_safe});
  return LowerCall::reading(stats);
}

static void check_labels(LowerCall& call, int64_t classes) {
  check_indices(call, 1, IndexRange{0, classes}, [](int64_t value, int64_t, int64_t end) {
    return str("Label (", value, ") is out of range for the classes (", end, ").");
  });
}

void lower_cross_entropy(LowerCall& call) {
  namespace k = wgsl::cross_entropy;
  const AxisSplit split = split_at(call.input_type(0).shape, 1);
  check_labels(call, split.cols);
  const Operand logits = call.read(0), labels = call.read(1), loss = call.write(0);
  const bool vector = loads_by_four(call, split, {logits});
  const RowPlan plan = plan_kept(split, vector);
  const Operand stats = emit_other_stats(call, logits, labels, plan, vector, true);
  call.emit(
      {.kernel = {.kernel = "cross_entropy", .types = {{"T", std::string(call.element(logits))}}},
       .operands = {logits, labels, stats, loss},
       .params = {k::Params{.rows = to_u32(split.outer), .classes = to_u32(split.cols), .chunks = to_u32(plan.chunks)},
                  {&k::Params::rows}},
       .grid = {.x = {.items = split.outer, .per_group = 64, .active = true}},
       .extent_safe = true});
}

void lower_cross_entropy_backward(LowerCall& call) {
  namespace k = wgsl::cross_entropy_backward;
  const AxisSplit split = split_at(call.input_type(0).shape, 1);
  check_labels(call, split.cols);
  const Operand logits = call.read(0), labels = call.read(1), d_loss = call.read(2), out = call.write(0);
  const bool vector = loads_by_four(call, split, {logits, out});
  RowPlan plan = plan_kept(split, vector);
  const Operand stats = emit_other_stats(call, logits, labels, plan, vector, false);
  plan.kept = 0;
  const std::string_view element = call.element(out);
  call.emit({.kernel = {.kernel = "cross_entropy_backward",
                        .types = {{"T", std::string(element)}, {"V", load_type(element, vector)}},
                        .constants = plan.constants(),
                        .includes = row_includes(call, vector)},
             .operands = {logits, labels, d_loss, stats, out},
             .params = plan.params<k::Params>(),
             .grid = plan.grid()});
}

}  // namespace rlx::webgpu
