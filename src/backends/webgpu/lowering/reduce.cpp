#include "rlx/ops/reduce.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "wgsl/reduce_axis.h"

namespace rlx::webgpu {

namespace {

using ops::ReduceKind;

ReduceKind kind_of(const OpDef& op) {
  for (const auto kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kProd})
    if (&op == &ops::reduce_op(kind)) return kind;
  fail(ErrorKind::kInternal, str("Op '", op.name, "' is not a reduction."));
}

std::vector<int64_t> sorted_axes(const ops::ReduceAttrs& attrs, int64_t rank) {
  std::vector<int64_t> axes;
  for (const int64_t a : attrs.axes) axes.push_back(normalize_axis(a, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The reduced axes from the first to the last, those of size 1 aside, which count nowhere.
struct Run {
  int64_t first, last;  // first = rank, when there are none
};
Run run_of(const std::vector<int64_t>& axes, const TensorType& x) {
  Run run{x.rank(), x.rank()};
  for (const int64_t a : axes) {
    if (x.dim(a).is(1)) continue;
    run = {std::min(run.first, a), a};
  }
  return run;
}

uint32_t identity_of(ReduceKind kind, DType dtype, bool empty) {
  const bool floats = is_float(dtype) || is_complex(dtype);
  const auto bits = static_cast<uint32_t>(std::min<int64_t>(static_cast<int64_t>(size_of(dtype)) * 8, 32));
  const uint32_t top = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
  switch (kind) {
    case ReduceKind::kSum: return 0;
    case ReduceKind::kMean: return floats && empty ? 0x7fc00000u : 0u;  // NaN
    case ReduceKind::kProd: return floats ? std::bit_cast<uint32_t>(1.0f) : 1u;
    case ReduceKind::kMax:
      if (floats) return 0xff800000u;  // -inf
      return is_signed(dtype) ? ~(top >> 1) : 0;
    case ReduceKind::kMin:
      if (floats) return 0x7f800000u;
      return is_signed(dtype) ? top >> 1 : top;
  }
  return 0;
}

}  // namespace

Combine combine_for(const LowerCall& call, Operand in, Operand out, ReduceKind kind, DType dtype, bool empty) {
  Combine c;
  const std::string from(call.element(in)), to(call.element(out));
  const Storage storage = call.storage(in);
  c.identity = identity_of(kind, dtype, empty);
  c.types = {{"E", from}, {"T", to}};
  if (storage == Storage::kI32 || storage == Storage::kU32) {
    c.partial = storage;
    if (kind == ReduceKind::kMean) {
      c.includes = {{"combine", "combine_wide"}};
      c.may_cut = false;
      return c;
    }
    c.includes = {{"combine", "combine_int"}};
    c.types.emplace_back("Acc", from);
    const auto bytes = static_cast<uint32_t>(size_of(dtype));
    c.constants.emplace_back("UNUSED_BITS", bytes < 4 ? 32 - 8 * bytes : 0u);
  } else if (storage == Storage::kC64) {
    c.partial = Storage::kC64;
    c.includes = {{"combine", "combine_c64"}};
    c.types.clear();
  } else if (kind == ReduceKind::kProd) {
    c.includes = {{"combine", "combine_prod"}};
    c.may_cut = false;
    return c;
  }
  c.constants.emplace_back("OP", static_cast<uint32_t>(kind));
  return c;
}

namespace {

// How a pass reads: one element at a time, four of a row, or four neighbouring columns.
enum class Loads : uint8_t { kOne, kFour, kFourColumns };

// `n`: what a mean divides by. With four columns, `plan` counts them as one.
void emit_pass(LowerCall& call, const Reduction& r, const RowPlan& plan, Loads loads, int64_t n) {
  namespace k = wgsl::reduce_axis;
  const Combine combine = combine_for(call, r.in, r.out, r.kind, r.dtype, n == 0);
  auto params = plan.params<k::Params>();
  params.identity = combine.identity;
  params.n = to_u32(n);
  auto types = combine.types;
  Includes includes = joined(row_includes(call, false), combine.includes);
  if (loads == Loads::kFour) includes.emplace_back("fold1", "fold4");
  if (loads == Loads::kFourColumns) {
    includes.emplace_back("combine", "combine_columns4");
    for (auto& [name, type] : types) type = load_type(type, true);
  }
  types.emplace_back("V", load_type(call.element(r.in), loads != Loads::kOne));
  call.emit({.kernel = {.kernel = "reduce_axis",
                        .types = std::move(types),
                        .constants = joined(plan.constants(), combine.constants),
                        .includes = std::move(includes)},
             .operands = {r.in, r.out},
             .params = {params, {&k::Params::rows}},
             .grid = plan.grid(),
             .extent_safe = r.extent_safe},
            r.step);
}

Loads loads_of(const LowerCall& call, const Reduction& r) {
  if (loads_by_four(call, r.split, {r.in})) return Loads::kFour;
  // Neighbouring columns as if they were one row of four: the same question.
  const bool columns = r.split.inner > 1 && is_float(r.dtype) && r.kind != ReduceKind::kProd && r.split.cols > 0;
  return columns && loads_by_four(call, {1, r.split.inner, 1}, {r.in, r.out}) ? Loads::kFourColumns : Loads::kOne;
}

RowPlan plan_pass(AxisSplit split, Loads loads, bool may_cut) {
  if (loads == Loads::kFourColumns) split.inner /= 4;
  return plan_streaming(split, loads == Loads::kFour, may_cut);
}

}  // namespace

void emit_reduced_chunks(LowerCall& call, const Reduction& r, const RowPlan& plan) {
  emit_pass(call, r, plan, Loads::kOne, r.split.cols);
}

void emit_reduction(LowerCall& call, const Reduction& r) {
  const Loads loads = loads_of(call, r);
  const Combine combine = combine_for(call, r.in, r.out, r.kind, r.dtype, false);
  const RowPlan plan = plan_pass(r.split, loads, combine.may_cut);
  if (plan.chunks == 1) return emit_pass(call, r, plan, loads, r.split.cols);

  Reduction first = r, second = r;
  first.out = call.temporary(combine.partial, {r.split.outer * plan.chunks * r.split.inner});
  if (r.kind == ReduceKind::kMean) first.kind = ReduceKind::kSum;
  emit_pass(call, first, plan, loads, r.split.cols);
  second.in = LowerCall::reading(first.out);
  second.split.cols = plan.chunks;
  const Loads second_loads = loads_of(call, second);
  emit_pass(call, second, plan_pass(second.split, second_loads, false), second_loads, r.split.cols);
}

bool reduce_supports(const LowerSignature& s, const Device&) {
  const std::vector<int64_t> axes = sorted_axes(s.attrs.as<ops::ReduceAttrs>(), s.input(0).rank());
  if (axes.empty()) return !is_complex(s.input(0).dtype);
  const DType dtype = s.input(0).dtype;
  const bool empty = std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return s.input(0).dim(axis).is(0); });
  if (empty && is_int(dtype)) {
    // The mean of no integers is an error, which the host has the words for; the ends of 64 bits do not fit the 32 that
    // integers have here.
    const bool is_end = &s.op == &ops::reduce_max || &s.op == &ops::reduce_min;
    if (&s.op == &ops::reduce_mean || (is_end && size_of(dtype) == 8)) return false;
  }
  const Run run = run_of(axes, s.input(0));
  for (int64_t d = run.first; d < run.last; ++d)
    if (!s.input(0).dim(d).is(1) && !std::binary_search(axes.begin(), axes.end(), d)) return false;
  return true;  // side by side: passes see to it
}

void lower_reduce(LowerCall& call) {
  const TensorType& x = call.input_type(0);
  const std::vector<int64_t> axes = sorted_axes(call.attrs<ops::ReduceAttrs>(), x.rank());
  Reduction r{.in = call.read(0), .out = call.write(0), .kind = kind_of(call.op()), .dtype = x.dtype};
  r.split = {1, 1, 1};
  if (axes.empty()) {
    // A copy, bit for bit: the largest of one element, where a sum would turn -0 to 0.
    r.kind = ReduceKind::kMax;
    r.split.outer = x.shape.num_elements();
    r.extent_safe = true;
  } else {
    const Run run = run_of(axes, x);
    for (int64_t d = 0; d < x.rank(); ++d)
      (d < run.first ? r.split.outer : d > run.last ? r.split.inner : r.split.cols) *= x.dim(d).value();
    r.extent_safe = axes.front() > 0;
  }
  emit_reduction(call, r);
}

}  // namespace rlx::webgpu
