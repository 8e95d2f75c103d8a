// Element-wise ops and regions: straight-line WGSL is generated for each distinct chain, types and way of reading the
// operands; sizes are parameters, so that a kernel is compiled once for all shapes.
#include <algorithm>
#include <array>

#include "backends/webgpu/lowering/lowerings.h"
#include "rlx/ops.h"

namespace rlx::webgpu {

namespace {

// A row per op: WGSL on operands $a, $b, $c in registers. Floats are f32 there, integers i32 or u32, Bool bool.
struct ExpressionRow {
  const OpDef* op;
  std::string_view on_float, on_int, on_uint, on_bool;  // by the dtype of operand 0; empty: the host runs it
  bool wraps = false;                                   // narrow integers may overflow
};

// clang-format off
const ExpressionRow kRows[] = {
    {&ops::abs, "abs($a)", "abs($a)", "", "", true},
    {&ops::acos, "f_acos($a)"},
    {&ops::acosh, "f_acosh($a)"},
    {&ops::add, "$a + $b", "$a + $b", "$a + $b", "", true},
    {&ops::asin, "f_asin($a)"},
    {&ops::asinh, "f_asinh($a)"},
    {&ops::atan, "f_atan($a)"},
    {&ops::atanh, "f_atanh($a)"},
    {&ops::bit_and, "", "$a & $b", "$a & $b", "$a && $b"},
    {&ops::bit_not, "", "~$a", "~$a", "!$a", true},
    {&ops::bit_or, "", "$a | $b", "$a | $b", "$a || $b"},
    {&ops::bit_xor, "", "$a ^ $b", "$a ^ $b", "$a != $b"},
    {&ops::ceil, "ceil($a)"},
    {&ops::cos, "f_cos($a)"},
    {&ops::cosh, "f_cosh($a)"},
    {&ops::div, "$a / $b", "$a / select($b, 1, $b == 0)", "$a / max($b, 1u)", "", true},
    {&ops::eq, "f_eq($a, $b)", "$a == $b", "$a == $b", "$a == $b"},
    {&ops::erf, "f_erf($a)"},
    {&ops::exp, "f_exp($a)"},
    {&ops::floor, "floor($a)"},
    {&ops::ge, "$a >= $b", "$a >= $b", "$a >= $b", ""},
    {&ops::gelu, "f_gelu($a)"},
    {&ops::gelu_approx, "f_gelu_approx($a)"},
    {&ops::gt, "$a > $b", "$a > $b", "$a > $b", ""},
    {&ops::is_nan, "nan_of($a)"},
    {&ops::le, "$a <= $b", "$a <= $b", "$a <= $b", ""},
    {&ops::log, "f_log($a)"},
    {&ops::lt, "$a < $b", "$a < $b", "$a < $b", ""},
    {&ops::max, "f_max($a, $b)", "max($a, $b)", "max($a, $b)", ""},
    {&ops::min, "f_min($a, $b)", "min($a, $b)", "min($a, $b)", ""},
    {&ops::mul, "$a * $b", "$a * $b", "$a * $b", "", true},
    {&ops::ne, "!f_eq($a, $b)", "$a != $b", "$a != $b", "$a != $b"},
    {&ops::neg, "-$a", "-$a", "", "", true},
    {&ops::pow, "f_pow($a, $b)", "i_pow($a, $b)", "u_pow($a, $b)", "", true},
    {&ops::relu, "f_relu($a)", "max($a, 0)", "", ""},
    {&ops::round, "round($a)"},
    {&ops::rsqrt, "f_rsqrt($a)"},
    {&ops::shift_left, "", "i_shl($a, $b)", "u_shl($a, $b)", "", true},
    {&ops::shift_right, "", "i_shr($a, $b)", "u_shr($a, $b)", ""},
    {&ops::sigmoid, "f_sigmoid($a)"},
    {&ops::sign, "f_sign($a)", "sign($a)", "min($a, 1u)", ""},
    {&ops::silu, "f_silu($a)"},
    {&ops::sin, "f_sin($a)"},
    {&ops::sinh, "f_sinh($a)"},
    {&ops::sqrt, "sqrt($a)"},
    {&ops::sub, "$a - $b", "$a - $b", "$a - $b", "", true},
    {&ops::tan, "f_tan($a)"},
    {&ops::tanh, "f_tanh($a)"},
};
// clang-format on

const ExpressionRow* find_row(const OpDef& op) {
  for (const ExpressionRow& row : kRows)
    if (row.op == &op) return &row;
  return nullptr;
}

// What a dtype is in a register.
std::string_view register_type(DType dtype) {
  if (dtype == DType::Bool) return "bool";
  if (is_float(dtype)) return "f32";
  return is_signed(dtype) ? "i32" : "u32";
}

std::string_view expression_of(const ExpressionRow& row, DType dtype) {
  if (dtype == DType::Bool) return row.on_bool;
  if (is_float(dtype)) return row.on_float;
  if (is_int(dtype)) return is_signed(dtype) ? row.on_int : row.on_uint;
  return {};
}

std::string fill(std::string_view expression, const std::vector<std::string>& operands) {
  std::string out;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '$') {
      out += expression[i];
      continue;
    }
    out += operands[static_cast<size_t>(expression[++i] - 'a')];
  }
  return out;
}

