// Gaussian splatting (spec 30, 16 and 21.5): splats are projected, sorted by depth, entered into the list of every tile
// they meet, and the list is sorted by tile; then every pixel composites its tile's splats.
#include "rlx/ops/gaussian_splat.h"

#include <algorithm>
#include <bit>

#include "backends/webgpu/lowering/check_indices.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "backends/webgpu/lowering/scatter_reduce.h"
#include "wgsl/splat_backward.h"
#include "wgsl/splat_color.h"
#include "wgsl/splat_color_gradient.h"
#include "wgsl/splat_dc.h"
#include "wgsl/splat_keys.h"
#include "wgsl/splat_lists.h"
#include "wgsl/splat_project.h"
#include "wgsl/splat_raster.h"
#include "wgsl/splat_rays.h"
#include "wgsl/splat_starts.h"
#include "wgsl/splat_sum.h"
#include "wgsl/splat_tiles.h"

namespace rlx::webgpu {

namespace {

template <class A>
int64_t tiles_x(const A& a) {
  return (a.width + a.tile_size - 1) / a.tile_size;
}
template <class A>
int64_t tiles_y(const A& a) {
  return (a.height + a.tile_size - 1) / a.tile_size;
}

// What can be sorted: sort_pairs.wgsl takes powers of two from one block on.
int64_t sortable(int64_t count) {
  return std::max<int64_t>(1024, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))));
}

struct Scene {
  ops::GaussianSplatAttrs attrs;
  int64_t splats, stored;  // stored: coefficients of harmonics per splat
  Operand positions, scales, rotations, opacities, colors, sh, view;

  Scene(LowerCall& call, const ops::GaussianSplatAttrs& settings)
      : attrs(settings),
        splats(call.input_type(3).dim(0).value()),
        stored(call.input_type(5).dim(0).value() / (3 * splats)),
        positions(call.read(0)),
        scales(call.read(1)),
        rotations(call.read(2)),
        opacities(call.read(3)),
        colors(call.read(4)),
        sh(stored == 0 ? colors : call.read(5)),
        view(call.read(6)) {}
};

void emit_rays(LowerCall& call, const Scene& s, Operand prep) {
  namespace k = wgsl::splat_rays;
  const int64_t pixels = s.attrs.width * s.attrs.height;
  call.emit({.kernel = {"splat_rays"},
             .operands = {s.view, prep},
             .params = k::Params{.pixels = to_u32(pixels),
                                 .width = to_u32(s.attrs.width),
                                 .height = to_u32(s.attrs.height),
                                 .rays = to_u32(14 * s.splats),
                                 .tile_size = to_u32(s.attrs.tile_size),
                                 .tiles_x = to_u32(tiles_x(s.attrs)),
                                 .alpha_cutoff = s.attrs.alpha_cutoff,
                                 .threshold = s.attrs.transmittance_threshold,
                                 .max_steps = static_cast<float>(s.attrs.max_splat_steps)},
             .grid = {.x = {.items = pixels, .per_group = 256}}});
}

// How the colours of a scene come about.
struct ColorRule {
  uint32_t dc = 0;  // where constant terms come from: kernels/splat_color.wgsl
  int64_t coefficients = 1;
  float sign = 1;
  Operand rule;

  ColorRule(LowerCall& call, const Scene& s)
      // With fewer than 16 coefficients the scene's own numbers decide.
      : dc(s.stored == 0   ? 1
           : s.stored < 16 ? 2
                           : 0),
        sign(s.attrs.sh_direction == ops::ShDirection::kFromEye ? -1.0f : 1.0f) {
    for (int64_t band = 1; band <= s.attrs.sh_band && (band + 1) * (band + 1) <= s.stored; ++band)
      coefficients = (band + 1) * (band + 1);
    const Operand to_rule = call.temporary(Storage::kU32, {1});
    call.emit({.kernel = {"splat_dc"},
               .operands = {s.sh, to_rule},
               .params = wgsl::splat_dc::Params{.n = to_u32(dc == 2 ? s.splats : 0), .stored = to_u32(s.stored)}});
    rule = LowerCall::reading(to_rule);
  }
};

