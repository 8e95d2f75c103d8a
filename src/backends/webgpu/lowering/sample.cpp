#include "rlx/ops/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/rows.h"
#include "wgsl/sample.h"

namespace rlx::webgpu {

// Of 0 logits the oracle has no use for a kernel: it gives 0.
bool sample_supports(const LowerSignature& s, const Device&) {
  const TensorType& logits = s.input(0);
  const Dim& size = logits.dim(logits.rank() - 1);
  return !size.is_static() || size.value() > 0;
}

void lower_sample(LowerCall& call) {
  const auto& attrs = call.attrs<ops::SampleAttrs>();
  const TensorType& logits = call.input_type(0);
  const AxisSplit split = split_at(logits.shape, logits.rank() - 1);
  const Operand in = call.read(0), out = call.write(0);
  const bool safe = logits.rank() > 1;
  const std::string element(call.element(in));
  if (attrs.temperature <= 1e-6f || attrs.top_k == 1) {
    // NaN is the smallest.
    emit_arg(call, {.in = in, .out = out, .dtype = logits.dtype, .split = split, .nan_key = 0, .extent_safe = safe});
    return;
  }
  namespace k = wgsl::sample;
  const bool has_rng = call.num_inputs() == 2;
  const Operand rng = has_rng ? call.read(1) : call.table(std::vector<uint32_t>(4));
  const double top_p = std::max(0.0, static_cast<double>(attrs.top_p));
  const k::Params params{
      .rows = to_u32(split.outer),
      .cols = to_u32(split.cols),
      .top_k = attrs.top_k < split.cols ? to_u32(attrs.top_k) : 0,
      .top_p = attrs.top_p < 1 ? static_cast<uint32_t>(std::ceil(std::ldexp(top_p, 32))) : 0,
      .has_top_p = attrs.top_p < 1 ? 1u : 0u,
      // Weights of 1 in every column add up to less than 2^32.
      .one = 1u << std::min<uint32_t>(12, 32 - std::bit_width(to_u32(split.cols))),
      .scale = 1 / attrs.temperature,
      .seed_low = static_cast<uint32_t>(attrs.seed),
      .seed_high = static_cast<uint32_t>(attrs.seed >> 32),
  };
  const uint32_t threads = call.device().limits().workgroup_threads >= 1024 && split.cols > 4096 ? 1024 : 256;
  call.emit({.kernel = {.kernel = "sample",
                        .types = {{"E", element}},
                        .constants = {{"WG", threads}, {"NAN_KEY", 0u}, {"HAS_RNG", has_rng ? 1u : 0u}}},
             .operands = {in, rng, out},
             .params = {params, {&k::Params::rows}},
             .grid = {.x = {.items = split.outer, .active = true}},
             .extent_safe = safe});
}

}  // namespace rlx::webgpu
