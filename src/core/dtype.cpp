#include "rlx/dtype.h"

#include <algorithm>
#include <array>

namespace rlx {

namespace {

enum class Class { kFloat, kSigned, kUnsigned, kBool, kComplex };

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
  Class cls;
};

// Indexed by the enum's value.
constexpr std::array<Row, 14> kRows = {{
    {DType::F32, "f32", 4, Class::kFloat},
    {DType::F16, "f16", 2, Class::kFloat},
    {DType::BF16, "bf16", 2, Class::kFloat},
    {DType::F64, "f64", 8, Class::kFloat},
    {DType::I8, "i8", 1, Class::kSigned},
    {DType::I16, "i16", 2, Class::kSigned},
    {DType::I32, "i32", 4, Class::kSigned},
    {DType::I64, "i64", 8, Class::kSigned},
    {DType::U8, "u8", 1, Class::kUnsigned},
    {DType::U32, "u32", 4, Class::kUnsigned},
    {DType::Bool, "bool", 1, Class::kBool},
    {DType::C64, "c64", 8, Class::kComplex},
    {DType::U16, "u16", 2, Class::kUnsigned},
    {DType::U64, "u64", 8, Class::kUnsigned},
}};

constexpr std::array<DType, kRows.size()> kAll = [] {
  std::array<DType, kRows.size()> all{};
  for (size_t i = 0; i < kRows.size(); ++i) all[i] = kRows[i].dtype;
  return all;
}();

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return kAll; }
std::string_view name(DType dtype) { return row(dtype).name; }
size_t size_of(DType dtype) { return row(dtype).size; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& r : kRows)
    if (r.name == text) return r.dtype;
  return std::nullopt;
}

bool is_float(DType dtype) { return row(dtype).cls == Class::kFloat; }
bool is_int(DType dtype) { return row(dtype).cls == Class::kSigned || row(dtype).cls == Class::kUnsigned; }
bool is_signed(DType dtype) { return row(dtype).cls == Class::kSigned; }
bool is_complex(DType dtype) { return row(dtype).cls == Class::kComplex; }
bool is_index(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return DType::C64;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    return DType::F32;  // F16 with BF16, or either with F32
  }
  if (is_signed(a) == is_signed(b)) return size_of(a) > size_of(b) ? a : b;
  // One signed, one unsigned: the smallest signed type that holds both; nothing holds U64, so I64 has to do.
  const DType s = is_signed(a) ? a : b;
  const DType u = is_signed(a) ? b : a;
  if (size_of(s) > size_of(u)) return s;
  if (u == DType::U8) return DType::I16;
  return u == DType::U16 ? DType::I32 : DType::I64;
}

void append_text(std::string& out, DType dtype) { out += name(dtype); }

}  // namespace rlx