// The low bits of a narrow integer, as its dtype has them.
std::string wrap(const std::string& x, DType dtype) {
  switch (dtype) {
    case DType::I8: return str("((", x, ") << 24u) >> 24u");
    case DType::I16: return str("((", x, ") << 16u) >> 16u");
    case DType::U8: return str("(", x, ") & 0xffu");
    case DType::U16: return str("(", x, ") & 0xffffu");
    default: return x;
  }
}

std::string cast_text(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  // A step in half precision may carry more digits in its register: what leaves it is rounded.
  if (from == DType::F16) return cast_text(str("round_f16(", x, ")"), DType::F32, to);
  if (from == DType::BF16) return cast_text(str("round_bf16(", x, ")"), DType::F32, to);
  if (to == DType::Bool && is_float(from)) return str("bool_of(", x, ")");
  if (to == DType::Bool) return str("(", x, ") != ", register_type(from), "(0)");
  if (is_float(to)) {
    const std::string wide = is_float(from)        ? x
                             : from == DType::Bool ? str("select(0.0, 1.0, ", x, ")")
                                                   : str("f32(", x, ")");
    if (to == DType::F16) return str("round_f16(", wide, ")");
    if (to == DType::BF16) return str("round_bf16(", wide, ")");
    return wide;
  }
  const std::string_view type = register_type(to);
  if (from == DType::Bool) return str("select(", type, "(0), ", type, "(1), ", x, ")");
  if (is_float(from)) {
    switch (to) {
      case DType::I8: return str("i32_from_f32(", x, ", -128, 127)");
      case DType::I16: return str("i32_from_f32(", x, ", -32768, 32767)");
      case DType::U8: return str("u32_from_f32(", x, ", 255u)");
      case DType::U16: return str("u32_from_f32(", x, ", 65535u)");
      case DType::U32:
      case DType::U64: return str("u32_from_f32(", x, ", 4294967295u)");
      default: return str("i32_from_f32(", x, ", i32(-2147483647 - 1), 2147483647)");
    }
  }
  const std::string same = register_type(from) == type ? x : str("bitcast<", type, ">(", x, ")");
  return wrap(same, to);
}

