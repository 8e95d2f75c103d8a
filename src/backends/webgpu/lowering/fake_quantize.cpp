// Quantisation inside training: a scale per channel from the parts of it, then element by element (spec
// 10, 4.12, 4.16).
#include "rlx/ops/fake_quantize.h"

#include <algorithm>

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/channel_parts.h"
#include "wgsl/channel_scales.h"
#include "wgsl/fake_quantize.h"

namespace rlx::webgpu {

namespace {

struct Channels {
  int64_t count = 1, inner = 1;  // channels, and elements behind their axis
  int64_t elements = 0;          // of a channel
};
Channels channels_of(const TensorType& x, std::optional<int64_t> axis) {
  const int64_t n = x.shape.num_elements();
  if (!axis) return {.inner = std::max<int64_t>(n, 1), .elements = n};
  const AxisSplit split = split_at(x.shape, *axis);
  return {.count = split.cols, .inner = std::max<int64_t>(split.inner, 1), .elements = split.outer * split.inner};
}

float top_of(int64_t bits) { return static_cast<float>((int64_t{1} << (bits - 1)) - 1); }

std::string element(const LowerCall& call, Operand operand) { return std::string(call.element(operand)); }

struct Parts {
  Operand values;
  int64_t per_channel;
};
// The largest magnitude of every part of every channel, or, with a scale, the terms of its gradient.
Parts emit_parts(LowerCall& call, const Channels& channels, float top, std::optional<Operand> dy,
                 std::optional<Operand> scale) {
  namespace k = wgsl::channel_parts;
  constexpr int64_t kSpan = 8192, kMostParts = 256;
  const int64_t span = std::max(kSpan, (channels.elements + kMostParts - 1) / kMostParts);
  const int64_t parts = std::max<int64_t>((channels.elements + span - 1) / span, 1);
  const Operand x = call.read(0), values = call.temporary(Storage::kF32, {channels.count * parts});
  call.emit({.kernel = {"channel_parts",
                        {{"T", element(call, x)}, {"S", element(call, scale.value_or(x))}},
                        {{"SUM", scale.has_value()}}},
             .operands = {x, dy.value_or(x), scale.value_or(x), values},
             .params = {k::Params{.channels = to_u32(channels.count),
                                  .inner = to_u32(channels.inner),
                                  .count = to_u32(channels.elements),
                                  .parts = to_u32(parts),
                                  .span = to_u32(span),
                                  .top = top}},
             .grid = {.x = {.items = channels.count * parts}}},
            "channel_parts");
  return {LowerCall::reading(values), parts};
}

enum class Mode : uint32_t { kBatch, kEma, kSum };  // as channel_scales.wgsl counts them

// `next`: where the result goes in its own dtype as well.
Operand emit_scales(LowerCall& call, const Channels& channels, const Parts& parts, Mode mode, float top, float decay,
                    std::optional<Operand> state, std::optional<Operand> next) {
  namespace k = wgsl::channel_scales;
  const Operand scale = call.temporary(Storage::kF32, {channels.count});
  const Operand out = next ? *next : call.temporary(Storage::kF32, {channels.count});
  const Operand before = state.value_or(parts.values);
  call.emit({.kernel = {"channel_scales",
                        {{"S", element(call, before)}, {"N", element(call, out)}},
                        {{"MODE", static_cast<uint32_t>(mode)}}},
             .operands = {parts.values, before, scale, out},
             .params = {k::Params{
                 .channels = to_u32(channels.count), .parts = to_u32(parts.per_channel), .top = top, .decay = decay}},
             .grid = {.x = {.items = channels.count, .per_group = 64}},
             .in_place = true},
            "channel_scales");
  return LowerCall::reading(scale);
}

// `mode` as fake_quantize.wgsl counts them. A scale that is an operand is at least 1e-12.
void emit_elements(LowerCall& call, const Channels& channels, uint32_t mode, Operand scale, bool given,
                   std::optional<Operand> dy, float top, bool in_place) {
  namespace k = wgsl::fake_quantize;
  const int64_t n = call.input_type(0).shape.num_elements();
  const Operand x = call.read(0), y = call.write(0);
  call.emit({.kernel = {"fake_quantize",
                        {{"T", element(call, x)}, {"S", element(call, scale)}},
                        {{"MODE", mode}, {"AT_LEAST", given}}},
             .operands = {x, dy.value_or(x), scale, y},
             .params = {k::Params{
                 .n = to_u32(n), .channels = to_u32(channels.count), .inner = to_u32(channels.inner), .top = top}},
             .grid = {.x = {.items = n, .per_group = 256}},
             .in_place = in_place});
}

}  // namespace

void lower_fake_quantize(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeAttrs>();
  const Channels channels = channels_of(call.input_type(0), attrs.axis);
  const float top = top_of(attrs.bits);
  if (attrs.scale_mode == ops::ScaleMode::kFixed) {
    emit_elements(call, channels, 0, call.read(1), true, std::nullopt, top, true);
    return;
  }
  const bool ema = attrs.scale_mode == ops::ScaleMode::kEma;
  const Parts parts = emit_parts(call, channels, top, std::nullopt, std::nullopt);
  std::optional<Operand> state, next;
  if (ema) state = call.read(1);
  if (ema && call.wants(1)) next = call.write(1);
  const Operand scale =
      emit_scales(call, channels, parts, ema ? Mode::kEma : Mode::kBatch, top, attrs.decay, state, next);
  if (call.wants(0)) emit_elements(call, channels, 0, scale, false, std::nullopt, top, true);
}

void lower_fake_quantize_lsq(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeLsqAttrs>();
  emit_elements(call, channels_of(call.input_type(0), attrs.axis), 0, call.read(1), true, std::nullopt,
                top_of(attrs.bits), true);
}

void lower_fake_quantize_lsq_backward(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeLsqAttrs>();
  const Channels channels = channels_of(call.input_type(0), attrs.axis);
  const float top = top_of(attrs.bits);
  if (call.wants(0)) emit_elements(call, channels, 5, call.read(1), true, call.read(2), top, false);
  if (!call.wants(1)) return;
  const Parts parts = emit_parts(call, channels, top, call.read(2), call.read(1));
  emit_scales(call, channels, parts, Mode::kSum, top, 0, std::nullopt, call.write(1));
}

void lower_fake_quantize_backward(LowerCall& call) {
  const auto& attrs = call.attrs<ops::FakeQuantizeBackwardAttrs>();
  const Channels channels = channels_of(call.input_type(0), attrs.axis);
  const float top = top_of(attrs.bits);
  const Parts parts = emit_parts(call, channels, top, std::nullopt, std::nullopt);
  const Operand scale = emit_scales(call, channels, parts, Mode::kBatch, top, 0, std::nullopt, std::nullopt);
  emit_elements(call, channels, 1 + static_cast<uint32_t>(attrs.ste), scale, false, call.read(1), top, false);
}

}  // namespace rlx::webgpu
