// Which kernel a convolution runs on, and its dispatches.
#include <algorithm>
#include <cmath>

#include "backends/webgpu/lowering/conv_problem.h"
#include "backends/webgpu/memory.h"
#include "backends/webgpu/split_weights.h"
#include "wgsl/conv_combine.h"
#include "wgsl/conv_depthwise.h"
#include "wgsl/conv_direct.h"
#include "wgsl/conv_gemm.h"
#include "wgsl/conv_pack.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kTileK = 16;     // of the matrix product
constexpr int64_t kLongSum = 256;  // tiles of K; longer ones are summed in parts
constexpr uint32_t kNoTap = 0xFFFFFFFF;
constexpr uint32_t kFarAway = 0x20000000;  // outside of every input

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

int64_t tiles(const ConvProblem& c, int64_t bm, int64_t bn) {
  return ceil_div(c.m(), bm) * ceil_div(c.n(), bn) * c.groups * c.phases();
}

// Nothing reads another depth than its window's: the slots are those of a kernel in two dimensions.
bool is_flat(const ConvProblem& c) {
  return c.in[0] == 1 && c.out[0] == 1 &&
         std::ranges::all_of(c.reads, [](const auto& slot) { return slot.at[0] == 0; });
}

// The kernel of a convolution in two dimensions, from its slots, which are the taps in order.
struct Flat {
  int64_t kh = 1, kw = 1, dilation_h = 1, dilation_w = 1;
  explicit Flat(const ConvProblem& c) {
    const auto at = [&](int64_t slot, size_t axis) { return c.reads[static_cast<size_t>(slot)].at[axis]; };
    while (kw < c.slots && at(kw, 1) == at(0, 1)) ++kw;
    kh = c.slots / kw;
    if (kw > 1) dilation_w = at(1, 2) - at(0, 2);
    if (kh > 1) dilation_h = at(kw, 1) - at(0, 1);
  }
};

constexpr int64_t kDepthwisePer = 4;  // results of a thread

bool is_depthwise(const ConvProblem& c, const Limits&) {
  if (c.cin_group() != 1 || c.phases() != 1 || !is_flat(c)) return false;
  const Flat f(c);
  // A transposed convolution reads backwards, and may start inside the image.
  if (f.dilation_w < 0 || f.dilation_h < 0 || c.reads[0].at[1] > 0 || c.reads[0].at[2] > 0) return false;
  return c.slots <= 64 && (kDepthwisePer - 1) * c.stride[2] + (f.kw - 1) * f.dilation_w < 64;
}

// Can the packed weight, which is filled up to whole tiles of `bm` rows, and the parts of sums be bound?
bool fits_bindings(const ConvProblem& c, const Limits& limits, int64_t bm, int64_t splits) {
  const int64_t most = visible_bytes(limits) / 4;
  const int64_t packed = c.phases() * c.groups * round_up(c.k(), kTileK) * round_up(c.m(), bm);
  return packed <= most && (splits == 1 || splits * c.batch * c.cout * volume(c.out) <= most);
}

// A tile's rows that a group fills: below a quarter the rest is wasted.
bool is_gemm(const ConvProblem& c, const Limits& limits) {
  constexpr int64_t kSmallestTile = 32;
  return c.m() >= 12 && c.k() >= 8 && c.groups * c.phases() <= limits.groups_per_axis &&
         c.m() <= kSmallestTile * limits.groups_per_axis && fits_bindings(c, limits, kSmallestTile, 1);
}

const ConvVariant kVariants[] = {
    {"depthwise", is_depthwise},
    {"direct", [](const ConvProblem& c, const Limits& l) { return !is_gemm(c, l); }},
    {"gemm_128x64", is_gemm, 128, 64, 8, 4, 34},
    {"gemm_64x128", is_gemm, 64, 128, 4, 8, 34},
    {"gemm_64x64", is_gemm, 64, 64, 4, 4, 25},
    {"gemm_32x128", is_gemm, 32, 128, 4, 8, 25},
    {"gemm_32x64", is_gemm, 32, 64, 4, 4, 17},
};