// A chain on inputs of known dtypes as the body of a WGSL function of i0, i1, …; empty when a step has no expression.
struct ChainText {
  std::string body;
  DType result = DType::F32;
};
std::optional<ChainText> chain_text(const Chain& chain, std::span<const DType> inputs) {
  ChainText out;
  std::vector<DType> steps;
  for (const ChainStep& step : chain) {
    std::vector<std::string> operands;
    std::vector<DType> dtypes;
    for (const ChainOperand& o : step.operands) {
      operands.push_back(str(o.is_step ? "s" : "i", o.index));
      dtypes.push_back(o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)]);
    }
    for (const DType d : dtypes)
      if (d == DType::F64 || is_complex(d)) return std::nullopt;
    DType result = dtypes[0];
    std::string text;
    if (step.op == &ops::cast) {
      result = step.to.value_or(dtypes[0]);
      if (result == DType::F64 || is_complex(result)) return std::nullopt;
      text = cast_text(operands[0], dtypes[0], result);
    } else if (step.op == &ops::where) {
      result = dtypes[1];
      text = str("select(", operands[2], ", ", operands[1], ", ", cast_text(operands[0], dtypes[0], DType::Bool), ")");
    } else {
      const ExpressionRow* row = find_row(*step.op);
      const std::string_view expression = row ? expression_of(*row, dtypes[0]) : std::string_view();
      if (expression.empty()) return std::nullopt;
      const bool compares = step.op == &ops::eq || step.op == &ops::ne || step.op == &ops::lt || step.op == &ops::le ||
                            step.op == &ops::gt || step.op == &ops::ge || step.op == &ops::is_nan;
      if (compares) result = DType::Bool;
      text = fill(expression, operands);
      if (row->wraps) text = wrap(text, dtypes[0]);
    }
    out.body += str("  let s", steps.size(), " = ", text, ";\n");
    steps.push_back(result);
  }
  out.result = steps.back();
  out.body += str("  return s", steps.size() - 1, ";\n");
  return out;
}

// The node as a chain: a region's own, or of one step.
std::optional<Chain> chain_of(const OpDef& op, const Attrs& attrs, size_t num_inputs) {
  if (&op == &ops::elementwise_region) {
    const auto& a = attrs.as<ops::ElementwiseRegionAttrs>();
    if (a.prologue != ops::RegionPrologue::kNone) return std::nullopt;
    return a.chain;
  }
  ChainStep step{.op = &op};
  for (size_t i = 0; i < num_inputs; ++i) step.operands.push_back({false, static_cast<int32_t>(i)});
  if (&op == &ops::cast) step.to = attrs.as<ops::CastAttrs>().to;
  return Chain{step};
}

// How an operand is read for the elements of the result.
enum class Reads {
  kFull,     // element i for element i
  kScalar,   // the same for all
  kStrided,  // by strides over the merged axes
};

struct Access {
  Reads reads = Reads::kFull;
  std::vector<int64_t> strides;  // over the merged axes
  bool vector = false;           // four elements in one load
};

// The axes of the result with neighbours merged where every operand allows it.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<Access> operands;
};
Layout merge_axes(const std::vector<int64_t>& result, const std::vector<std::vector<int64_t>>& operands) {
  const size_t rank = result.size();
  std::vector<std::vector<int64_t>> strides(operands.size(), std::vector<int64_t>(rank, 0));
  for (size_t o = 0; o < operands.size(); ++o) {
    int64_t stride = 1;
    for (size_t k = operands[o].size(); k-- > 0;) {
      const size_t axis = rank - operands[o].size() + k;
      if (operands[o][k] != 1) strides[o][axis] = stride;
      stride *= operands[o][k];
    }
  }
  Layout layout;
  layout.operands.resize(operands.size());
  for (size_t axis = 0; axis < rank; ++axis) {
    if (result[axis] == 1) continue;
    bool merges = !layout.sizes.empty();
    for (size_t o = 0; o < operands.size() && merges; ++o)
      merges = layout.operands[o].strides.back() == strides[o][axis] * result[axis];
    if (!merges) {
      layout.sizes.push_back(result[axis]);
      for (size_t o = 0; o < operands.size(); ++o) layout.operands[o].strides.push_back(strides[o][axis]);
      continue;
    }
    layout.sizes.back() *= result[axis];
    for (size_t o = 0; o < operands.size(); ++o) layout.operands[o].strides.back() = strides[o][axis];
  }
  if (layout.sizes.empty()) {
    layout.sizes.push_back(1);
    for (Access& a : layout.operands) a.strides.push_back(0);
  }
  for (Access& a : layout.operands) {
    int64_t stride = 1;
    bool full = true, scalar = true;
    for (size_t k = layout.sizes.size(); k-- > 0;) {
      full &= a.strides[k] == stride || layout.sizes[k] == 1;
      scalar &= a.strides[k] == 0;
      stride *= layout.sizes[k];
    }
    a.reads = scalar ? Reads::kScalar : full ? Reads::kFull : Reads::kStrided;
  }
  return layout;
}

