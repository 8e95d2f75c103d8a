// Elements chosen by indices that come as data.
#include "rlx/ops/gather.h"

#include <array>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "rlx/ops/gather_nd.h"
#include "wgsl/gather.h"
#include "wgsl/gather_nd.h"
#include "wgsl/gather_packed.h"

namespace rlx::webgpu {

namespace {

uint32_t per_thread(int64_t n) { return static_cast<uint32_t>(units_per_thread(n)); }

// The table as it lies, packed: unpacked it would be larger than what is read of it.
void emit_packed_gather(LowerCall& call, Operand table, const AxisSplit& split) {
  namespace k = wgsl::gather_packed;
  const int64_t count = call.input_type(1).shape.num_elements(), n = split.outer * count * split.inner;
  const Operand out = call.write(0);
  call.emit(
      {.kernel = {"gather_packed",
                  {{"T", std::string(call.element(out))}},
                  {{"KIND", packed_kind(call.input_type(0).dtype)}, {"PER", per_thread(n)}}},
       .operands = {table, call.read(1), out},
       .params = {k::Params{
                      .n = to_u32(n), .row = to_u32(split.inner), .count = to_u32(count), .cols = to_u32(split.cols)},
                  {&k::Params::n}},
       .grid = unit_grid(n, true),
       .extent_safe = true});
}

}  // namespace

void lower_gather(LowerCall& call) {
  namespace k = wgsl::gather;
  const int64_t axis = normalize_axis(call.attrs<ops::GatherAttrs>().axis, call.input_type(0).rank());
  const auto [outer, cols, inner] = split_at(call.input_type(0).shape, axis);
  const int64_t count = call.input_type(1).shape.num_elements();
  const Operand out = call.write(0);
  check_indices(call, 1, wrapping(cols));
  if (cols == 0) return emit_zeros(call, out, call.output_type(0).shape.num_elements());
  if (const Operand packed = call.read_packed(0); call.storage(packed) == Storage::kPacked)
    return emit_packed_gather(call, packed, {outer, cols, inner});
  const Operand table = call.read(0), indices = call.read(1);
  const Unit unit = widest_unit(call, std::array{table, out}, std::array{inner});
  const int64_t row = inner / unit.elements, n = outer * count * row;
  // Along axis 0 the indices are the outermost axis: fewer of them are read.
  call.emit({.kernel = {"gather", {{"T", unit.type}}, {{"PER", per_thread(n)}}},
             .operands = {table, indices, out},
             .params = {k::Params{.n = to_u32(n), .row = to_u32(row), .count = to_u32(count), .cols = to_u32(cols)},
                        {&k::Params::n}},
             .grid = unit_grid(n, true),
             .extent_safe = true});
}

void lower_gather_nd(LowerCall& call) {
  namespace k = wgsl::gather_nd;
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), tuples = call.input_type(1).shape.sizes();
  const auto batch = static_cast<size_t>(call.attrs<ops::GatherNdAttrs>().batch_dims);
  const auto depth = static_cast<size_t>(tuples.back());
  const std::span<const int64_t> all(x);
  const int64_t batches = product(all.first(batch)), inner = product(all.subspan(batch + depth));
  const int64_t count = product(std::span<const int64_t>(tuples).first(tuples.size() - 1));
  const Operand in = call.read(0), indices = call.read(1), out = call.write(0);
  std::vector<uint32_t> sizes(1, 0);  // a table is not empty
  std::vector<IndexRange> ranges;
  for (size_t d = 0; d < depth; ++d) {
    sizes.resize(depth);
    sizes[d] = to_u32(x[batch + d]);
    ranges.push_back(wrapping(x[batch + d]));
  }
  check_indices(call, 1, ranges);
  if (product(all.subspan(batch, depth)) == 0) return emit_zeros(call, out, call.output_type(0).shape.num_elements());
  const Unit unit = widest_unit(call, std::array{in, out}, std::array{inner});
  const int64_t row = inner / unit.elements, n = count * row;
  call.emit({.kernel = {"gather_nd", {{"T", unit.type}}, {{"PER", per_thread(n)}}},
             .operands = {in, indices, call.table(sizes), out},
             .params = {k::Params{.n = to_u32(n),
                                  .row = to_u32(row),
                                  .depth = to_u32(tuples.back()),
                                  .per_batch = to_u32(count / batches)},
                        {&k::Params::n}},
             .grid = unit_grid(n, true),
             .extent_safe = true});
}

void lower_gather_elements(LowerCall& call) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), y = call.output_type(0).shape.sizes();
  const auto axis =
      static_cast<size_t>(normalize_axis(call.attrs<ops::GatherElementsAttrs>().axis, call.input_type(0).rank()));
  const Operand in = call.read(0), indices = call.read(1), out = call.write(0);
  const int64_t n = product(std::span<const int64_t>(y));
  check_indices(call, 1, wrapping(x[axis]));
  if (x[axis] == 0) return emit_zeros(call, out, n);
  const Unit unit = widest_unit(call, std::array{in, out}, std::array{int64_t{1}});
  std::vector<size_t> axes(y.size()), others;
  for (size_t k = 0; k < y.size(); ++k) {
    axes[k] = k;
    if (k != axis) others.push_back(k);
  }
  const std::vector<int64_t> strides = row_major_strides(x);
  ParamFields fields;
  fields.add("n", n);
  const std::string coordinates = coordinate_text(fields, y, axes), offset = offset_text(fields, "x", strides, others);
  fields.add("size", x[axis]);
  fields.add("step", strides[axis]);
  for (const char* name : {"x_base", "indices_base", "y_base"}) fields.add(name, 0);
  const std::string source = str(
      "// @include \"index.wgsl\"\nstruct Params {\n", fields.text,
      "}\n@group(0) @binding(0) var<storage, read> x: array<", unit.type,
      ">;\n@group(0) @binding(1) var<storage, read> indices: array<i32>;\n",
      "@group(0) @binding(2) var<storage, read_write> y: array<", unit.type,
      ">;\n@group(0) @binding(3) var<uniform> p: Params;\n", "fn value(i: u32) -> ", unit.type, " {\n  var r = i;\n",
      coordinates, "  let at = index_of(indices[p.indices_base + i], p.size) * p.step", offset,
      ";\n  return x[p.x_base + at];\n}\nfn place(i: u32) -> u32 { return p.y_base + i; }\n", unit_entry(n));
  call.emit({.kernel = {.kernel = "gather_elements", .source = std::make_shared<std::string>(source)},
             .operands = {in, indices, out},
             .params = {std::move(fields.words), {0}},
             .grid = unit_grid(n, true),
             .extent_safe = axis > 0});
}

}  // namespace rlx::webgpu
