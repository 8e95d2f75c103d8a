#include "backends/webgpu/lowering/rows.h"

#include <algorithm>
#include <bit>

namespace rlx::webgpu {

namespace {

constexpr int64_t kThreads = RowPlan::kThreads;
constexpr int64_t kBusy = int64_t{1} << 19;  // threads that keep a large GPU busy
constexpr int64_t kColumns = 32;             // neighbouring rows that threads read side by side

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

}  // namespace

std::vector<std::pair<std::string, uint32_t>> RowPlan::constants() const {
  std::vector<std::pair<std::string, uint32_t>> out = {
      {"WG", threads}, {"LANES", lanes}, {"BY_COLUMNS", by_columns ? 1u : 0u}};
  if (kept > 0) out.emplace_back("KEPT", kept);
  return out;
}

RowPlan plan_kept(const AxisSplit& split, bool vector, uint32_t most_threads) {
  RowPlan plan{.outer = split.outer, .cols = vector ? split.cols / 4 : split.cols, .inner = split.inner};
  plan.by_columns = split.inner > 1;
  const int64_t usual = vector ? 4 : 8, most = 2 * usual;  // loads: registers for more would cost threads
  int64_t lanes_most = kThreads;
  if (plan.by_columns) {
    // Of the columns, at least what fills 32 bytes; so that longer rows still fit.
    const int64_t slots = std::min<int64_t>(power_of_two(split.inner), 8);
    lanes_most = kThreads / slots;
  } else if (plan.cols > kThreads * most && plan.cols <= most_threads * most) {
    plan.threads = most_threads;
    lanes_most = most_threads;
  }
  if (plan.cols <= lanes_most * most) {
    plan.kept = static_cast<uint32_t>(plan.cols <= lanes_most * usual && !plan.by_columns ? usual : most);
    plan.chunk = plan.cols;
  } else {
    plan.kept = static_cast<uint32_t>(most);
    if (plan.by_columns) lanes_most = kThreads / std::min(power_of_two(split.inner), kColumns);
    plan.chunk = lanes_most * plan.kept;
    plan.chunks = ceil_div(plan.cols, plan.chunk);
  }
  plan.lanes = static_cast<uint32_t>(std::min(lanes_most, power_of_two(ceil_div(plan.chunk, plan.kept))));
  return plan;
}

RowPlan plan_streaming(const AxisSplit& split, bool vector, bool may_cut) {
  RowPlan plan{.outer = split.outer, .cols = vector ? split.cols / 4 : split.cols, .inner = split.inner};
  plan.by_columns = split.inner > 1;
  plan.chunk = plan.cols;
  const int64_t lanes_most = plan.by_columns ? kThreads / std::min(power_of_two(split.inner), kColumns) : kThreads;
  const int64_t rows = std::max<int64_t>(split.outer * split.inner, 1);
  int64_t lanes = std::min(lanes_most, power_of_two(ceil_div(plan.cols, 8)));
  while (lanes < lanes_most && lanes < plan.cols && rows * lanes < kBusy) lanes *= 2;
  plan.lanes = static_cast<uint32_t>(lanes);
  const int64_t least = lanes * 8;  // loads of a chunk: less is not worth a second pass
  if (may_cut && rows * lanes < kBusy && plan.cols >= 2 * least) {
    const int64_t chunks = std::min(plan.cols / least, ceil_div(kBusy, rows * lanes));
    plan.chunk = ceil_div(plan.cols, chunks);
    plan.chunks = ceil_div(plan.cols, plan.chunk);
  }
  return plan;
}

std::vector<std::pair<std::string, uint32_t>> StreamPlan::constants() const {
  std::vector<std::pair<std::string, uint32_t>> out = {
      {"WG", threads}, {"KEPT", kept}, {"STEP", step}, {"WHOLE", whole() ? 1u : 0u}};
  if (!rows) out.emplace_back("LX", columns);
  return out;
}

// What was fastest on an H200, on 256 MiB of several shapes (docs/performance.md).
std::optional<StreamPlan> plan_streamed(const LowerCall& call, const AxisSplit& split, Operand in, Operand out) {
  constexpr int64_t kLeastGroups = 128;
  StreamPlan plan{.split = split, .rows = split.inner == 1};
  plan.vector = loads_by_four(call, plan.rows ? split : AxisSplit{1, split.inner, 1}, {in, out});
  if (plan.rows) {
    if (split.cols <= 32768) plan.threads = 256, plan.kept = 16, plan.step = 4;
    if (plan.vector)
      plan.split.cols /= 4;
    else
      plan.kept *= 4, plan.step *= 4;
  } else {
    if (!plan.vector) return std::nullopt;
    plan.split.inner /= 4;
    const uint32_t wide = call.element(out) == "f16" ? 2 : 1;  // as many bytes side by side
    plan.columns = (split.cols <= 4096 ? 8 : 16) * wide;
    for (const auto& [threads, columns, most] :
         {std::tuple{256u, 32u, 12}, {256u, 16u, 12}, {256u, 8u, 12}, {512u, 8u, 16}})
      if (const int64_t loads = ceil_div(split.cols, threads / (columns * wide)); loads <= most) {
        plan.threads = threads;
        plan.columns = columns * wide;
        plan.step = 4;
        plan.kept = static_cast<uint32_t>(ceil_div(loads, 4)) * 4;
        break;
      }
    if (split.cols > 8192) return std::nullopt;  // the threads of two passes wait less
  }
  if (plan.groups() < kLeastGroups || call.device().limits().workgroup_threads < plan.threads) return std::nullopt;
  return plan;
}

Includes stream_includes(const LowerCall& call, const StreamPlan& plan) {
  Includes out = row_includes(call, plan.vector);
  if (plan.rows) out.emplace_back("streamed_columns", "streamed_rows");
  return out;
}

uint32_t row_threads(const LowerCall& call) {
  return call.device().limits().workgroup_threads >= 512 ? 512 : RowPlan::kThreads;
}

Includes row_includes(const LowerCall& call, bool vector) {
  Includes out;
  if (call.device().features().subgroups && call.options().webgpu.subgroups)
    out = {{"reduce", "reduce_subgroup"}, {"reduce3", "reduce3_subgroup"}};
  if (vector) out.emplace_back("lanes1", "lanes4");
  return out;
}

std::string load_type(std::string_view element, bool vector) {
  return vector ? str("vec4<", element, ">") : std::string(element);
}

bool loads_by_four(const LowerCall& call, const AxisSplit& split, std::initializer_list<Operand> operands) {
  if (split.inner != 1 || split.cols % 4 != 0 || split.cols == 0) return false;
  return std::all_of(operands.begin(), operands.end(), [&](Operand o) {
    return call.storage(o) != Storage::kC64 && call.starts_at_multiple_of(o, 4 * element_bytes(call.element(o)));
  });
}

}  // namespace rlx::webgpu
