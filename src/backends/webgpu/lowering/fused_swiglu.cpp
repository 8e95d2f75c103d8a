#include "rlx/ops/fused_swiglu.h"

#include "backends/webgpu/lowering/elementwise_text.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/movement.h"

namespace rlx::webgpu {

bool fused_swiglu_supports(const LowerSignature& s, const Device&) { return is_float(s.output(0).dtype); }

// Rounds where its definition does: silu and the product are of the operand's dtype, the result of its own.
void lower_fused_swiglu(LowerCall& call) {
  const TensorType& type = call.input_type(0);
  const int64_t half = type.shape[type.rank() - 1].value() / 2, rows = type.shape.num_elements() / (2 * half);
  const Operand x = call.read(0), y = call.write(0);
  const bool by_four = half % 4 == 0 && call.starts_at_multiple_of(x, 16) && call.starts_at_multiple_of(y, 16);
  const int64_t own = by_four ? half / 4 : half, n = rows * own;
  const bool gate_first = call.attrs<ops::FusedSwigluAttrs>().gate_first;
  ParamFields fields;
  fields.add("n", n);
  fields.add("own", own);  // threads of a row
  fields.add("x_base", 0);
  fields.add("y_base", 0);
  const auto rounded = [](const std::string& value, DType dtype) {
    return dtype == DType::F16    ? str("round_f16(", value, ")")
           : dtype == DType::BF16 ? str("round_bf16(", value, ")")
                                  : value;
  };
  const std::string x_element(call.element(x)), y_element(call.element(y));
  const auto array_of = [&](const std::string& element) { return by_four ? str("vec4<", element, ">") : element; };
  std::string source =
      str(kScalarIncludes, "struct Params {\n", fields.text, "}\n@group(0) @binding(0) var<storage, read> x: array<",
          array_of(x_element), ">;\n@group(0) @binding(1) var<storage, read_write> y: array<", array_of(y_element),
          ">;\n@group(0) @binding(2) var<uniform> p: Params;\n",
          "fn swiglu(up: f32, gate: f32) -> f32 {\n  let s = ", rounded("f_silu(gate)", type.dtype),
          ";\n  let v = ", rounded("up * s", type.dtype), ";\n  return ",
          call.output_type(0).dtype == type.dtype ? "v" : rounded("v", call.output_type(0).dtype),
          ";\n}\nfn value(i: u32) -> ", array_of(y_element), R"( {
  let row = i / p.own;
  let a = x[p.x_base + i + row * p.own];
  let b = x[p.x_base + i + row * p.own + p.own];
)");
  const auto lane = [&](const std::string& suffix) {
    const std::string a = str("f32(a", suffix, ")"), b = str("f32(b", suffix, ")");
    return str(y_element, "(swiglu(", gate_first ? b : a, ", ", gate_first ? a : b, "))");
  };
  source += by_four ? str("  return vec4<", y_element, ">(", lane(".x"), ", ", lane(".y"), ", ", lane(".z"), ", ",
                          lane(".w"), ");\n}\n")
                    : str("  return ", lane(""), ";\n}\n");
  source += str("fn place(i: u32) -> u32 { return p.y_base + i; }\n", unit_entry(n));
  call.emit({.kernel = {.kernel = "fused_swiglu", .source = std::make_shared<std::string>(std::move(source))},
             .operands = {x, y},
             .params = {std::move(fields.words), {0}},
             .grid = unit_grid(n, true),
             .extent_safe = type.rank() > 1});
}

}  // namespace rlx::webgpu
