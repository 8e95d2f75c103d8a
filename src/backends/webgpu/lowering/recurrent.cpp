// lstm, gru and rnn. Of each layer: what the gates take from the input is one product for all time steps, then the
// steps follow one another, in one dispatch per batch and direction, or in one each where a step is much work.
#include "ops/recurrent.h"

#include <algorithm>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/matmul.h"
#include "wgsl/recurrent.h"
#include "wgsl/recurrent_begin.h"
#include "wgsl/recurrent_end.h"
#include "wgsl/transpose_weights.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kWideHidden = 64;   // from here on a step is spread over workgroups
constexpr int64_t kMostSteps = 1024;  // dispatches, at most
constexpr int64_t kStateParts = 4;    // of a layer: h in turn, c or z, the scaled h

class RecurrentLowering {
 public:
  RecurrentLowering(LowerCall& call, const ops::Recurrent& r) : call_(call), r_(r) {
    batch_ = call.input_type(0).dim(0).value();
    seq_ = call.input_type(0).dim(1).value();
    in_ = call.input_type(0).dim(2).value();
    slot_ = r.directions() * batch_ * r.hidden;
  }

  void run() {
    const int64_t d = r_.directions();
    to_u32(checked_mul(batch_ * seq_, d * r_.rows()));
    for (int64_t i = 0; i < call_.num_inputs(); ++i) to_u32(call_.input_type(i).shape.num_elements());
    const uint32_t unused[] = {0};
    nothing_ = call_.table(unused);
    const Operand w_input = call_.read(1), w_hidden = call_.read(2);
    weight_type_ = call_.element(w_hidden);
    weights_ = transposed(2, w_hidden, r_.cells(), r_.rows(), r_.hidden);
    states_ = call_.temporary(Storage::kF32, {r_.layers, kStateParts, slot_});
    begin();
    Operand layer_in = call_.read(0);
    for (int64_t layer = 0; layer < r_.layers; ++layer) {
      const int64_t width = r_.width(layer, in_), first = r_.input_weights(layer * d, in_);
      const Operand inputs = call_.temporary(Storage::kF32, {batch_ * seq_, d * r_.rows()});
      emit_matmul(call_, {.shape = {.m = batch_ * seq_, .n = d * r_.rows(), .k = width},
                          .lhs = layer_in,
                          .rhs = transposed(1, w_input, 1, d * r_.rows(), width, first),
                          .results = {{inputs, d * r_.rows()}}});
      const bool last = layer + 1 == r_.layers;
      const Operand out =
          last && call_.wants(0) ? call_.write(0) : call_.temporary(Storage::kF32, {batch_, seq_, d * r_.hidden});
      emit_steps(layer, LowerCall::reading(inputs), out);
      layer_in = LowerCall::reading(out);
    }
    end();
  }

 private:
  // Of operand i: [count, rows, cols], from element `skip` on, with the last two axes swapped.
  Operand transposed(int64_t i, Operand weights, int64_t count, int64_t rows, int64_t cols, int64_t skip = 0) {
    const Operand out = call_.derived(i, call_.storage(weights), {count, cols, rows});
    const int64_t tiles = count * ((rows + 15) / 16) * ((cols + 15) / 16);
    call_.emit_derived(
        i,
        {.kernel = {"transpose_weights", {{"T", std::string(call_.element(weights))}}},
         .operands = {weights, out},
         .params =
             wgsl::transpose_weights::Params{
                 .tiles = to_u32(tiles), .rows = to_u32(rows), .cols = to_u32(cols), .skip = to_u32(skip)},
         .grid = {.x = {.items = tiles}}},
        "transpose_weights");
    return LowerCall::reading(out);
  }

  void begin() {
    namespace k = wgsl::recurrent_begin;
    const bool has_c = r_.carry && r_.states() == 2;
    const Operand h = r_.carry ? call_.read(r_.state_operand()) : nothing_;
    const Operand c = has_c ? call_.read(r_.state_operand() + 1) : r_.carry ? h : nothing_;
    const int64_t n = r_.layers * slot_;
    call_.emit({.kernel = {"recurrent_begin", {{"T", r_.carry ? std::string(call_.element(h)) : "u32"}}},
                .operands = {h, c, states_},
                .params = k::Params{.n = to_u32(n), .slot = to_u32(slot_), .has_h = r_.carry, .has_c = has_c},
                .grid = {.x = {.items = n, .per_group = 64}}},
               "recurrent_begin");
  }

