#include "rlx/ops/log_mel.h"

#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/log_mel_apply.h"
#include "wgsl/log_mel_backward.h"
#include "wgsl/log_mel_floor.h"
#include "wgsl/log_mel_power.h"

namespace rlx::webgpu {

namespace {

// Mel powers of all frames and the floors, one per maximum.
struct Mel {
  int64_t frames, n, bins, mels, per_floor;
  Operand spectrum, filters, power, lowest;

  explicit Mel(LowerCall& call) : spectrum(call.read(0)), filters(call.read(1)) {
    const TensorType &x = call.input_type(0), &f = call.input_type(1);
    n = x.dim(x.rank() - 1).value() / 2;
    mels = f.dim(0).value();
    bins = f.dim(1).value();
    frames = x.shape.num_elements() / (2 * n);
    const bool clip = call.attrs<ops::LogMelAttrs>().max_over == ops::MaxOver::kClip;
    per_floor = clip ? x.dim(x.rank() - 2).value() : 1;
    const int64_t floors = frames / per_floor;
    const Operand to_power = call.temporary(Storage::kF32, {frames, mels});
    const Operand to_lowest = call.temporary(Storage::kF32, {floors});
    power = LowerCall::reading(to_power);
    lowest = LowerCall::reading(to_lowest);
    {
      namespace k = wgsl::log_mel_power;
      call.emit(
          {.kernel = {"log_mel_power"},
           .operands = {spectrum, filters, to_power},
           .params = k::Params{.frames = to_u32(frames), .n = to_u32(n), .bins = to_u32(bins), .mels = to_u32(mels)},
           .grid = {.x = {.items = frames, .per_group = 4}},
           .extent_safe = true});
    }
    namespace k = wgsl::log_mel_floor;
    call.emit({.kernel = {.kernel = "log_mel_floor", .constants = {{"WG", per_floor == 1 ? 64u : 256u}}},
               .operands = {power, to_lowest},
               .params = k::Params{.groups = to_u32(floors), .size = to_u32(per_floor * mels)},
               .grid = {.x = {.items = floors}},
               .extent_safe = true});
  }
};

}  // namespace

void lower_log_mel(LowerCall& call) {
  namespace k = wgsl::log_mel_apply;
  const Mel mel(call);
  const int64_t n = mel.frames * mel.mels;
  call.emit({.kernel = {"log_mel_apply"},
             .operands = {mel.power, mel.lowest, call.write(0)},
             .params = k::Params{.n = to_u32(n), .size = to_u32(mel.per_floor * mel.mels)},
             .grid = {.x = {.items = n, .per_group = 256}},
             .extent_safe = true});
}

void lower_log_mel_backward(LowerCall& call) {
  namespace k = wgsl::log_mel_backward;
  const Mel mel(call);
  call.emit({.kernel = {"log_mel_backward"},
             .operands = {mel.spectrum, mel.filters, call.read(2), mel.power, mel.lowest, call.write(0)},
             .params = k::Params{.frames = to_u32(mel.frames),
                                 .n = to_u32(mel.n),
                                 .bins = to_u32(mel.bins),
                                 .mels = to_u32(mel.mels),
                                 .per_floor = to_u32(mel.per_floor)},
             .grid = {.x = {.items = mel.frames}}});
}

}  // namespace rlx::webgpu
