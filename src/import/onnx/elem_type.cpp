#include "import/onnx/elem_type.h"

#include <array>

#include "rlx/error.h"

namespace rlx::onnx {

namespace {

struct Row {
  std::string_view name;
  std::optional<DType> storage;
  int bits;
};

// By number.
constexpr std::array<Row, 27> kRows = {{
    {"undefined", std::nullopt, 0},   {"float", DType::F32, 32},
    {"uint8", DType::U8, 8},          {"int8", DType::I8, 8},
    {"uint16", DType::U16, 16},       {"int16", DType::I16, 16},
    {"int32", DType::I32, 32},        {"int64", DType::I64, 64},
    {"string", std::nullopt, 0},      {"bool", DType::Bool, 8},
    {"float16", DType::F16, 16},      {"double", DType::F64, 64},
    {"uint32", DType::U32, 32},       {"uint64", DType::U64, 64},
    {"complex64", DType::C64, 64},    {"complex128", std::nullopt, 128},
    {"bfloat16", DType::BF16, 16},    {"float8e4m3fn", DType::U8, 8},
    {"float8e4m3fnuz", DType::U8, 8}, {"float8e5m2", DType::U8, 8},
    {"float8e5m2fnuz", DType::U8, 8}, {"uint4", DType::U8, 4},
    {"int4", DType::I8, 4},           {"float4e2m1", DType::U8, 4},
    {"float8e8m0", DType::U8, 8},     {"uint2", DType::U8, 2},
    {"int2", DType::I8, 2},
}};

const Row& row(ElemType elem) {
  const auto i = static_cast<size_t>(elem);
  return i < kRows.size() ? kRows[i] : kRows[0];
}

}  // namespace

std::optional<DType> storage(ElemType elem) { return row(elem).storage; }

DType storage_of(ElemType elem) {
  const std::optional<DType> dtype = storage(elem);
  if (!dtype)
    fail(ErrorKind::kUnsupported,
         str("Element type ", name(elem), " (", static_cast<int32_t>(elem), ") is not one that rlx computes with."));
  return *dtype;
}

ElemType elem_of(DType dtype) {
  for (size_t i = 0; i <= 16; ++i)  // the plain types: those after them are codes
    if (kRows[i].storage == dtype) return static_cast<ElemType>(i);
  return ElemType::kUndefined;
}

std::string_view name(ElemType elem) { return row(elem).name; }

bool is_small_int(ElemType elem) {
  return elem == ElemType::kInt4 || elem == ElemType::kUint4 || elem == ElemType::kInt2 || elem == ElemType::kUint2;
}

bool is_code(ElemType elem) {
  return (elem >= ElemType::kFloat8E4M3FN && elem <= ElemType::kFloat8E5M2FNUZ) || elem == ElemType::kFloat4E2M1 ||
         elem == ElemType::kFloat8E8M0;
}

int bits_per_element(ElemType elem) { return row(elem).bits; }

}  // namespace rlx::onnx