// Microseconds on a GPU of 132 units (an H200): a unit works through its workgroups' tiles of K, each of which takes a
// round trip to memory at least; parts of K are added up by a second dispatch.
double estimate(const ConvProblem& c, const ConvVariant& v, int64_t k_tiles, int64_t splits) {
  constexpr double kUnits = 132, kRoundTrip = 0.85, kDispatch = 5, kBytesPerMicrosecond = 2e6;
  const auto workgroups = static_cast<double>(tiles(c, v.bm, v.bn) * splits);
  const double tile = 2.0 * v.bm * v.bn * kTileK / (v.tflops * 1e6 / kUnits);
  const double turn = std::max(kRoundTrip, std::ceil(workgroups / kUnits) * tile);
  const double parts = static_cast<double>(splits * c.batch * c.cout * volume(c.out)) * 4 * 2;
  return static_cast<double>(ceil_div(k_tiles, splits)) * turn +
         (splits > 1 ? kDispatch + parts / kBytesPerMicrosecond : 0);
}

std::string element(LowerCall& call, Operand o) { return std::string(call.element(o)); }

// Bias and residual, or something of the same type in their place.
struct Epilogue {
  Operand bias, residual;
  std::vector<std::pair<std::string, uint32_t>> constants;
};
Epilogue epilogue_of(const ConvOperands& o, Operand no_bias, Operand no_residual) {
  return {o.bias.value_or(no_bias),
          o.residual.value_or(no_residual),
          {{"ACTIVATION", static_cast<uint32_t>(o.activation)},
           {"HAS_BIAS", o.bias ? 1u : 0u},
           {"HAS_RESIDUAL", o.residual ? 1u : 0u}}};
}

