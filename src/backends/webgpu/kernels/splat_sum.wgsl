// Sums what the tiles have found for a splat, one thread per splat in the order of depth, in the order of its tiles.
struct Params {
  n: u32,
  order_base: u32,
  starts_base: u32,
  places_base: u32,
  parts_base: u32,
  opacities_base: u32,
  out_base: u32,
  d_color_base: u32,
}
@group(0) @binding(0) var<storage, read>       order: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read>       starts: array<u32>;
@group(0) @binding(2) var<storage, read>       places: array<u32>;
@group(0) @binding(3) var<storage, read>       parts: array<f32>;
@group(0) @binding(4) var<storage, read>       opacities: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;       // positions, scales, rotations, opacities, …
@group(0) @binding(6) var<storage, read_write> d_color: array<f32>;
@group(0) @binding(7) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let rank = id.x + id.y * groups.x * 64u;
  if (rank >= p.n) { return; }
  let splat = order[p.order_base + rank].y;   // splats that no tile lists come last, but before what is none
  var sums: array<f32, 14>;
  for (var e = starts[p.starts_base + rank]; e < starts[p.starts_base + rank + 1u]; e++) {
    let at = p.parts_base + places[p.places_base + e] * 14u;
    for (var c = 0u; c < 14u; c++) { sums[c] += parts[at + c]; }
  }
  for (var k = 0u; k < 3u; k++) {
    out[p.out_base + splat * 3u + k] = sums[k];
    out[p.out_base + p.n * 3u + splat * 3u + k] = sums[3u + k];
    d_color[p.d_color_base + splat * 3u + k] = sums[11u + k];
  }
  for (var k = 0u; k < 4u; k++) { out[p.out_base + p.n * 6u + splat * 4u + k] = sums[6u + k]; }
  let given = opacities[p.opacities_base + splat];
  out[p.out_base + p.n * 10u + splat] = select(0.0, sums[10], given >= 0.0 && given <= 1.0);  // else clamped
}
