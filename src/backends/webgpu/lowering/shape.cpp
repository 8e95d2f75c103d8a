// Ops that move elements by strides: each is a Movement, or several.
#include <algorithm>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"
#include "rlx/ops.h"

namespace rlx::webgpu {

void lower_expand(LowerCall& call) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes(), y = call.output_type(0).shape.sizes();
  Movement m{.sizes = y, .from_strides = std::vector<int64_t>(y.size(), 0), .to_strides = row_major_strides(y)};
  const std::vector<int64_t> own = row_major_strides(x);
  const size_t added = y.size() - x.size();
  for (size_t k = 0; k < x.size(); ++k)
    if (x[k] != 1) m.from_strides[added + k] = own[k];
  const bool active = added == 0 && !y.empty() && x[0] == y[0];
  emit_movement(call, call.read(0), call.write(0), std::move(m), active);
}

void lower_narrow(LowerCall& call) {
  const auto& attrs = call.attrs<ops::NarrowAttrs>();
  const std::vector<int64_t> y = call.output_type(0).shape.sizes();
  const int64_t axis = normalize_axis(attrs.axis, call.input_type(0).rank());
  Movement m{.sizes = y,
             .from_strides = row_major_strides(call.input_type(0).shape.sizes()),
             .to_strides = row_major_strides(y)};
  m.from_first = attrs.start.value() * m.from_strides[static_cast<size_t>(axis)];
  emit_movement(call, call.read(0), call.write(0), std::move(m), axis > 0);
}

void lower_slice(LowerCall& call) {
  const auto& attrs = call.attrs<ops::SliceAttrs>();
  const std::vector<int64_t> y = call.output_type(0).shape.sizes();
  Movement m{.sizes = y,
             .from_strides = row_major_strides(call.input_type(0).shape.sizes()),
             .to_strides = row_major_strides(y)};
  for (size_t k = 0; k < y.size(); ++k) {
    m.from_first += attrs.start[k].value() * m.from_strides[k];
    m.from_strides[k] *= attrs.step[k];
  }
  const bool active = !y.empty() && attrs.start[0].is(0) && attrs.step[0] == 1;
  emit_movement(call, call.read(0), call.write(0), std::move(m), active);
}

void lower_transpose(LowerCall& call) {
  const std::vector<int64_t>& perm = call.attrs<ops::TransposeAttrs>().perm;
  const std::vector<int64_t> y = call.output_type(0).shape.sizes();
  const std::vector<int64_t> own = row_major_strides(call.input_type(0).shape.sizes());
  Movement m{.sizes = y, .to_strides = row_major_strides(y)};
  for (const int64_t axis : perm) m.from_strides.push_back(own[static_cast<size_t>(axis)]);
  emit_movement(call, call.read(0), call.write(0), std::move(m), !perm.empty() && perm[0] == 0);
}

// Each pixel becomes a square of four: both axes are followed by one of size 2 along which the operand stays.
void lower_resize_nearest_2x(LowerCall& call) {
  const std::vector<int64_t> x = call.input_type(0).shape.sizes();
  Movement m{.sizes = {x[0] * x[1] * x[2], 2, x[3], 2}, .from_strides = {x[3], 0, 1, 0}};
  m.to_strides = row_major_strides(m.sizes);
  emit_movement(call, call.read(0), call.write(0), std::move(m), true);
}

namespace {

// Some neighbouring operands of a concat, `sizes[i]` units along the axis each, in one dispatch: a thread per unit of
// the result finds its operand by its place along the axis.
struct Joined {
  Unit unit;
  int64_t outer = 0, cols = 0, first = 0;  // of the result: rows, units in a row, where the first operand starts
  std::vector<int64_t> sizes;
};
void emit_joined(LowerCall& call, std::vector<Operand> operands, const Joined& j, bool active) {
  const size_t count = j.sizes.size();
  ParamFields fields;
  int64_t own = 0;
  for (const int64_t n : j.sizes) own += n;
  fields.add("n", j.outer * own);
  fields.add("own", own);
  fields.add("cols", j.cols);
  fields.add("first", j.first);
  std::string declarations, branches;
  int64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    declarations += str("@group(0) @binding(", i, ") var<storage, read> x", i, ": array<", j.unit.type, ">;\n");
    fields.add(str("x", i, "_base"), 0);
    fields.add(str("size", i), j.sizes[i]);
    fields.add(str("start", i), end);
    end += j.sizes[i];
    if (i + 1 < count) fields.add(str("end", i), end);
    branches += str(i ? "  else " : "  ", i + 1 < count ? str("if (c < p.end", i, ") ") : std::string(), "{ v = x", i,
                    "[p.x", i, "_base + row * p.size", i, " + c - p.start", i, "]; }\n");
  }
  fields.add("y_base", 0);
  declarations += str("@group(0) @binding(", count, ") var<storage, read_write> y: array<", j.unit.type, ">;\n",
                      "@group(0) @binding(", count + 1, ") var<uniform> p: Params;\n");
  const int64_t n = j.outer * own;
  const std::string source =
      str("struct Params {\n", fields.text, "}\n", declarations, "fn value(i: u32) -> ", j.unit.type,
          " {\n  let row = i / p.own;\n  let c = i - row * p.own;\n  var v: ", j.unit.type, ";\n", branches,
          "  return v;\n}\nfn place(i: u32) -> u32 {\n  let row = i / p.own;\n",
          "  return p.y_base + p.first + row * p.cols + i - row * p.own;\n}\n", unit_entry(n));
  call.emit({.kernel = {.kernel = "concat", .source = std::make_shared<std::string>(source)},
             .operands = std::move(operands),
             .params = {std::move(fields.words), active ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}},
             .grid = unit_grid(n, active),
             .extent_safe = active});
}

}  // namespace

void lower_concat(LowerCall& call) {
  const int64_t axis = normalize_axis(call.attrs<ops::ConcatAttrs>().axis, call.output_type(0).rank());
  const auto [outer, cols, inner] = split_at(call.output_type(0).shape, axis);
  const Operand out = call.write(0);
  std::vector<Operand> operands;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < call.num_inputs(); ++i) {
    const int64_t own = call.input_type(i).shape[axis].value() * inner;
    if (own * outer == 0) continue;
    operands.push_back(call.read(i));
    sizes.push_back(own);
  }
  // One unit for all: what divides every operand's rows divides the places where they start.
  std::vector<Operand> all = operands;
  all.push_back(out);
  Joined joined{.unit = widest_unit(call, all, sizes), .outer = outer};
  for (int64_t& n : sizes) n /= joined.unit.elements;
  joined.cols = cols * inner / joined.unit.elements;
  const size_t most = std::min<size_t>(call.device().limits().storage_bindings, 8) - 1;
  for (size_t i = 0; i < sizes.size(); i += most) {
    const size_t end = std::min(sizes.size(), i + most);
    const auto from = static_cast<std::ptrdiff_t>(i), to = static_cast<std::ptrdiff_t>(end);
    joined.sizes.assign(sizes.begin() + from, sizes.begin() + to);
    std::vector<Operand> part(operands.begin() + from, operands.begin() + to);
    part.push_back(out);
    emit_joined(call, std::move(part), joined, axis > 0);
    for (const int64_t n : joined.sizes) joined.first += n;
  }
}

}  // namespace rlx::webgpu