  void end() {
    namespace k = wgsl::recurrent_end;
    const bool has_h = call_.wants(1), has_c = r_.states() == 2 && call_.wants(2);
    if (!has_h && !has_c) return;
    const Storage storage = call_.storage(call_.read(0));
    const Operand h = has_h ? call_.write(1) : call_.temporary(storage, {1});
    const Operand c = has_c ? call_.write(2) : call_.temporary(storage, {1});
    const int64_t n = r_.layers * slot_;
    call_.emit(
        {.kernel = {"recurrent_end", {{"T", std::string(call_.element(h))}}},
         .operands = {LowerCall::reading(states_), h, c},
         .params =
             k::Params{.n = to_u32(n), .slot = to_u32(slot_), .has_h = has_h, .has_c = has_c, .turn = to_u32(seq_ % 2)},
         .grid = {.x = {.items = n, .per_group = 64}}},
        "recurrent_end");
  }

  void emit_steps(int64_t layer, Operand inputs, Operand out) {
    namespace k = wgsl::recurrent;
    const bool reset_first = r_.cell == ops::Cell::kGru && !r_.reset_after;
    const bool wide = r_.hidden >= kWideHidden && checked_mul(seq_ * r_.layers, reset_first ? 2 : 1) <= kMostSteps;
    const uint32_t across = wide ? 16 : 4;  // threads that share a unit
    const int64_t d = r_.directions(), units = 256 / across;
    const int64_t unit_groups = wide ? (r_.hidden + units - 1) / units : 1;
    uint32_t backwards = 0;
    for (int64_t i = 0; i < d; ++i) backwards |= r_.backwards(layer * d + i) ? 1u << i : 0;
    const Operand bias = r_.bias ? call_.read(r_.bias_operand()) : LowerCall::reading(weights_);
    const Operand peephole = r_.peephole ? call_.read(r_.peephole_operand()) : LowerCall::reading(weights_);
    k::Params params{.groups = to_u32(d * batch_ * unit_groups),
                     .batch = to_u32(batch_),
                     .seq = to_u32(seq_),
                     .hidden = to_u32(r_.hidden),
                     .directions = to_u32(d),
                     .backwards = backwards,
                     .cell = to_u32(layer * d),
                     .state = to_u32(layer * kStateParts * slot_),
                     .unit_groups = to_u32(unit_groups),
                     .steps = to_u32(seq_),
                     .phases = reset_first ? 3u : 1u};
    const KernelKey key{"recurrent",
                        {{"T", weight_type_}, {"Y", std::string(call_.element(out))}},
                        {{"CELL", static_cast<uint32_t>(r_.cell)},
                         {"GATES", to_u32(r_.gates())},
                         {"KX", across},
                         {"BIAS", r_.bias},
                         {"PEEPHOLE", r_.peephole},
                         {"RESET_FIRST", reset_first},
                         {"RELU", r_.relu}}};
    const auto emit = [&] {
      call_.emit({.kernel = key,
                  .operands = {inputs, weights_, bias, peephole, LowerCall::writing(states_), out},
                  .params = params,
                  .grid = {.x = {.items = params.groups}}});
    };
    if (!wide) {
      emit();
      return;
    }
    params.steps = 1;
    for (int64_t step = 0; step < seq_; ++step)
      for (uint32_t phase = 0; phase < (reset_first ? 2u : 1u); ++phase) {
        params.first_step = to_u32(step);
        params.phases = 1u << phase;
        emit();
      }
  }

  LowerCall& call_;
  const ops::Recurrent& r_;
  int64_t batch_, seq_, in_;
  int64_t slot_;  // elements of a state of one layer's cells
  Operand nothing_, weights_, states_;
  std::string weight_type_;
};

// Nothing to do, or nothing to multiply: the host writes the states.
bool is_empty(const LowerSignature& s) {
  for (int64_t i = 0; i < 3; ++i)
    if (s.input(0).dim(i).is(0)) return true;
  return false;
}

}  // namespace

bool recurrent_supports(const LowerSignature& s, const Device& device) {
  (void)device;
  return !is_empty(s);
}

void lower_gru(LowerCall& call) { RecurrentLowering(call, ops::recurrent_of(call.attrs<ops::GruAttrs>())).run(); }
void lower_lstm(LowerCall& call) { RecurrentLowering(call, ops::recurrent_of(call.attrs<ops::LstmAttrs>())).run(); }
void lower_rnn(LowerCall& call) { RecurrentLowering(call, ops::recurrent_of(call.attrs<ops::RnnAttrs>())).run(); }

}  // namespace rlx::webgpu
