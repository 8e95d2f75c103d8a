// y[image, channel, place] = x at the coordinates grid[image, place, axes], interpolated. One thread per element.
// @include "scalar.wgsl"
// @include "grid_axis.wgsl"
// @include "grid_sum.wgsl"
alias T = f32;                 // @type f32 | f16; of the nearest element any
alias G = f32;                 // @type f32 | f16
override AXES: u32 = 2u;

struct Params {
  n: u32,
  places: u32,                 // of an image
  channels: u32,
  size_d: u32,
  size_h: u32,
  size_w: u32,
  x_base: u32,
  grid_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       grid: array<G>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let place = i % p.places;
  let plane = i / p.places;
  let at = p.grid_base + (plane / p.channels * p.places + place) * AXES;   // the last axis of x comes first
  let taps_w = axis_taps(f32(grid[at]), p.size_w);
  var taps_h: AxisTaps;
  var taps_d: AxisTaps;
  taps_h.part[0] = 1.0;
  taps_d.part[0] = 1.0;
  if (AXES > 1u) { taps_h = axis_taps(f32(grid[at + min(1u, AXES - 1u)]), p.size_h); }
  if (AXES > 2u) { taps_d = axis_taps(f32(grid[at + min(2u, AXES - 1u)]), p.size_d); }
  var total = Total();
  for (var a = 0u; a < select(1u, GRID_TAPS, AXES > 2u); a++) {
    for (var b = 0u; b < select(1u, GRID_TAPS, AXES > 1u); b++) {
      for (var c = 0u; c < GRID_TAPS; c++) {
        if (min(taps_d.index[a], min(taps_h.index[b], taps_w.index[c])) < 0) { continue; }
        let from_plane = (u32(taps_d.index[a]) * p.size_h + u32(taps_h.index[b])) * p.size_w + u32(taps_w.index[c]);
        total = add_to(total, x[p.x_base + plane * p.size_d * p.size_h * p.size_w + from_plane],
                       taps_d.part[a] * taps_h.part[b] * taps_w.part[c]);
      }
    }
  }
  y[p.y_base + i] = T(total);
}
