#include "rlx/ops/conv_backward.h"

#include <algorithm>

#include "backends/webgpu/lowering/conv_problem.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "wgsl/conv_backward_weight.h"
#include "wgsl/conv_combine.h"

namespace rlx::webgpu {

// A sum over all windows of all images: split over workgroups, then added up in a fixed order.
void lower_conv2d_backward_weight(LowerCall& call) {
  namespace k = wgsl::conv_backward_weight;
  const auto& a = call.attrs<ops::Conv2dBackwardWeightAttrs>();
  const ConvProblem c = forward_problem(ops::window_of(a), a.groups, call.input_type(0), call.input_type(1));
  const Operand x = call.read(0), dy = call.read(1), dw = call.write(0);
  constexpr int64_t kTile = 64, kDepth = 16, kManyGroups = 264;
  const auto ceil_div = [](int64_t n, int64_t d) { return (n + d - 1) / d; };
  const int64_t row = c.cin_group() * c.taps, total = c.cout * row;
  const int64_t tiles = ceil_div(c.n(), kDepth);
  const int64_t row_tiles = ceil_div(row, kTile), channel_tiles = ceil_div(c.m(), kTile);
  const int64_t groups = checked_mul(row_tiles * channel_tiles, c.groups);
  const int64_t wanted = std::clamp<int64_t>(std::min(ceil_div(2 * kManyGroups, groups), tiles / 4), 1, 64);
  const int64_t per_split = ceil_div(tiles, wanted);
  const int64_t splits = ceil_div(tiles, per_split);

  std::vector<uint32_t> taps;
  for (int64_t n = 0; n < row; ++n) {
    const auto& at = c.reads[static_cast<size_t>(n % c.taps)].at;
    const int64_t far = n / c.taps * volume(c.in) + (at[0] * c.in[1] + at[1]) * c.in[2] + at[2];
    taps.push_back(static_cast<uint32_t>(far));
    for (const int64_t d : at) taps.push_back(static_cast<uint32_t>(d));
  }
  const bool direct = splits == 1 && call.storage(dw) == Storage::kF32;
  const Operand parts = direct ? dw : call.temporary(Storage::kF32, {splits * total});
  const std::string type(call.element(x));
  call.emit({.kernel = {"conv_backward_weight", {{"T", type}}, {}},
             .operands = {x, dy, call.table(taps), parts},
             .params = k::Params{.groups = to_u32(c.groups),
                                 .images = to_u32(c.batch),
                                 .windows = to_u32(c.windows()),
                                 .q_h = to_u32(c.count[1]),
                                 .q_w = to_u32(c.count[2]),
                                 .cin = to_u32(c.cin),
                                 .cin_group = to_u32(c.cin_group()),
                                 .in_plane = to_u32(volume(c.in)),
                                 .in_d = to_u32(c.in[0]),
                                 .in_h = to_u32(c.in[1]),
                                 .in_w = to_u32(c.in[2]),
                                 .stride_d = to_u32(c.stride[0]),
                                 .stride_h = to_u32(c.stride[1]),
                                 .stride_w = to_u32(c.stride[2]),
                                 .cout = to_u32(c.cout),
                                 .cout_group = to_u32(c.m()),
                                 .row = to_u32(row),
                                 .row_tiles = to_u32(row_tiles),
                                 .channel_tiles = to_u32(channel_tiles),
                                 .splits = to_u32(splits),
                                 .tiles = to_u32(tiles),
                                 .tiles_per_split = to_u32(per_split),
                                 .split_stride = to_u32(total)},
             .grid = {.x = {.items = to_u32(groups * splits)}}});
  if (direct) return;
  namespace s = wgsl::conv_combine;
  call.emit(
      {.kernel = {"conv_combine", {{"T", type}}, {}},
       .operands = {LowerCall::reading(parts), x, x, dw},
       .params =
           s::Params{
               .n = to_u32(total), .slices = to_u32(splits), .slice_stride = to_u32(total), .plane = 1, .channels = 1},
       .grid = {.x = {.items = total, .per_group = 256}}},
      "conv_combine");
}

}  // namespace rlx::webgpu
