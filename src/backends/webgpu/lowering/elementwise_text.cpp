#include "backends/webgpu/lowering/elementwise_text.h"

#include <vector>

#include "rlx/ops.h"

namespace rlx::webgpu {

std::string_view register_type(DType dtype) {
  if (dtype == DType::Bool) return "bool";
  if (is_float(dtype)) return "f32";
  if (is_complex(dtype)) return "vec2<f32>";
  return is_signed(dtype) ? "i32" : "u32";
}

std::string load_text(std::string_view x, DType dtype) {
  if (dtype == DType::Bool) return str("(", x, " != 0u)");
  if (is_float(dtype)) return str("f32(", x, ")");
  return std::string(x);
}

std::string store_text(const std::string& value, DType dtype, std::string_view element) {
  return dtype == DType::Bool ? str("select(0u, 1u, ", value, ")") : str(element, "(", value, ")");
}

std::string wrap_text(const std::string& x, DType dtype) {
  switch (dtype) {
    case DType::I8: return str("((", x, ") << 24u) >> 24u");
    case DType::I16: return str("((", x, ") << 16u) >> 16u");
    case DType::U8: return str("(", x, ") & 0xffu");
    case DType::U16: return str("(", x, ") & 0xffffu");
    default: return x;
  }
}

namespace {

// A row per op: WGSL on operands $a, $b, $c in registers. Floats are f32 there, integers i32 or u32, Bool bool.
struct ExpressionRow {
  const OpDef* op;
  std::string_view on_float, on_int, on_uint, on_bool;  // by the dtype of operand 0; empty: the host runs it
  bool wraps = false;                                   // narrow integers may overflow
  std::string_view on_complex = {};
};

// clang-format off
const ExpressionRow kRows[] = {
    {&ops::abs, "abs($a)", "abs($a)", "", "", true},
    {&ops::acos, "f_acos($a)"},
    {&ops::acosh, "f_acosh($a)"},
    {&ops::add, "$a + $b", "$a + $b", "$a + $b", "", true, "$a + $b"},
    {&ops::asin, "f_asin($a)"},
    {&ops::asinh, "f_asinh($a)"},
    {&ops::atan, "f_atan($a)"},
    {&ops::atanh, "f_atanh($a)"},
    {&ops::bit_and, "", "$a & $b", "$a & $b", "$a && $b"},
    {&ops::bit_not, "", "~$a", "~$a", "!$a", true},
    {&ops::bit_or, "", "$a | $b", "$a | $b", "$a || $b"},
    {&ops::bit_xor, "", "$a ^ $b", "$a ^ $b", "$a != $b"},
    {&ops::ceil, "ceil($a)"},
    {&ops::complex_norm_sq, "", "", "", "", false, "dot($a, $a)"},
    {&ops::complex_norm_sq_backward, "", "", "", "", false, "$b * $a"},
    {&ops::conjugate, "", "", "", "", false, "vec2<f32>($a.x, -$a.y)"},
    {&ops::cos, "f_cos($a)"},
    {&ops::cosh, "f_cosh($a)"},
    {&ops::div, "f_div($a, $b)", "i_div($a, $b)", "u_div($a, $b)", "", true, "c_div($a, $b)"},
    {&ops::eq, "f_eq($a, $b)", "$a == $b", "$a == $b", "$a == $b", false, "c_eq($a, $b)"},
    {&ops::erf, "f_erf($a)"},
    {&ops::exp, "f_exp($a)", "", "", "", false, "c_exp($a)"},
    {&ops::floor, "floor($a)"},
    {&ops::ge, "f_le($b, $a)", "$a >= $b", "$a >= $b", ""},
    {&ops::gelu, "f_gelu($a)"},
    {&ops::gelu_approx, "f_gelu_approx($a)"},
    {&ops::fmod, "f_fmod($a, $b)", "i_fmod($a, $b)", "u_fmod($a, $b)", ""},
    {&ops::gt, "f_lt($b, $a)", "$a > $b", "$a > $b", ""},
    {&ops::is_nan, "nan_of($a)"},
    {&ops::le, "f_le($a, $b)", "$a <= $b", "$a <= $b", ""},
    {&ops::log, "f_log($a)", "", "", "", false, "c_log($a)"},
    {&ops::lt, "f_lt($a, $b)", "$a < $b", "$a < $b", ""},
    {&ops::max, "f_max($a, $b)", "max($a, $b)", "max($a, $b)", ""},
    {&ops::min, "f_min($a, $b)", "min($a, $b)", "min($a, $b)", ""},
    {&ops::mod, "f_mod($a, $b)", "i_mod($a, $b)", "u_fmod($a, $b)", ""},
    {&ops::mul, "$a * $b", "$a * $b", "$a * $b", "", true, "c_mul($a, $b)"},
    {&ops::ne, "!f_eq($a, $b)", "$a != $b", "$a != $b", "$a != $b", false, "!c_eq($a, $b)"},
    {&ops::neg, "-$a", "-$a", "", "", true, "-$a"},
    {&ops::pow, "f_pow($a, $b)", "i_pow($a, $b)", "u_pow($a, $b)", "", true},
    {&ops::relu, "f_relu($a)", "max($a, 0)", "", ""},
    {&ops::relu_backward, "select(0.0, $b, is_positive($a))"},
    {&ops::round, "round($a)"},
    {&ops::rsqrt, "f_rsqrt($a)"},
    {&ops::shift_left, "", "i_shl($a, $b)", "u_shl($a, $b)", "", true},
    {&ops::shift_right, "", "i_shr($a, $b)", "u_shr($a, $b)", ""},
    {&ops::sigmoid, "f_sigmoid($a)"},
    {&ops::sign, "f_sign($a)", "sign($a)", "min($a, 1u)", ""},
    {&ops::silu, "f_silu($a)"},
    {&ops::sin, "f_sin($a)"},
    {&ops::sinh, "f_sinh($a)"},
    {&ops::sqrt, "f_sqrt($a)", "", "", "", false, "c_sqrt($a)"},
    {&ops::sub, "$a - $b", "$a - $b", "$a - $b", "", true, "$a - $b"},
    {&ops::tan, "f_tan($a)"},
    {&ops::tanh, "f_tanh($a)"},
};
// clang-format on

const ExpressionRow* find_row(const OpDef& op) {
  for (const ExpressionRow& row : kRows)
    if (row.op == &op) return &row;
  return nullptr;
}

std::string_view expression_of(const ExpressionRow& row, DType dtype) {
  if (dtype == DType::Bool) return row.on_bool;
  if (is_float(dtype)) return row.on_float;
  if (is_int(dtype)) return is_signed(dtype) ? row.on_int : row.on_uint;
  return row.on_complex;
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

std::string cast_text(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  // A step in half precision may carry more digits in its register: what leaves it is rounded.
  if (from == DType::F16) return cast_text(str("round_f16(", x, ")"), DType::F32, to);
  if (from == DType::BF16) return cast_text(str("round_bf16(", x, ")"), DType::F32, to);
  if (is_complex(from) && to == DType::Bool) return str("(bool_of(", x, ".x) || bool_of(", x, ".y))");
  if (is_complex(from)) return cast_text(str(x, ".x"), DType::F32, to);
  if (is_complex(to)) return str("vec2<f32>(", cast_text(x, from, DType::F32), ", 0.0)");
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
  return wrap_text(same, to);
}

// The bits of an element in the low bits of a u32, and the element of such bits; 32 bits of I64 and U64.
std::string bits_text(const std::string& x, DType dtype) {
  switch (dtype) {
    case DType::Bool: return str("select(0u, 1u, ", x, ")");
    case DType::F16: return str("f16_bits(", x, ")");
    case DType::BF16: return str("(bitcast<u32>(round_bf16(", x, ")) >> 16u)");
    case DType::I8: return str("(bitcast<u32>(", x, ") & 0xffu)");
    case DType::I16: return str("(bitcast<u32>(", x, ") & 0xffffu)");
    default: return str("bitcast<u32>(", x, ")");
  }
}
std::string from_bits_text(const std::string& bits, DType dtype) {
  switch (dtype) {
    case DType::Bool: return str("(", bits, " != 0u)");
    case DType::F16: return str("f16_from_bits(", bits, ")");
    case DType::BF16: return str("bitcast<f32>(", bits, " << 16u)");
    default: return wrap_text(str("bitcast<", register_type(dtype), ">(", bits, ")"), dtype);
  }
}

bool is_test(const OpDef& op) {
  for (const OpDef* test : {&ops::eq, &ops::ne, &ops::lt, &ops::le, &ops::gt, &ops::ge, &ops::is_nan})
    if (&op == test) return true;
  return false;
}

struct StepText {
  std::string text;
  DType result;
};
// One step on operands in registers. F64 has no registers.
std::optional<StepText> step_text(const OpDef& op, std::optional<DType> to, const std::vector<std::string>& operands,
                                  const std::vector<DType>& dtypes) {
  for (const DType d : dtypes)
    if (d == DType::F64) return std::nullopt;
  if (&op == &ops::cast) {
    if (to == DType::F64) return std::nullopt;
    return StepText{cast_text(operands[0], dtypes[0], *to), *to};
  }
  if (&op == &ops::bitcast) {
    if (to == DType::F64 || is_complex(*to) || is_complex(dtypes[0])) return std::nullopt;
    return StepText{from_bits_text(bits_text(operands[0], dtypes[0]), *to), *to};
  }
  if (&op == &ops::where)
    return StepText{
        str("select(", operands[2], ", ", operands[1], ", ", cast_text(operands[0], dtypes[0], DType::Bool), ")"),
        dtypes[1]};
  const ExpressionRow* row = find_row(op);
  const std::string_view expression = row ? expression_of(*row, dtypes[0]) : std::string_view();
  if (expression.empty()) return std::nullopt;
  std::string text = fill(expression, operands);
  if (row->wraps) text = wrap_text(text, dtypes[0]);
  return StepText{std::move(text), is_test(op) ? DType::Bool : &op == &ops::complex_norm_sq ? DType::F32 : dtypes[0]};
}

// f'(x), derivative.wgsl.
std::string_view derivative(ops::ActivationKind kind) {
  using enum ops::ActivationKind;
  switch (kind) {
    case kNone:
    case kRound: return "1.0";  // straight through
    case kRelu: return "select(0.0, 1.0, is_positive($a))";
    case kSigmoid: return "f_sigmoid($a) * f_sigmoid(-$a)";  // 1 - sigmoid(x) = sigmoid(-x), without cancellation
    case kTanh: return "d_tanh($a)";
    case kExp: return "f_exp($a)";
    case kLog: return "1.0 / $a";
    case kSqrt: return "d_sqrt($a)";
    case kRsqrt: return "d_rsqrt($a)";
    case kNeg: return "-1.0";
    case kAbs: return "d_abs($a)";
    case kGelu: return "d_gelu($a)";
    case kSilu: return "d_silu($a)";
    case kGeluApprox: return "d_gelu_approx($a)";
    case kSin: return "f_cos($a)";
    case kCos: return "-f_sin($a)";
    case kTan: return "d_tan($a)";
    case kAtan: return "d_atan($a)";
  }
  fail(ErrorKind::kInternal, "Unknown activation kind.");
}

}  // namespace

std::optional<ChainText> chain_text(const Chain& chain, std::span<const DType> inputs) {
  ChainText out;
  for (const DType d : inputs) out.is_complex |= is_complex(d);
  std::vector<DType> steps;
  for (const ChainStep& step : chain) {
    std::vector<std::string> operands;
    std::vector<DType> dtypes;
    for (const ChainOperand& o : step.operands) {
      operands.push_back(str(o.is_step ? "s" : "i", o.index));
      dtypes.push_back(o.is_step ? steps[static_cast<size_t>(o.index)] : inputs[static_cast<size_t>(o.index)]);
    }
    auto text = step_text(*step.op, step.to, operands, dtypes);
    if (!text) return std::nullopt;
    out.body += str("  let s", steps.size(), " = ", text->text, ";\n");
    out.is_complex |= is_complex(text->result);
    steps.push_back(text->result);
  }
  out.result = steps.back();
  out.body += str("  return s", steps.size() - 1, ";\n");
  return out;
}

std::optional<ChainText> op_text(const OpDef& op, const Attrs& attrs, std::span<const DType> inputs) {
  const auto returning = [](const std::string& text, DType result) {
    return ChainText{.body = str("  return ", text, ";\n"), .result = result};
  };
  if (&op == &ops::is_inf) {
    if (inputs[0] == DType::F64) return std::nullopt;
    const auto& a = attrs.as<ops::IsInfAttrs>();
    const std::string_view positive = a.detect_positive ? "true" : "false",
                           negative = a.detect_negative ? "true" : "false";
    return returning(str("inf_of(i0) && select(", negative, ", ", positive, ", i0 > 0.0)"), DType::Bool);
  }
  if (&op == &ops::activation_backward) {
    if (inputs[0] == DType::F64) return std::nullopt;
    const ops::ActivationKind kind = attrs.as<ops::ActivationBackwardAttrs>().kind;
    // 0 where x <= 0, whatever dy is: selected, not multiplied.
    if (kind == ops::ActivationKind::kRelu) return returning("select(0.0, i1, is_positive(i0))", inputs[0]);
    return returning(str("(", fill(derivative(kind), {"i0", "i1"}), ") * i1"), inputs[0]);
  }
  ChainStep step{.op = &op};
  for (size_t i = 0; i < inputs.size(); ++i) step.operands.push_back({false, static_cast<int32_t>(i)});
  if (&op == &ops::cast) step.to = attrs.as<ops::CastAttrs>().to;
  if (&op == &ops::bitcast) step.to = attrs.as<ops::BitcastAttrs>().to;
  return chain_text({step}, inputs);
}

}  // namespace rlx::webgpu
