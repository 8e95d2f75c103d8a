#include "backends/webgpu/lowering/scatter_reduce.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/elementwise_text.h"
#include "backends/webgpu/lowering/movement.h"
#include "wgsl/segments.h"

namespace rlx::webgpu {

namespace {

using ops::ScatterReduction;

constexpr int64_t kChunk = 64;          // entries that are combined beforehand where they are all of one row
constexpr int64_t kManyUpdates = 2048;  // below, no row is long enough to care

std::string combine_text(ScatterReduction reduction, bool on_float) {
  switch (reduction) {
    case ScatterReduction::kNone: return "b";
    case ScatterReduction::kAdd: return "a + b";
    case ScatterReduction::kMul: return "a * b";
    case ScatterReduction::kMax: return on_float ? "f_max(a, b)" : "max(a, b)";
    case ScatterReduction::kMin: return on_float ? "f_min(a, b)" : "min(a, b)";
  }
  fail(ErrorKind::kInternal, "Unknown reduction.");
}

// How many threads share the updates of one element: with few rows there are many of each, with short rows threads to
// spare.
int64_t lanes_of(const ScatterRows& rows) {
  const auto wide = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows.inner)));
  const int64_t most = std::max<int64_t>(8, 256 / wide);
  int64_t lanes = 1;
  while (lanes < most && lanes * rows.cols * 8 <= rows.count) lanes *= 2;
  return lanes;
}

// What both kernels declare: the updates, the entries, and how two values become one.
struct Texts {
  std::string v, element, bindings, helpers;
};
Texts texts_of(const LowerCall& call, Operand updates, DType dtype, ScatterReduction reduction) {
  Texts t{.v = std::string(register_type(dtype)), .element = std::string(call.element(updates))};
  t.bindings = str("@group(0) @binding(0) var<storage, read> updates: array<", t.element,
                   ">;\n@group(0) @binding(1) var<storage, read> entries: array<vec2<u32>>;\n");
  t.helpers =
      str("fn combine(a: ", t.v, ", b: ", t.v, ") -> ", t.v, " { return ", combine_text(reduction, is_float(dtype)),
          "; }\n", "fn update(o: u32, s: u32, t: u32) -> ", t.v, " {\n  let u = entries[p.entries_base + s].y;\n",
          "  let value = updates[p.updates_base + (o * p.count + u) * p.inner + t];\n  return ",
          load_text("value", dtype), ";\n}\n");
  return t;
}

// partials[o, chunk, t]: the updates of the chunks that are all of one row. One thread per value. A row that has most
// of the updates is not walked by one thread then.
Operand emit_partials(LowerCall& call, Operand entries, int64_t chunks, Operand updates, const ScatterRows& rows,
                      const Texts& t) {
  const DType dtype = call.output_type(0).dtype;
  const Storage storage = is_complex(dtype)  ? Storage::kC64
                          : is_float(dtype)  ? Storage::kF32
                          : is_signed(dtype) ? Storage::kI32
                                             : Storage::kU32;
  const Operand partials = call.temporary(storage, {rows.outer * chunks * rows.inner});
  const int64_t n = rows.outer * chunks * rows.inner;
  ParamFields fields;
  fields.add("n", n);
  fields.add("inner", rows.inner);
  fields.add("chunks", chunks);
  fields.add("count", rows.count);
  for (const char* name : {"updates_base", "entries_base", "partials_base"}) fields.add(name, 0);
  const std::string source = str(kScalarIncludes, "struct Params {\n", fields.text, "}\n", t.bindings,
                                 "@group(0) @binding(2) var<storage, read_write> partials: array<", t.v,
                                 ">;\n@group(0) @binding(3) var<uniform> p: Params;\n", t.helpers, R"(
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let q = i / p.inner;
  let o = q / p.chunks;
  let first = (q - o * p.chunks) * 64u;
  let key = entries[p.entries_base + first].x;
  if (key == 0xffffffffu || key != entries[p.entries_base + first + 63u].x) { return; }
  let t = i - q * p.inner;
  var sum = update(o, first, t);
  for (var s = first + 1u; s < first + 64u; s += 1u) { sum = combine(sum, update(o, s, t)); }
  partials[p.partials_base + i] = sum;
}
)");
  call.emit({.kernel = {.kernel = "scatter_partials", .source = std::make_shared<std::string>(source)},
             .operands = {updates, LowerCall::reading(entries), partials},
             .params = {std::move(fields.words), {}},
             .grid = {.x = {.items = n, .per_group = 256}}},
            "scatter_partials");
  return partials;
}

}  // namespace

