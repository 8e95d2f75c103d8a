#include "rlx/ops/pad.h"

#include <algorithm>
#include <array>

#include "backends/host/pad_source.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"

namespace rlx::webgpu {

namespace {

// One axis of the result, in elements of x.
struct PadAxis {
  int64_t size = 1, out = 1, before = 0, after = 0;
  bool is_plain() const { return before == 0 && after == 0; }
};

// Neighbours that are padded by nothing are one axis; with a constant also an axis and what is whole behind it.
std::vector<PadAxis> merged_axes(const ops::PadAttrs& attrs, const std::vector<int64_t>& x,
                                 const std::vector<int64_t>& y) {
  std::vector<PadAxis> axes;
  for (size_t k = 0; k < x.size(); ++k) {
    const PadAxis axis{x[k], y[k], attrs.before[k], attrs.after[k]};
    const bool merges =
        !axes.empty() && axis.is_plain() && (axes.back().is_plain() || attrs.mode == ops::PadMode::kConstant);
    if (!merges) {
      axes.push_back(axis);
      continue;
    }
    PadAxis& last = axes.back();
    last = {last.size * axis.size, last.out * axis.size, last.before * axis.size, last.after * axis.size};
  }
  if (axes.empty()) axes.push_back({});
  return axes;
}

// The coordinate of x behind place c<k> of the result, or that there is none, as statements.
std::string source_text(ParamFields& fields, ops::PadMode mode, size_t k, const PadAxis& axis) {
  if (axis.is_plain()) return str("  let q", k, "x = c", k, ";\n");
  const host::PaddedAxis place(mode, axis.size, axis.before, axis.after);
  fields.add(str("front", k), place.front());
  fields.add(str("first", k), place.first());
  fields.add(str("kept", k), place.kept());
  const std::string front = str("p.front", k), first = str("p.first", k), kept = str("p.kept", k);
  switch (mode) {
    case ops::PadMode::kConstant:
      return str("  let t", k, " = c", k, " - ", front, ";\n  inside = inside && t", k, " < ", kept, ";\n  let q", k,
                 "x = t", k, " + ", first, ";\n");
    case ops::PadMode::kEdge:
      return str("  let q", k, "x = clamp(c", k, ", ", front, ", ", front, " + ", kept, " - 1u) - ", front, " + ",
                 first, ";\n");
    case ops::PadMode::kWrap:
      return str("  let q", k, "x = wrapped(c", k, ", ", front, ", ", kept, ") + ", first, ";\n");
    case ops::PadMode::kReflect:
      return str("  let q", k, "x = mirrored(c", k, ", ", front, ", ", kept, ") + ", first, ";\n");
  }
  fail(ErrorKind::kInternal, "Unknown padding mode.");
}

constexpr std::string_view kHelpers = R"(
// place - front modulo n, without leaving the positive numbers
fn wrapped(place: u32, front: u32, n: u32) -> u32 { return (place + (n - front % n)) % n; }
fn mirrored(place: u32, front: u32, n: u32) -> u32 {
  if (n == 1u) { return 0u; }
  let m = wrapped(place, front, 2u * (n - 1u));
  return select(2u * (n - 1u) - m, m, m < n);
}
)";

}  // namespace

void lower_pad(LowerCall& call) {
  const auto& attrs = call.attrs<ops::PadAttrs>();
  std::vector<PadAxis> axes = merged_axes(attrs, call.input_type(0).shape.sizes(), call.output_type(0).shape.sizes());
  const bool has_value = call.num_inputs() == 2;
  const Operand x = call.read(0), y = call.write(0);
  const int64_t size = element_bytes_of(call.storage(x));
  // Several elements at once, where they are all of x or all beside it.
  PadAxis& inner = axes.back();
  std::vector<int64_t> multiples = {inner.size, inner.out, inner.before, inner.after};
  if ((!inner.is_plain() && attrs.mode != ops::PadMode::kConstant) || (has_value && size == 2)) multiples.push_back(1);
  const Unit unit = widest_unit(call, std::array{x, y}, multiples);
  for (int64_t* n : {&inner.size, &inner.out, &inner.before, &inner.after}) *n /= unit.elements;

  ParamFields fields;
  std::vector<int64_t> sizes, outs;
  std::vector<size_t> order;
  for (size_t k = 0; k < axes.size(); ++k) {
    sizes.push_back(axes[k].size);
    outs.push_back(axes[k].out);
    order.push_back(k);
  }
  const int64_t n = product(std::span<const int64_t>(outs));
  fields.add("n", n);
  std::string body = coordinate_text(fields, outs, order);
  const std::vector<int64_t> strides = row_major_strides(sizes);
  std::string at = "p.x_base";
  for (size_t k = 0; k < axes.size(); ++k) {
    body += source_text(fields, attrs.mode, k, axes[k]);
    fields.add(str("x_s", k), strides[k]);
    at += str(" + q", k, "x * p.x_s", k);
  }
  fields.add("x_base", 0);
  fields.add("y_base", 0);
  std::vector<Operand> operands = {x, y};
  std::string declarations = str("@group(0) @binding(0) var<storage, read> x: array<", unit.type,
                                 ">;\n@group(0) @binding(1) var<storage, read_write> y: array<", unit.type, ">;\n");
  std::string beside = str(unit.type, "()");
  if (has_value) {
    operands.push_back(call.read(1));
    fields.add("given_base", 0);
    const std::string_view element = size == 2 ? "f16" : size == 8 ? "vec2<u32>" : "u32";
    declarations += str("@group(0) @binding(2) var<storage, read> given: array<", element, ">;\n");
    const std::string_view value = "given[p.given_base]";
    beside = size == 8 && unit.elements == 2 ? str("vec4<u32>(", value, ", ", value, ")")
             : unit.elements > 1             ? str(unit.type, "(", value, ")")
                                             : std::string(value);
  }
  declarations += str("@group(0) @binding(", operands.size(), ") var<uniform> p: Params;\n");
  const std::string source =
      str("struct Params {\n", fields.text, "}\n", declarations, kHelpers, "fn value(i: u32) -> ", unit.type,
          " {\n  var r = i;\n  var inside = true;\n", body, "  var v = ", beside, ";\n  if (inside) { v = x[", at,
          "]; }\n  return v;\n}\nfn place(i: u32) -> u32 { return p.y_base + i; }\n", unit_entry(n));
  const bool active = attrs.before.empty() || (attrs.before[0] == 0 && attrs.after[0] == 0);
  call.emit({.kernel = {.kernel = "pad", .source = std::make_shared<std::string>(source)},
             .operands = std::move(operands),
             .params = {std::move(fields.words), active ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}},
             .grid = unit_grid(n, active),
             .extent_safe = active});
}

}  // namespace rlx::webgpu
