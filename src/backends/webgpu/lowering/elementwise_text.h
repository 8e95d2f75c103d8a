// Element-wise steps as WGSL: an expression per op and dtype, and chains of them as straight-line code.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::webgpu {

// What a dtype is in a register: floats are f32, integers i32 or u32, Bool bool, C64 vec2<f32>.
std::string_view register_type(DType dtype);
// The value of a stored element in a register.
std::string load_text(std::string_view x, DType dtype);
// The value in a register as an element that is stored as `element`.
std::string store_text(const std::string& value, DType dtype, std::string_view element);

// The low bits of a narrow integer, as its dtype has them.
std::string wrap_text(const std::string& x, DType dtype);

// A chain on inputs of known dtypes as the body of a WGSL function of i0, i1, …, to be used with kScalarIncludes; empty
// when a step has no expression here.
inline constexpr std::string_view kScalarIncludes =
    "// @include \"scalar.wgsl\"\n// @include \"quotient.wgsl\"\n// @include \"complex.wgsl\"\n// @include "
    "\"derivative.wgsl\"\n";
struct ChainText {
  std::string body;
  DType result = DType::F32;
  bool is_complex = false;  // some register is
};
std::optional<ChainText> chain_text(const Chain& chain, std::span<const DType> inputs);
// The same of one op with attributes.
std::optional<ChainText> op_text(const OpDef& op, const Attrs& attrs, std::span<const DType> inputs);

}  // namespace rlx::webgpu
