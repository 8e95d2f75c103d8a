#include "rlx/ops/welch_peaks.h"

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "wgsl/welch_pairs.h"
#include "wgsl/welch_power.h"

namespace rlx::webgpu {

void lower_welch_peaks(LowerCall& call) {
  constexpr std::string_view kStep = "welch_peaks_gpu";
  const auto& attrs = call.attrs<ops::WelchPeaksAttrs>();
  const int64_t size = call.input_type(0).dim(1).value() / 2, bins = size / 2 + 1;
  const int64_t batch = call.output_type(0).dim(0).value(), peaks = batch * attrs.k;
  const Operand power = call.temporary(Storage::kF32, {batch, bins});
  const Operand values = call.temporary(Storage::kF32, {peaks}), ids = call.temporary(Storage::kI32, {peaks});
  {
    namespace k = wgsl::welch_power;
    call.emit({.kernel = {"welch_power"},
               .operands = {call.read(0), power},
               .params = k::Params{.n = to_u32(batch * bins),
                                   .bins = to_u32(bins),
                                   .size = to_u32(size),
                                   .segments = to_u32(attrs.n_segments)},
               .grid = {.x = {.items = batch * bins, .per_group = 256}},
               .extent_safe = true},
              kStep);
  }
  emit_topk(call,
            {.in = LowerCall::reading(power), .values = values, .ids = ids, .split = {batch, bins, 1}, .k = attrs.k},
            kStep);
  namespace k = wgsl::welch_pairs;
  call.emit({.kernel = {"welch_pairs"},
             .operands = {LowerCall::reading(values), LowerCall::reading(ids), call.write(0)},
             .params = k::Params{.n = to_u32(peaks), .segments = static_cast<float>(attrs.n_segments)},
             .grid = {.x = {.items = peaks, .per_group = 256}},
             .extent_safe = true},
            kStep);
}

}  // namespace rlx::webgpu