// Generated Params: a name and a word each, in order.
struct Fields {
  std::string text;
  std::vector<uint32_t> words;
  void add(const std::string& name, int64_t value) {
    text += str("  ", name, ": u32,\n");
    words.push_back(to_u32(value));
  }
};

std::string load_text(std::string_view x, DType dtype) {
  if (dtype == DType::Bool) return str("(", x, " != 0u)");
  if (is_float(dtype)) return str("f32(", x, ")");
  return std::string(x);
}

}  // namespace

bool elementwise_supports(const LowerSignature& s, const Device& device) {
  const auto chain = chain_of(s.op, s.attrs, s.inputs.size());
  if (!chain || s.inputs.size() + 1 > device.limits().storage_bindings) return false;
  std::vector<DType> dtypes;
  for (const TensorType& t : s.inputs) {
    if (t.dtype == DType::F64 || is_complex(t.dtype)) return false;
    dtypes.push_back(t.dtype);
  }
  return chain_text(*chain, dtypes).has_value();
}

void lower_elementwise(LowerCall& call) {
  const Chain chain = *chain_of(call.op(), call.raw_attrs(), static_cast<size_t>(call.num_inputs()));
  const auto inputs = static_cast<size_t>(call.num_inputs());
  std::vector<DType> dtypes;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs; ++i) {
    dtypes.push_back(call.input_type(static_cast<int64_t>(i)).dtype);
    sizes.push_back(call.input_type(static_cast<int64_t>(i)).shape.sizes());
    operands.push_back(call.read(static_cast<int64_t>(i)));
  }
  const std::vector<int64_t> result = call.output_type(0).shape.sizes();
  Layout layout = merge_axes(result, sizes);
  operands.push_back(call.write(0));
  const int64_t n = call.output_type(0).shape.num_elements();
  const size_t rank = layout.sizes.size();

  // Four elements per thread, where the innermost axis is made of fours. (A temporary's start is always aligned.)
  const bool by_four = layout.sizes.back() % 4 == 0 && call.starts_at_multiple_of(operands.back(), 16);
  for (size_t i = 0; i < inputs; ++i) {
    Access& a = layout.operands[i];
    a.vector =
        by_four && a.reads != Reads::kScalar && a.strides.back() == 1 && call.starts_at_multiple_of(operands[i], 16);
    for (size_t k = 0; k + 1 < rank; ++k) a.vector &= a.strides[k] % 4 == 0;
  }
  const bool strided = std::any_of(layout.operands.begin(), layout.operands.end(),
                                   [](const Access& a) { return a.reads == Reads::kStrided; });

  Fields fields;
  fields.add("n", by_four ? n / 4 : n);
  if (strided)
    for (size_t k = 1; k < rank; ++k)
      fields.add(str("d", k), by_four && k + 1 == rank ? layout.sizes[k] / 4 : layout.sizes[k]);
  std::string declarations, loads;
  const std::string_view lanes[] = {"x", "y", "z", "w"};
  for (size_t i = 0; i < inputs; ++i) {
    const Access& a = layout.operands[i];
    const std::string_view element = call.element(operands[i]);
    const std::string type = a.vector ? str("vec4<", element, ">") : std::string(element);
    declarations += str("@group(0) @binding(", i, ") var<storage, read> x", i, ": array<", type, ">;\n");
    fields.add(str("x", i, "_base"), 0);
    std::string at = str("p.x", i, "_base");
    if (a.reads == Reads::kFull) {
      at += by_four && !a.vector ? " + i * 4u" : " + i";
    } else if (a.reads == Reads::kStrided) {
      for (size_t k = 0; k < rank; ++k) {
        if (a.strides[k] == 0) continue;
        const bool last = k + 1 == rank;
        // In units of what is loaded: a vector, or one element of the four that the last coordinate counts.
        const int64_t stride = a.vector          ? (last ? 1 : a.strides[k] / 4)
                               : last && by_four ? a.strides[k] * 4
                                                 : a.strides[k];
        fields.add(str("x", i, "_s", k), stride);
        at += str(" + c", k, " * p.x", i, "_s", k);
      }
    }
    loads += str("  let at", i, " = ", at, ";\n");
    const bool varies = a.reads == Reads::kFull || (a.reads == Reads::kStrided && a.strides.back() != 0);
    if (!by_four || !varies) {
      loads += str("  let v", i, " = x", i, "[at", i, "];\n");
    } else if (a.vector) {
      loads += str("  let q", i, " = x", i, "[at", i, "];\n");
    } else {
      const int64_t step = a.reads == Reads::kFull ? 1 : a.strides.back();
      fields.add(str("x", i, "_step"), step);
      loads += str("  let q", i, " = vec4<", element, ">(");
      for (int lane = 0; lane < 4; ++lane)
        loads += str(lane ? ", " : "", "x", i, "[at", i, " + ", lane, "u * p.x", i, "_step]");
      loads += ");\n";
    }
  }
  const DType out_dtype = call.output_type(0).dtype;
  const std::string_view out_element = call.element(operands.back());
  declarations += str("@group(0) @binding(", inputs, ") var<storage, read_write> y: array<",
                      by_four ? str("vec4<", out_element, ">") : std::string(out_element), ">;\n");
  fields.add("y_base", 0);
  declarations += str("@group(0) @binding(", inputs + 1, ") var<uniform> p: Params;\n");

  const auto text = chain_text(chain, dtypes);
  RLX_ASSERT(text.has_value() && text->result == out_dtype);
  std::string arguments;
  for (size_t i = 0; i < inputs; ++i) arguments += str(i ? ", " : "", "i", i, ": ", register_type(dtypes[i]));
  const auto apply = [&](int lane) {
    std::string list;
    for (size_t i = 0; i < inputs; ++i) {
      const Access& a = layout.operands[i];
      const bool varies = a.reads == Reads::kFull || (a.reads == Reads::kStrided && a.strides.back() != 0);
      const std::string x = lane >= 0 && varies ? str("q", i, ".", lanes[lane]) : str("v", i);
      list += str(i ? ", " : "", load_text(x, dtypes[i]));
    }
    const std::string value = str("chain(", list, ")");
    return out_dtype == DType::Bool ? str("select(0u, 1u, ", value, ")") : str(out_element, "(", value, ")");
  };
  std::string source = "// @include \"scalar.wgsl\"\nstruct Params {\n" + fields.text + "}\n" + declarations;
  source += str("fn chain(", arguments, ") -> ", register_type(out_dtype), " {\n", text->body, "}\n");
  source += R"(
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
)";
  if (strided) {
    source += "  var r = i;\n";
    for (size_t k = rank; k-- > 1;) source += str("  let c", k, " = r % p.d", k, ";\n  r = r / p.d", k, ";\n");
    source += "  let c0 = r;\n";
  }
  source += loads;
  if (by_four)
    source += str("  y[p.y_base + i] = vec4<", out_element, ">(", apply(0), ", ", apply(1), ", ", apply(2), ", ",
                  apply(3), ");\n}\n");
  else
    source += str("  y[p.y_base + i] = ", apply(-1), ";\n}\n");

  const int64_t items = by_four ? n / 4 : n;
  call.emit(
      {.kernel = {.kernel = std::string(call.op().name), .source = std::make_shared<std::string>(std::move(source))},
       .operands = std::move(operands),
       .params = {std::move(fields.words), {0}},
       .grid = {.x = {.items = items, .per_group = 256, .active = true}},
       .extent_safe = true,
       .in_place = true});
}

}  // namespace rlx::webgpu
