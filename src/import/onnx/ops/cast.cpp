#include "import/onnx/ops/cast.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

SmallFloat format_of(ElemType elem) {
  switch (elem) {
    case ElemType::kFloat8E4M3FN: return SmallFloat::kF8E4M3FN;
    case ElemType::kFloat8E4M3FNUZ: return SmallFloat::kF8E4M3FNUZ;
    case ElemType::kFloat8E5M2: return SmallFloat::kF8E5M2;
    case ElemType::kFloat8E5M2FNUZ: return SmallFloat::kF8E5M2FNUZ;
    case ElemType::kFloat8E8M0: return SmallFloat::kF8E8M0;
    default: return SmallFloat::kF4E2M1;
  }
}

// Integers of less than a byte keep their low bits; floats are truncated first.
Value wrap_small_int(OnnxNode& n, const Value& x, ElemType to) {
  const int bits = bits_per_element(to);
  const Value whole = cast_to(x, DType::I32);
  const Value mask = n.scalar((1 << bits) - 1, DType::I32);
  const Value low = ops::bit_and(whole, mask);
  if (storage_of(to) == DType::U8) return cast_to(low, DType::U8);
  const Value sign = n.scalar(1 << (bits - 1), DType::I32);
  return cast_to(ops::sub(ops::bit_xor(low, sign), sign), DType::I8);
}

// As Python prints a number, which is what ONNX asks for.
std::string number_string(const Tensor& t, const Tensor& whole, int64_t i) {
  if (t.dtype() == DType::Bool) return t.at(i) != 0 ? "1" : "0";
  if (is_int(t.dtype())) return std::to_string(whole.values<int64_t>()[static_cast<size_t>(i)]);
  const double x = t.at(i);
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "INF" : "-INF";
  return t.dtype() == DType::F64 ? str(x) : str(static_cast<float>(x));
}

double parse_number(const std::string& text) {
  std::string_view s = text;
  const bool negative = s.starts_with('-');
  if (negative || s.starts_with('+')) s.remove_prefix(1);
  std::string lower(s);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  double x = 0;
  if (lower == "nan") {
    x = NAN;
  } else if (lower == "inf" || lower == "infinity") {
    x = INFINITY;
  } else {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x);
    require(error == std::errc() && end == s.data() + s.size(), "String '", text, "' is not a number.");
  }
  return negative ? -x : x;
}

}  // namespace

Item encode(OnnxNode& n, const Value& x, ElemType to, bool saturate, PowerRounding rounding) {
  const Value real = is_float(x.dtype()) ? x : cast_to(x, DType::F32);
  return n.result(ops::encode_float(real, {.format = format_of(to), .saturate = saturate, .round_mode = rounding}), to);
}

Value decode(const Value& codes, ElemType from, DType to) {
  return ops::decode_float(codes, {.format = format_of(from), .to = to});
}

Item cast_item(OnnxNode& n, const Item& x, ElemType to) {
  if (x.elem == to) return x;
  Importer& importer = n.importer();
  if (x.kind == Item::Kind::kStrings) {
    std::vector<double> numbers;
    for (const std::string& s : x.strings->values) numbers.push_back(parse_number(s));
    return importer.item(HostValue(to, Tensor::from_doubles(storage_of(to), x.strings->sizes, numbers)));
  }
  Value v = importer.value(x);
  if (to == ElemType::kString) {
    const Tensor t = importer.known(v.id());
    Strings strings{t.sizes(), {}};
    const Tensor whole = is_int(t.dtype()) ? t.cast(DType::I64) : t;
    for (int64_t i = 0; i < t.num_elements(); ++i) strings.values.push_back(number_string(t, whole, i));
    return importer.item(HostValue(std::move(strings)));
  }
  if (is_code(x.elem)) {
    const DType dtype = storage_of(to);
    if (!is_code(to) && is_float(dtype)) return n.result(decode(v, x.elem, dtype), to);
    v = decode(v, x.elem, DType::F32);
  }
  if (is_code(to)) {
    const std::string rounding = n.attr("round_mode", "up");
    return encode(n, v, to, n.attr("saturate", true),
                  rounding == "up"     ? PowerRounding::kUp
                  : rounding == "down" ? PowerRounding::kDown
                                       : PowerRounding::kNearest);
  }
  if (is_small_int(to)) return n.result(wrap_small_int(n, v, to), to);
  return n.result(cast_to(v, storage_of(to)), to);
}

namespace {

Built cast(OnnxNode& n) {
  // Opset 1 names the type.
  if (const AttributeProto* a = n.find_attr("to"); a && a->type == AttributeProto::Type::kString) {
    for (int32_t i = 1; i <= 16; ++i) {
      std::string upper(name(static_cast<ElemType>(i)));
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (upper == a->s) return cast_item(n, n.item(0), static_cast<ElemType>(i));
    }
    n.unsupported(str("Type '", a->s, "' is not known."));
  }
  return cast_item(n, n.item(0), static_cast<ElemType>(n.required_int("to")));
}

Built cast_like(OnnxNode& n) { return cast_item(n, n.item(0), n.elem(1)); }

Built bit_cast(OnnxNode& n) {
  const auto to = static_cast<ElemType>(n.required_int("to"));
  if (bits_per_element(to) < 8 || bits_per_element(n.elem(0)) < 8)
    n.unsupported("The bits of types of less than a byte cannot be read as another type.");
  return n.result(ops::bitcast(n.input(0), {.to = storage_of(to)}), to);
}

}  // namespace

Rows cast_rows() {
  return {
      {"BitCast", 26, bit_cast},
      {"Cast", 1, cast},
      {"CastLike", 15, cast_like},
  };
}

}  // namespace rlx::onnx
