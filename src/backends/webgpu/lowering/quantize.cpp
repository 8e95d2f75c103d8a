// Codes of activations and back: quantize, dequantize, and the forms whose scales are operands (spec 10, 4.12).
#include "rlx/ops/quantize.h"

#include <cstring>

#include "backends/webgpu/lowering/lowerings.h"
#include "core/convert.h"
#include "ops/linear_scales.h"
#include "rlx/ops/quantize_linear.h"
#include "wgsl/dequantize.h"
#include "wgsl/quantize.h"

namespace rlx::webgpu {

namespace {

// Where an element's scale is: as [outer, cols, inner], with block elements of cols per scale.
struct Places {
  int64_t cols = 1, inner = 1, block = 1, blocks = 1;
  bool own = false;  // every (outer, inner) has scales of its own
};

std::string element(const LowerCall& call, Operand operand) { return std::string(call.element(operand)); }

// Scales, or zero points, as attributes: a table of 32-bit numbers, one per channel.
template <class T>
Operand table_of(LowerCall& call, const std::vector<T>& list, int64_t channels, T none) {
  std::vector<uint32_t> words(static_cast<size_t>(channels));
  for (size_t c = 0; c < words.size(); ++c) {
    const T value = list.empty() ? none : list.size() == 1 ? list[0] : list[c];
    if constexpr (std::is_same_v<T, float>)
      std::memcpy(&words[c], &value, 4);
    else
      words[c] = static_cast<uint32_t>(static_cast<int32_t>(value));
  }
  return call.table(words);
}

struct ListScales {
  Places places;
  Operand scales, zeros;
};
ListScales list_scales(LowerCall& call) {
  const auto& attrs = call.attrs<ops::QuantizeAttrs>();
  const TensorType& x = call.input_type(0);
  ListScales s;
  if (attrs.axis) {
    const AxisSplit split = split_at(x.shape, *attrs.axis);
    s.places = {.cols = split.cols, .inner = split.inner, .blocks = split.cols};
  } else {
    s.places.inner = x.shape.num_elements();
  }
  s.scales = table_of(call, attrs.scales, s.places.cols, 1.0f);
  s.zeros = table_of<int64_t>(call, attrs.zero_points, s.places.cols, 0);
  return s;
}

template <class A>
Places linear_places(const LowerCall& call, const A& attrs) {
  const ops::LinearScales s(call.input_type(0).shape.sizes(), call.input_type(1).shape.sizes(), attrs.axis,
                            attrs.block_size);
  return {.cols = s.cols, .inner = s.inner, .block = s.block, .blocks = s.blocks, .own = s.in_blocks};
}

// Elements may be cut off at the end where all of them have one scale, or axis 0 is not the one that scales know of. (A
// scale that has the rows may be that of all elements at one row, and not at two.)
bool may_cut(const LowerCall& call, const Places& places) {
  for (int64_t i = 1; i < call.num_inputs(); ++i)
    if (call.bucket_axis(i) >= 0) return false;
  return !places.own && (places.cols == 1 || places.cols * places.inner < call.input_type(0).shape.num_elements());
}

void emit_quantize(LowerCall& call, const Places& places, Operand scale, std::optional<Operand> zero, int64_t low,
                   int64_t high, bool round_quotient, bool scale_is_table) {
  namespace k = wgsl::quantize;
  const int64_t n = call.input_type(0).shape.num_elements();
  const Operand x = call.read(0), y = call.write(0);
  const Operand bound_zero = zero.value_or(scale);
  // A scale that stands in for zero points that are not there is bound as what it is.
  const std::string scale_type = scale_is_table ? "f32" : element(call, scale);
  call.emit({.kernel = {"quantize",
                        {{"T", element(call, x)},
                         {"S", scale_type},
                         {"Z", zero ? element(call, *zero) : scale_type},
                         {"Q", element(call, y)}},
                        {{"HAS_ZERO", zero.has_value()}, {"ROUND_QUOTIENT", round_quotient}}},
             .operands = {x, scale, bound_zero, y},
             .params = {k::Params{.n = to_u32(n),
                                  .cols = to_u32(places.cols),
                                  .inner = to_u32(places.inner),
                                  .block = to_u32(places.block),
                                  .blocks = to_u32(places.blocks),
                                  .own = places.own ? 1u : 0u,
                                  .low = static_cast<int32_t>(low),
                                  .high = static_cast<int32_t>(high)},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = may_cut(call, places)});
}

void emit_dequantize(LowerCall& call, const Places& places, Operand scale, std::optional<Operand> zero,
                     bool scale_is_table) {
  namespace k = wgsl::dequantize;
  const int64_t n = call.input_type(0).shape.num_elements();
  const Operand x = call.read(0), y = call.write(0);
  const std::string scale_type = scale_is_table ? "f32" : element(call, scale);
  call.emit({.kernel = {"dequantize",
                        {{"T", element(call, y)},
                         {"S", scale_type},
                         {"Z", zero ? element(call, *zero) : scale_type},
                         {"Q", element(call, x)}},
                        {{"HAS_ZERO", zero.has_value()}}},
             .operands = {x, scale, zero.value_or(scale), y},
             .params = {k::Params{.n = to_u32(n),
                                  .cols = to_u32(places.cols),
                                  .inner = to_u32(places.inner),
                                  .block = to_u32(places.block),
                                  .blocks = to_u32(places.blocks),
                                  .own = places.own ? 1u : 0u},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = may_cut(call, places)});
}

}  // namespace

void lower_quantize(LowerCall& call) {
  const ListScales s = list_scales(call);
  emit_quantize(call, s.places, s.scales, s.zeros, -128, 127, true, true);
}

void lower_dequantize(LowerCall& call) {
  const ListScales s = list_scales(call);
  emit_dequantize(call, s.places, s.scales, s.zeros, true);
}

void lower_quantize_linear(LowerCall& call) {
  const auto& attrs = call.attrs<ops::QuantizeLinearAttrs>();
  std::optional<Operand> zero;
  if (call.num_inputs() > 2) zero = call.read(2);
  emit_quantize(call, linear_places(call, attrs), call.read(1), zero, attrs.low.value_or(smallest_int(attrs.to)),
                attrs.high.value_or(largest_int(attrs.to)), false, false);
}

void lower_dequantize_linear(LowerCall& call) {
  std::optional<Operand> zero;
  if (call.num_inputs() > 2) zero = call.read(2);
  emit_dequantize(call, linear_places(call, call.attrs<ops::DequantizeLinearAttrs>()), call.read(1), zero, false);
}

}  // namespace rlx::webgpu
