// Element types (spec 10, 1.1) and what can be asked of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

enum class DType : uint8_t { F32, F16, BF16, F64, I8, I16, I32, I64, U8, U32, Bool, C64, U16, U64 };

std::span<const DType> all_dtypes();

std::string_view name(DType dtype);                       // "f32"
std::optional<DType> parse_dtype(std::string_view text);  // nullopt when no dtype has that name
size_t size_of(DType dtype);                              // bytes per element

bool is_float(DType dtype);    // F32, F16, BF16, F64
bool is_int(DType dtype);      // I8 … I64, U8 … U64; Bool is neither int nor float
bool is_signed(DType dtype);   // of the integers
bool is_complex(DType dtype);  // C64
bool is_index(DType dtype);    // I32, I64

// The dtype both operands are cast to by builders and importers; PyTorch's rule (spec 10, Q2).
DType promote(DType a, DType b);

void append_text(std::string& out, DType dtype);

}  // namespace rlx