void append(std::vector<std::pair<std::string, uint32_t>>& to,
            const std::vector<std::pair<std::string, uint32_t>>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Where a slot reads for channel c: the distance in elements, then along the axes.
void add_tap(std::vector<uint32_t>& words, const ConvProblem& c, const ConvProblem::Slot& slot, int64_t channel) {
  if (slot.tap < 0) {
    words.insert(words.end(), {0, kFarAway, kFarAway, kFarAway});
    return;
  }
  const int64_t far = channel * volume(c.in) + (slot.at[0] * c.in[1] + slot.at[1]) * c.in[2] + slot.at[2];
  words.push_back(static_cast<uint32_t>(far));
  for (const int64_t d : slot.at) words.push_back(static_cast<uint32_t>(d));
}

std::vector<uint32_t> order_of(const ConvProblem& c) {
  std::vector<uint32_t> order;
  for (const auto& slot : c.reads) order.push_back(slot.tap < 0 ? kNoTap : to_u32(slot.tap));
  return order;
}

// Windows in pieces of what one axis of a grid holds.
template <class F>
void for_pieces(const ConvProblem& c, int64_t per_group, int64_t groups, const F& f) {
  const int64_t most = groups * per_group;
  for (int64_t first = 0; first < c.n(); first += most) f(first, std::min(most, c.n() - first));
}

void emit_direct(LowerCall& call, const ConvProblem& c, const ConvOperands& o) {
  namespace k = wgsl::conv_direct;
  std::vector<uint32_t> taps;
  for (const auto& slot : c.reads) add_tap(taps, c, slot, 0);
  const Operand tap_table = call.table(taps), order = call.table(order_of(c));
  Epilogue e = epilogue_of(o, o.w, o.w);
  const int64_t per_thread = c.m() >= 4 ? 4 : c.m() >= 2 ? 2 : 1, blocks = ceil_div(c.m(), per_thread);
  append(e.constants, {{"CO", to_u32(per_thread)}});
  // What one axis of the grid does not hold goes on along the next.
  const int64_t all_blocks = checked_mul(c.groups, blocks), planes = checked_mul(all_blocks, c.phases());
  const Limits limits = limits_for(call.device(), call.options());
  const int64_t across = std::min<int64_t>(planes, limits.groups_per_row);
  const bool whole = c.n() <= int64_t{64} * limits.groups_per_row;
  for_pieces(c, 64, limits.groups_per_row, [&](int64_t first, int64_t count) {
    call.emit({.kernel = {"conv_direct", {{"T", element(call, o.y)}}, e.constants},
               .operands = {o.x, tap_table, order, o.w, e.bias, e.residual, o.y},
               .params = {k::Params{.n_first = to_u32(first),
                                    .n_end = to_u32(first + count),
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
                                    .slots = to_u32(c.slots),
                                    .blocks = to_u32(blocks),
                                    .all_blocks = to_u32(all_blocks),
                                    .cout = to_u32(c.cout),
                                    .cout_group = to_u32(c.m()),
                                    .group_stride = to_u32(c.group_stride),
                                    .m_stride = to_u32(c.m_stride),
                                    .channel_stride = to_u32(c.channel_stride),
                                    .out_plane = to_u32(volume(c.out)),
                                    .out_d = to_u32(c.out[0]),
                                    .out_h = to_u32(c.out[1]),
                                    .out_w = to_u32(c.out[2]),
                                    .step_d = to_u32(c.step[0]),
                                    .step_h = to_u32(c.step[1]),
                                    .step_w = to_u32(c.step[2])},
                          {&k::Params::n_end}},
               .grid = {.x = {.items = count, .per_group = 64, .active = true},
                        .y = {.items = across},
                        .z = {.items = to_u32(planes), .per_group = across}},
               .extent_safe = whole && o.extent_safe});
  });
}

void emit_depthwise(LowerCall& call, const ConvProblem& c, const ConvOperands& o) {
  namespace k = wgsl::conv_depthwise;
  const Flat f(c);
  Epilogue e = epilogue_of(o, o.w, o.w);
  append(e.constants, {{"PER", to_u32(kDepthwisePer)},
                       {"KH", to_u32(f.kh)},
                       {"KW", to_u32(f.kw)},
                       {"STRIDE_W", to_u32(c.stride[2])},
                       {"DILATION_W", to_u32(f.dilation_w)}});
  const int64_t strips = ceil_div(c.out[2], kDepthwisePer), n = c.batch * c.cout * c.out[1] * strips;
  call.emit({.kernel = {"conv_depthwise", {{"T", element(call, o.y)}}, e.constants},
             .operands = {o.x, o.w, e.bias, e.residual, o.y},
             .params = {k::Params{.n = to_u32(n),
                                  .strips = to_u32(strips),
                                  .out_h = to_u32(c.out[1]),
                                  .out_w = to_u32(c.out[2]),
                                  .in_h = to_u32(c.in[1]),
                                  .in_w = to_u32(c.in[2]),
                                  .cout = to_u32(c.cout),
                                  .multiplier = to_u32(c.m()),
                                  .stride_h = to_u32(c.stride[1]),
                                  .dilation_h = to_u32(f.dilation_h),
                                  .pad_h = to_u32(-c.reads[0].at[1]),
                                  .pad_w = to_u32(-c.reads[0].at[2])},
                        {&k::Params::n}},
             .grid = {.x = {.items = n, .per_group = 128, .active = true}},
             .extent_safe = o.extent_safe});
}

// The weight in the order that conv_gemm reads it: once if it is one.
Operand pack_weight(LowerCall& call, const ConvProblem& c, const ConvOperands& o, int64_t block, int64_t k_padded,
                    int64_t m_padded) {
  namespace k = wgsl::conv_pack;
  const int64_t n = c.phases() * c.groups * k_padded * m_padded;
  const Operand packed = call.derived(o.w_input, call.storage(o.w), {n});
  call.emit_derived(o.w_input,
                    {.kernel = {"conv_pack", {{"T", element(call, o.w)}}, {}},
                     .operands = {o.w, call.table(order_of(c)), packed},
                     .params = k::Params{.n = to_u32(n),
                                         .m_padded = to_u32(m_padded),
                                         .k_padded = to_u32(k_padded),
                                         .m = to_u32(c.m()),
                                         .k = to_u32(c.k()),
                                         .groups = to_u32(c.groups),
                                         .slots = to_u32(c.slots),
                                         .block = to_u32(block),
                                         .group_stride = to_u32(c.group_stride),
                                         .m_stride = to_u32(c.m_stride),
                                         .channel_stride = to_u32(c.channel_stride)},
                     .grid = {.x = {.items = n, .per_group = 256}},
                     .extent_safe = true},
                    "conv_pack");
  return LowerCall::reading(packed);
}

void emit_gemm(LowerCall& call, const ConvProblem& c, const ConvOperands& o, const ConvVariant& v,
               int64_t wanted_splits) {
  namespace k = wgsl::conv_gemm;
  const Limits& limits = call.device().limits();
  const int64_t plane = volume(c.in), out_plane = volume(c.out);
  const int64_t m_padded = round_up(c.m(), v.bm), k_tiles = ceil_div(c.k(), kTileK), k_padded = k_tiles * kTileK;
  const int64_t block = c.cin_group() % kTileK == 0 ? kTileK : 1;

  const int64_t tiles_per_split = ceil_div(k_tiles, wanted_splits);
  const int64_t splits = ceil_div(k_tiles, tiles_per_split);
  const Operand to = splits > 1 ? call.temporary(Storage::kF32, {splits * c.batch * c.cout * out_plane}) : o.y;

  // Four neighbours at a time: loads where a window is an element, stores where planes are made of fours. What lies in
  // one value's bytes is seen as one type: no vectors there.
  const auto aligned = [&](Operand operand) { return call.starts_at_multiple_of(operand, 16); };
  const auto apart = [&](Operand operand, std::initializer_list<std::optional<Operand>> others) {
    return std::none_of(others.begin(), others.end(),
                        [&](const auto& other) { return other && call.same_root(operand, *other); });
  };
  ConvOperands own = o;
  if (splits > 1) own = {.x = o.x, .w = o.w, .y = to};
  const bool rows_in = c.pointwise() && plane % 4 == 0 && aligned(o.x) && apart(o.x, {own.bias, own.residual, o.w});
  const bool rows_out = c.phases() == 1 && out_plane % 4 == 0 && aligned(to) &&
                        (!own.residual || (aligned(*own.residual) && apart(*own.residual, {o.x, own.bias, o.w})));

  std::vector<uint32_t> taps;
  if (rows_in) {
    taps.assign(4, 0);  // not read
  } else {
    for (int64_t phase = 0; phase < c.phases(); ++phase)
      for (int64_t i = 0; i < k_padded / block; ++i) {
        const bool is_tap = i < c.k() / block;
        add_tap(taps, c, is_tap ? c.reads[static_cast<size_t>(phase * c.slots + i % c.slots)] : ConvProblem::Slot{},
                i / c.slots * block);
      }
  }
  const Operand w = pack_weight(call, c, o, block, k_padded, m_padded);

  const std::string x_type = element(call, o.x), w_type = element(call, o.w), to_type = element(call, to);
  const auto four = [](const std::string& t, bool vector) { return vector ? str("vec4<", t, ">") : t; };
  // What stands in for an operand that is not there has its type.
  Epilogue e = epilogue_of(own, o.w, rows_out ? w : o.w);
  append(e.constants, {{"BM", v.bm},
                       {"BN", v.bn},
                       {"BK", to_u32(kTileK)},
                       {"TM", v.tm},
                       {"TN", v.tn},
                       {"BLOCK", rows_in ? 1u : to_u32(block)},
                       {"CHECKED", c.inside && c.k() == k_padded ? 0u : 1u},
                       {"PHASED", c.phases() > 1 ? 1u : 0u},
                       {"IN_PARTS", tiles_per_split > kLongSum ? 1u : 0u}});
  KernelKey key{.kernel = "conv_gemm",
                .types = {{"T", w_type},
                          {"X", four(x_type, rows_in)},
                          {"Y", four(to_type, rows_out)},
                          {"R", four(w_type, rows_out)}},
                .constants = e.constants};
  if (rows_in) key.includes.emplace_back("conv_gather", "conv_rows");
  if (rows_out) key.includes.emplace_back("conv_store", "conv_store_rows");
  const Operand tap_table = call.table(taps);
  const bool whole = c.n() <= int64_t{v.bn} * limits.groups_per_axis;
  for_pieces(c, v.bn, limits.groups_per_axis, [&](int64_t first, int64_t count) {
    call.emit({.kernel = key,
               .operands = {o.x, tap_table, w, e.bias, e.residual, to},
               .params = {k::Params{.groups = to_u32(c.groups),
                                    .phases = to_u32(c.phases()),
                                    .n_first = to_u32(first),
                                    .n_end = to_u32(first + count),
                                    .windows = to_u32(c.windows()),
                                    .q_h = to_u32(c.count[1]),
                                    .q_w = to_u32(c.count[2]),
                                    .cin = to_u32(c.cin),
                                    .cin_group = to_u32(c.cin_group()),
                                    .in_plane = to_u32(plane),
                                    .in_d = to_u32(c.in[0]),
                                    .in_h = to_u32(c.in[1]),
                                    .in_w = to_u32(c.in[2]),
                                    .stride_d = to_u32(c.stride[0]),
                                    .stride_h = to_u32(c.stride[1]),
                                    .stride_w = to_u32(c.stride[2]),
                                    .k_tiles = to_u32(k_tiles),
                                    .tiles_per_split = to_u32(tiles_per_split),
                                    .split_stride = to_u32(c.batch * c.cout * out_plane / (rows_out ? 4 : 1)),
                                    .m_quads = to_u32(m_padded / 4),
                                    .cout = to_u32(c.cout),
                                    .cout_group = to_u32(c.m()),
                                    .out_plane = to_u32(out_plane),
                                    .out_d = to_u32(c.out[0]),
                                    .out_h = to_u32(c.out[1]),
                                    .out_w = to_u32(c.out[2]),
                                    .step_d = to_u32(c.step[0]),
                                    .step_h = to_u32(c.step[1]),
                                    .step_w = to_u32(c.step[2])},
                          {&k::Params::n_end}},
               .grid = {.x = {.items = c.m(), .per_group = v.bm},
                        .y = {.items = count, .per_group = v.bn, .active = true},
                        .z = {.items = c.groups * c.phases() * splits}},
               .extent_safe = whole && o.extent_safe});
  });
  if (splits == 1) return;

  namespace s = wgsl::conv_combine;
  const int64_t n = c.batch * c.cout * out_plane;
  const Operand stand_in = o.bias ? *o.bias : o.residual ? *o.residual : o.w;
  Epilogue last = epilogue_of(o, stand_in, o.residual ? *o.residual : stand_in);
  call.emit({.kernel = {"conv_combine", {{"T", element(call, o.y)}}, last.constants},
             .operands = {LowerCall::reading(to), last.bias, last.residual, o.y},
             .params = {s::Params{.n = to_u32(n),
                                  .slices = to_u32(splits),
                                  .slice_stride = to_u32(n),
                                  .plane = to_u32(out_plane),
                                  .channels = to_u32(c.cout)},
                        {&s::Params::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = o.extent_safe},
            "conv_combine");
}

}  // namespace

std::span<const ConvVariant> conv_variants() { return kVariants; }

ConvChoice choose_conv(const ConvProblem& c, const Limits& limits) {
  for (const ConvVariant& v : kVariants)
    if (v.bm == 0 && v.fits(c, limits)) return {&v};
  const int64_t k_tiles = ceil_div(c.k(), kTileK);
  const int64_t most = std::min<int64_t>({64, k_tiles / 4, limits.groups_per_axis / (c.groups * c.phases())});
  ConvChoice best{nullptr};
  double least = 0;
  for (const ConvVariant& v : kVariants) {
    if (v.bm == 0) continue;
    for (int64_t splits = 1; splits <= std::max<int64_t>(1, most); ++splits) {
      const double us = estimate(c, v, k_tiles, splits);
      if ((best.variant && us >= least) || !fits_bindings(c, limits, v.bm, splits)) continue;
      best = {&v, splits};
      least = us;
    }
  }
  return best;
}

void emit_conv(LowerCall& call, const ConvProblem& problem, ConvOperands operands) {
  operands.extent_safe &= call.bucket_axis(operands.w_input) < 0;  // images can be cut off, channels of one image not
  const auto [v, splits] = choose_conv(problem, limits_for(call.device(), call.options()));
  if (v->name == "depthwise")
    emit_depthwise(call, problem, operands);
  else if (v->name == "direct")
    emit_direct(call, problem, operands);
  else
    emit_gemm(call, problem, operands, *v, splits);
}

}  // namespace rlx::webgpu
