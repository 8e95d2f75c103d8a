#include "rlx/ops/small_float.h"

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/decode_float.h"
#include "wgsl/encode_float.h"

namespace rlx::webgpu {

// A format as the kernels' constants (core/small_float.cpp).
static std::vector<std::pair<std::string, uint32_t>> constants_of(SmallFloat format) {
  struct Row {
    uint32_t mant, bias, largest, overflow, nan, sign;
    bool signed_zero;
  };
  Row f{};
  switch (format) {
    case SmallFloat::kF8E8M0: return {{"POWER", 1}};
    case SmallFloat::kF8E4M3FN: f = {3, 7, 0x7E, 0x7F, 0x7F, 0x80, true}; break;
    case SmallFloat::kF8E4M3FNUZ: f = {3, 8, 0x7F, 0x80, 0x80, 0x80, false}; break;
    case SmallFloat::kF8E5M2: f = {2, 15, 0x7B, 0x7C, 0x7E, 0x80, true}; break;
    case SmallFloat::kF8E5M2FNUZ: f = {2, 16, 0x7F, 0x80, 0x80, 0x80, false}; break;
    case SmallFloat::kF4E2M1: f = {1, 1, 0x7, 0x7, 0x8, 0x8, true}; break;
  }
  return {{"MANT", f.mant},    {"BIAS", f.bias}, {"LARGEST", f.largest},        {"OVERFLOW", f.overflow},
          {"NAN_CODE", f.nan}, {"SIGN", f.sign}, {"SIGNED_ZERO", f.signed_zero}};
}

void lower_encode_float(LowerCall& call) {
  namespace k = wgsl::encode_float;
  const auto& attrs = call.attrs<ops::EncodeFloatAttrs>();
  const Operand x = call.read(0), y = call.write(0);
  const int64_t n = call.output_type(0).shape.num_elements();
  auto constants = constants_of(attrs.format);
  constants.emplace_back("SATURATE", attrs.saturate);
  constants.emplace_back("ROUNDING", static_cast<uint32_t>(attrs.round_mode));
  call.emit({.kernel = {"encode_float", {{"T", std::string(call.element(x))}}, constants},
             .operands = {x, y},
             .params = {k::Params{.n = to_u32(n)}, {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = true});
}

void lower_decode_float(LowerCall& call) {
  namespace k = wgsl::decode_float;
  const Operand x = call.read(0), y = call.write(0);
  const int64_t n = call.output_type(0).shape.num_elements();
  const DType to = call.output_type(0).dtype;
  auto constants = constants_of(call.attrs<ops::DecodeFloatAttrs>().format);
  constants.emplace_back("TO", to == DType::F16 ? 1 : to == DType::BF16 ? 2 : 0);
  call.emit({.kernel = {"decode_float", {{"T", std::string(call.element(y))}}, constants},
             .operands = {x, y},
             .params = {k::Params{.n = to_u32(n)}, {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = true});
}

}  // namespace rlx::webgpu