void emit_colors(LowerCall& call, const Scene& s, const ColorRule& rule, Operand prep) {
  namespace k = wgsl::splat_color;
  call.emit({.kernel = {.kernel = "splat_color", .constants = {{"DC", rule.dc}}},
             .operands = {s.positions, s.opacities, s.colors, s.sh, s.view, rule.rule, prep},
             .params = k::Params{.n = to_u32(s.splats),
                                 .stored = to_u32(s.stored),
                                 .coefficients = to_u32(rule.coefficients),
                                 .sign = rule.sign},
             .grid = {.x = {.items = s.splats, .per_group = 64}}});
}

Operand emit_outlines(LowerCall& call, const Scene& s, Operand prep, Operand lists) {
  namespace k = wgsl::splat_project;
  const Operand outlines = call.temporary(Storage::kF32, {s.splats, 12});
  call.emit({.kernel = {"splat_project"},
             .operands = {s.positions, s.scales, s.rotations, s.opacities, s.view, prep, lists, outlines},
             .params = k::Params{.n = to_u32(s.splats),
                                 .width = to_u32(s.attrs.width),
                                 .height = to_u32(s.attrs.height),
                                 .tile_size = to_u32(s.attrs.tile_size),
                                 .radius_scale = s.attrs.radius_scale,
                                 .alpha_cutoff = s.attrs.alpha_cutoff},
             .grid = {.x = {.items = s.splats, .per_group = 64}}});
  return LowerCall::reading(outlines);
}

// Splats by depth, where each one's entries start before they are sorted by tile, and where they are afterwards.
struct Entries {
  Operand order, starts, places;
};
Entries emit_lists(LowerCall& call, const Scene& s, Operand outlines, Operand lists) {
  const int64_t tiles = tiles_x(s.attrs) * tiles_y(s.attrs), limit = s.attrs.max_list_entries;
  const int64_t sorted = sortable(s.splats), entries_count = sortable(limit);
  const Operand order = call.temporary(Storage::kU32, {sorted, 2});
  const Operand entries = call.temporary(Storage::kU32, {entries_count, 2});
  const Operand starts = call.temporary(Storage::kU32, {s.splats + 1});
  const Operand owners = call.temporary(Storage::kU32, {limit}), places = call.temporary(Storage::kU32, {limit});
  {
    namespace k = wgsl::splat_keys;
    call.emit({.kernel = {"splat_keys"},
               .operands = {outlines, order, entries, lists},
               .params = k::Params{.n = to_u32(s.splats),
                                   .sorted = to_u32(sorted),
                                   .entries_count = to_u32(entries_count),
                                   .tiles = to_u32(tiles),
                                   .ranges = to_u32(s.splats + limit)},
               .grid = {.x = {.items = std::max({sorted, entries_count, tiles}), .per_group = 256}}});
  }
  emit_sort(call, order, {.cols = sorted});
  const auto emit_tiles = [&](bool enter) {
    namespace k = wgsl::splat_tiles;
    call.emit({.kernel = {.kernel = "splat_tiles", .constants = {{"ENTER", enter ? 1u : 0u}}},
               .operands = {outlines, LowerCall::reading(order), starts, entries, owners},
               .params = k::Params{.n = to_u32(s.splats),
                                   .tile_size = static_cast<float>(s.attrs.tile_size),
                                   .tiles_x = to_u32(tiles_x(s.attrs)),
                                   .tiles_y = to_u32(tiles_y(s.attrs)),
                                   .limit = to_u32(limit)},
               .grid = {.x = {.items = s.splats, .per_group = 64}}});
  };
  emit_tiles(false);
  call.emit({.kernel = {"splat_starts"},
             .operands = {starts},
             .params = wgsl::splat_starts::Params{.n = to_u32(s.splats), .limit = to_u32(limit)}});
  emit_tiles(true);
  emit_sort(call, entries, {.cols = entries_count});
  namespace k = wgsl::splat_lists;
  call.emit({.kernel = {"splat_lists"},
             .operands = {LowerCall::reading(entries), LowerCall::reading(owners), lists, places},
             .params = k::Params{.limit = to_u32(limit), .ids = to_u32(s.splats), .ranges = to_u32(s.splats + limit)},
             .grid = {.x = {.items = limit, .per_group = 256}}});
  return {LowerCall::reading(order), LowerCall::reading(starts), LowerCall::reading(places)};
}

