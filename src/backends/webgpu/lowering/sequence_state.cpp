// Recurrences with a state per channel or head; the state after may lie in the bytes of the one before: a thread reads
// its part of the old one before it writes the new one.
#include "rlx/ops/sequence_state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/causal_conv.h"
#include "wgsl/gated_delta_net.h"
#include "wgsl/selective_scan.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kMostStates = 256 * 64;  // of selective_scan: 64 registers of each thread of a workgroup
constexpr int64_t kMostTaps = 32;          // of causal_conv: the last rows lie in registers
constexpr int64_t kMostWidth = 1024;       // of gated_delta_net: k and q of a token lie in workgroup memory

// Operand 5 and result 1, or what takes their places.
struct States {
  bool has_before;
  Operand before, after;
  uint32_t keeps;
  std::string before_type, after_type;
};
States states_of(LowerCall& call) {
  States s;
  s.has_before = call.num_inputs() == 6;
  const uint32_t unused[] = {0};
  s.before = s.has_before ? call.read(5) : call.table(unused);
  s.keeps = call.wants(1);
  s.after = s.keeps ? call.write(1) : call.temporary(Storage::kF32, {1});
  s.before_type = call.element(s.before);
  s.after_type = call.element(s.after);
  return s;
}

// Which of batch and sequence an active extent cuts: the sequence, unless it is the batch that the rows follow.
bool cut_batch(const LowerCall& call) { return call.bucket_axis(0) == 0; }

// The bytes of y where nobody wants it.
Operand written_y(LowerCall& call, Operand like) {
  return call.wants(0) ? call.write(0) : call.temporary(call.storage(like), {call.output_type(0).shape.num_elements()});
}

}  // namespace

bool selective_scan_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  return s.attrs.as<ops::SelectiveScanAttrs>().state_size <= kMostStates && !s.input(0).dim(1).is(0);
}

void lower_selective_scan(LowerCall& call) {
  namespace k = wgsl::selective_scan;
  const TensorType& x = call.input_type(0);
  const int64_t batch = x.dim(0).value(), seq = x.dim(1).value(), channels = x.dim(2).value();
  const int64_t n = call.attrs<ops::SelectiveScanAttrs>().state_size;
  const auto states = static_cast<uint64_t>(n);
  const uint32_t lanes = n <= 16 * 8 ? static_cast<uint32_t>(std::min<uint64_t>(std::bit_ceil(states), 16))
                                     : static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_ceil(states) / 8, 16, 256));
  const auto own = static_cast<uint32_t>((n + lanes - 1) / lanes);
  const int64_t per_group = 256 / lanes;
  const int64_t groups = batch * ((channels + per_group - 1) / per_group);
  for (int64_t i = 0; i < 5; ++i) to_u32(call.input_type(i).shape.num_elements());
  const Operand in = call.read(0);
  const States s = states_of(call);
  call.emit(
      {.kernel = {"selective_scan",
                  {{"T", std::string(call.element(in))}, {"TI", s.before_type}, {"TO", s.after_type}},
                  {{"LANES", lanes}, {"OWN", std::bit_ceil(own)}, {"HAS_STATE", s.has_before}}},
       .operands = {in, call.read(1), call.read(2), call.read(3), call.read(4), s.before, written_y(call, in), s.after},
       .params = {k::Params{.groups = to_u32(groups),
                            .seq = to_u32(seq),
                            .used = to_u32(seq),
                            .channels = to_u32(channels),
                            .states = to_u32(n),
                            .keeps_state = s.keeps},
                  {cut_batch(call) ? &k::Params::groups : &k::Params::used}},
       .grid = {.x = {.items = groups, .active = cut_batch(call)}},
       .extent_safe = true,
       .own_bound = true,
       .in_place = true});
}

bool causal_conv_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  return s.input(1).dim(1).value() <= kMostTaps && !s.input(0).dim(1).is(0);
}

void lower_causal_conv(LowerCall& call) {
  namespace k = wgsl::causal_conv;
  const TensorType& x = call.input_type(0);
  const int64_t batch = x.dim(0).value(), seq = x.dim(1).value(), channels = x.dim(2).value();
  const auto taps = static_cast<uint32_t>(call.input_type(1).dim(1).value());
  to_u32(x.shape.num_elements());
  const Operand in = call.read(0);
  const uint32_t unused[] = {0};
  const bool has_used = call.num_inputs() == 4;
  if (has_used)
    check_indices(call, 3, IndexRange{0, seq + 1}, [](int64_t value, int64_t b, int64_t end) {
      return str("Rows in use (", value, ") of batch ", b, " are not between 0 and ", end - 1, ".");
    });
  const Operand rows = has_used ? call.read(3) : call.table(unused);
  const Operand after = call.wants(1) ? call.write(1) : call.temporary(call.storage(in), {1});
  const Operand y = call.wants(0) ? call.write(0) : call.temporary(call.storage(in), {1});
  call.emit(
      {.kernel = {"causal_conv", {{"T", std::string(call.element(in))}}, {{"TAPS", taps}, {"HAS_USED", has_used}}},
       .operands = {in, call.read(1), call.read(2), rows, y, after},
       .params = {k::Params{.n = to_u32(batch * channels),
                            .seq = to_u32(seq),
                            .used = to_u32(seq),
                            .channels = to_u32(channels),
                            .wants_y = call.wants(0),
                            .wants_state = call.wants(1)},
                  {cut_batch(call) ? &k::Params::n : &k::Params::used}},
       .grid = {.x = {.items = batch * channels, .per_group = 64, .active = cut_batch(call)}},
       .extent_safe = true,
       .own_bound = true,
       .in_place = true});
}

bool gated_delta_net_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  return s.attrs.as<ops::GatedDeltaNetAttrs>().state_size <= kMostWidth && !s.input(0).dim(1).is(0);
}

void lower_gated_delta_net(LowerCall& call) {
  namespace k = wgsl::gated_delta_net;
  const TensorType& q = call.input_type(0);
  const int64_t batch = q.dim(0).value(), seq = q.dim(1).value(), heads = q.dim(2).value(), n = q.dim(3).value();
  // 32 rows of a column per thread; k and q of a tile of tokens take 8 KiB.
  const auto vectors = static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(n + 3) / 4));
  const uint32_t lanes = std::max(vectors / 8, 1u), own = vectors / lanes;
  const uint32_t steps = std::min(8u, 256 / vectors);
  const int64_t columns = 128 / lanes, groups = batch * heads * ((n + columns - 1) / columns);
  for (int64_t i = 0; i < call.num_inputs(); ++i) to_u32(call.input_type(i).shape.num_elements());
  const Operand in = call.read(0);
  const States s = states_of(call);
  call.emit(
      {.kernel = {"gated_delta_net",
                  {{"T", std::string(call.element(in))}, {"TI", s.before_type}, {"TO", s.after_type}},
                  {{"LANES", lanes}, {"OWN", own}, {"STEPS", steps}, {"HAS_STATE", s.has_before}}},
       .operands = {in, call.read(1), call.read(2), call.read(3), call.read(4), s.before, written_y(call, in), s.after},
       .params = {k::Params{.groups = to_u32(groups),
                            .seq = to_u32(seq),
                            .used = to_u32(seq),
                            .heads = to_u32(heads),
                            .width = to_u32(n),
                            .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(n))),
                            .keeps_state = s.keeps},
                  {cut_batch(call) ? &k::Params::groups : &k::Params::used}},
       .grid = {.x = {.items = groups, .active = cut_batch(call)}},
       .extent_safe = true,
       .own_bound = true,
       .in_place = true});
}

}  // namespace rlx::webgpu