void emit_scatter_reduce(LowerCall& call, Operand entries, int64_t total, std::optional<Operand> x, Operand updates,
                         const ScatterRows& rows, ScatterReduction reduction) {
  const Operand y = call.write(0);
  const DType dtype = call.output_type(0).dtype;
  const Operand starts = call.temporary(Storage::kU32, {rows.cols + 1});
  call.emit({.kernel = {"segments"},
             .operands = {LowerCall::reading(entries), starts},
             .params = wgsl::segments::Params{.n = to_u32(rows.cols + 1), .total = to_u32(total)},
             .grid = {.x = {.items = rows.cols + 1, .per_group = 256}}},
            "segments");
  const Texts t = texts_of(call, updates, dtype, reduction);
  const int64_t n = rows.outer * rows.cols * rows.inner, lanes = lanes_of(rows), own = 256 / lanes;
  const int64_t chunks = rows.count / kChunk;
  ParamFields fields;
  fields.add("n", n);
  fields.add("inner", rows.inner);
  fields.add("cols", rows.cols);
  fields.add("count", rows.count);
  fields.add("chunks", chunks);
  for (const char* name : {"updates_base", "entries_base", "starts_base", "x_base", "partials_base", "y_base"})
    fields.add(name, 0);
  std::vector<Operand> operands = {updates, LowerCall::reading(entries), LowerCall::reading(starts)};
  std::string bindings = t.bindings + "@group(0) @binding(2) var<storage, read> starts: array<u32>;\n";
  const auto bind = [&](Operand operand, std::string_view name, std::string_view type) {
    bindings += str("@group(0) @binding(", operands.size(), ") var<storage, ", operand.write ? "read_write" : "read",
                    "> ", name, ": array<", type, ">;\n");
    operands.push_back(operand);
  };
  if (x) bind(*x, "x", t.element);
  std::string by_chunks;
  if (rows.count >= kManyUpdates) {
    bind(LowerCall::reading(emit_partials(call, entries, chunks, updates, rows, t)), "partials", t.v);
    by_chunks = str("    let low = (s + 63u) / 64u;\n    let high = end / 64u;\n    if (low < high) {\n",
                    "      for (s += lane; s < low * 64u; s += LANES) { sum = combine(sum, update(o, s, t)); }\n",
                    "      for (var c = low + lane; c < high; c += LANES) {\n        sum = combine(sum, ",
                    "partials[p.partials_base + (o * p.chunks + c) * p.inner + t]);\n      }\n",
                    "      s = high * 64u;\n    }\n");
  }
  bind(y, "y", t.element);
  bindings += str("@group(0) @binding(", operands.size(), ") var<uniform> p: Params;\n");
  // Sums start at 0 and products at 1, whoever adds them up; maxima may all start at x.
  const bool from_x = reduction == ScatterReduction::kMax || reduction == ScatterReduction::kMin;
  const std::string x_value = x ? load_text("x[p.x_base + e]", dtype) : str(t.v, "()");
  const std::string start = from_x ? x_value : reduction == ScatterReduction::kMul ? str(t.v, "(1)") : str(t.v, "()");
  std::string source =
      str(kScalarIncludes, "struct Params {\n", fields.text, "}\n", bindings, t.helpers, "const OWN: u32 = ", own,
          "u;\nconst LANES: u32 = ", lanes, "u;\nvar<workgroup> cells: array<", t.v, ", 256>;\n", R"(
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let e = (group.x + group.y * groups.x) * OWN + thread % OWN;
  let lane = thread / OWN;
  var sum = )",
          t.v, R"(();
  if (e < p.n) {
    let q = e / p.inner;
    let t = e - q * p.inner;
    let o = q / p.cols;
    let row = q - o * p.cols;
    var s = starts[p.starts_base + row];
    let end = starts[p.starts_base + row + 1u];
    sum = )",
          start, ";\n", by_chunks,
          "    for (s += lane; s < end; s += LANES) { sum = combine(sum, update(o, s, t)); }\n  }\n");
  if (lanes > 1)
    source += R"(
  cells[thread] = sum;
  for (var half = LANES / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane < half) { cells[thread] = combine(cells[thread], cells[thread + half * OWN]); }
  }
  sum = cells[thread];
)";
  const std::string value = x && !from_x ? str("combine(", x_value, ", sum)") : std::string("sum");
  source +=
      str("  if (e < p.n && lane == 0u) { y[p.y_base + e] = ", store_text(wrap_text(value, dtype), dtype, t.element),
          "; }\n}\n");
  call.emit({.kernel = {.kernel = "scatter_reduce", .source = std::make_shared<std::string>(std::move(source))},
             .operands = std::move(operands),
             .params = {std::move(fields.words), {}},
             .grid = {.x = {.items = n, .per_group = own}},
             .in_place = true});
}

}  // namespace rlx::webgpu