// Every pixel composites the splats of its tile.
template <class A>
void emit_raster(LowerCall& call, const A& a, int64_t splats, Operand prep, Operand lists, Operand view) {
  namespace k = wgsl::splat_raster;
  call.emit({.kernel = {"splat_raster"},
             .operands = {prep, lists, view, call.write(0)},
             .params = k::Params{.n = to_u32(splats),
                                 .width = to_u32(a.width),
                                 .height = to_u32(a.height),
                                 .tile_size = to_u32(a.tile_size),
                                 .tiles_x = to_u32(tiles_x(a)),
                                 .limit = to_u32(a.max_list_entries),
                                 .max_steps = to_u32(std::min<int64_t>(a.max_splat_steps, INT32_MAX)),
                                 .alpha_cutoff = a.alpha_cutoff,
                                 .threshold = a.transmittance_threshold},
             .grid = {.x = {.items = (a.width + 15) / 16 * ((a.height + 15) / 16)}}});
}

}  // namespace

// Without splats, pixels or entries there is nothing to sort; the host writes such results.
bool gaussian_splat_prepare_supports(const LowerSignature& s, const Device&) {
  const auto& a = s.attrs.as<ops::GaussianSplatAttrs>();
  return !s.input(3).dim(0).is(0) && a.width * a.height > 0 && a.max_list_entries > 0;
}

void lower_gaussian_splat_prepare(LowerCall& call) {
  const Scene s(call, call.attrs<ops::GaussianSplatAttrs>());
  const auto result = [&](int64_t i, Storage storage) {
    return call.wants(i) ? call.write(i) : call.temporary(storage, {call.output_type(i).shape.num_elements()});
  };
  const Operand prep = result(0, Storage::kF32), lists = result(1, Storage::kU32);
  if (call.wants(0)) {
    emit_rays(call, s, prep);
    emit_colors(call, s, ColorRule(call, s), prep);
  }
  const Operand outlines = emit_outlines(call, s, prep, lists);
  if (call.wants(1)) emit_lists(call, s, outlines, lists);
}

bool gaussian_splat_rasterize_supports(const LowerSignature& s, const Device&) {
  const auto& a = s.attrs.as<ops::GaussianSplatRasterizeAttrs>();
  return a.width * a.height > 0;
}

void lower_gaussian_splat_rasterize(LowerCall& call) {
  const auto& a = call.attrs<ops::GaussianSplatRasterizeAttrs>();
  const int64_t splats = (call.input_type(0).dim(0).value() - 3 * a.width * a.height - 10) / 14;
  check_splats(call, 1, {splats, a.max_list_entries, tiles_x(a) * tiles_y(a)});
  emit_raster(call, a, splats, call.read(0), call.read(1), call.read(2));
}

void lower_gaussian_splat_render(LowerCall& call) {
  const auto& a = call.attrs<ops::GaussianSplatAttrs>();
  const Scene s(call, a);
  const int64_t tiles = tiles_x(a) * tiles_y(a);
  const Operand prep = call.temporary(Storage::kF32, {14 * s.splats + 3 * a.width * a.height + 10});
  const Operand lists = call.temporary(Storage::kU32, {s.splats + a.max_list_entries + 2 * tiles});
  emit_rays(call, s, prep);
  emit_colors(call, s, ColorRule(call, s), prep);
  emit_lists(call, s, emit_outlines(call, s, prep, lists), lists);
  emit_raster(call, a, s.splats, LowerCall::reading(prep), LowerCall::reading(lists), s.view);
}

bool gaussian_splat_render_backward_supports(const LowerSignature& s, const Device&) {
  const auto& a = s.attrs.as<ops::GaussianSplatBackwardAttrs>();
  return !s.input(3).dim(0).is(0) && a.width * a.height > 0 && a.max_list_entries > 0;
}

void lower_gaussian_splat_render_backward(LowerCall& call) {
  const auto& a = call.attrs<ops::GaussianSplatBackwardAttrs>();
  const Scene s(call, {.width = a.width,
                       .height = a.height,
                       .tile_size = a.tile_size,
                       .radius_scale = a.radius_scale,
                       .alpha_cutoff = a.alpha_cutoff,
                       .max_splat_steps = a.max_splat_steps,
                       .transmittance_threshold = a.transmittance_threshold,
                       .max_list_entries = a.max_list_entries,
                       .sh_band = a.sh_band,
                       .sh_direction = a.sh_direction});
  const int64_t tiles = tiles_x(a) * tiles_y(a), limit = a.max_list_entries;
  const Operand prep = call.temporary(Storage::kF32, {14 * s.splats + 3 * a.width * a.height + 10});
  const Operand lists = call.temporary(Storage::kU32, {s.splats + limit + 2 * tiles});
  const ColorRule rule(call, s);
  emit_rays(call, s, prep);
  emit_colors(call, s, rule, prep);
  const Operand outlines = emit_outlines(call, s, prep, lists);
  const Entries entries = emit_lists(call, s, outlines, lists);
  const Operand parts = call.temporary(Storage::kF32, {limit, 14});
  const Operand d_color = call.temporary(Storage::kF32, {s.splats, 3}), out = call.write(0);
  {
    namespace k = wgsl::splat_backward;
    call.emit(
        {.kernel = {"splat_backward"},
         .operands = {LowerCall::reading(prep), LowerCall::reading(lists), s.view, call.read(7), s.positions, parts},
         .params = k::Params{.n = to_u32(s.splats),
                             .width = to_u32(a.width),
                             .height = to_u32(a.height),
                             .tile_size = to_u32(a.tile_size),
                             .tiles_x = to_u32(tiles_x(a)),
                             .tiles = to_u32(tiles),
                             .limit = to_u32(limit),
                             .max_steps = to_u32(std::min<int64_t>(a.max_splat_steps, INT32_MAX)),
                             .alpha_cutoff = a.alpha_cutoff,
                             .threshold = a.transmittance_threshold,
                             .clip = a.loss_grad_clip},
         .grid = {.x = {.items = tiles}}});
  }
  call.emit({.kernel = {"splat_sum"},
             .operands = {entries.order, entries.starts, entries.places, LowerCall::reading(parts), s.opacities, out,
                          d_color},
             .params = wgsl::splat_sum::Params{.n = to_u32(s.splats)},
             .grid = {.x = {.items = s.splats, .per_group = 64}}});
  namespace k = wgsl::splat_color_gradient;
  call.emit({.kernel = {.kernel = "splat_color_gradient", .constants = {{"DC", rule.dc}}},
             .operands = {s.positions, s.colors, s.sh, s.view, rule.rule, LowerCall::reading(d_color), out},
             .params = k::Params{.n = to_u32(s.splats),
                                 .stored = to_u32(s.stored),
                                 .coefficients = to_u32(rule.coefficients),
                                 .sign = rule.sign},
             .grid = {.x = {.items = s.splats, .per_group = 64}}});
}

}  // namespace rlx::webgpu
