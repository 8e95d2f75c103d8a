// Puts the gradient of each neighbour's distance, over that distance, to its place in the matrix of distances.
// @include "scalar.wgsl"
struct Params {
  pairs: u32,
  n: u32,
  k: u32,        // neighbours that were looked for
  columns: u32,  // of the gradient
  values_base: u32,
  ids_base: u32,
  d_distance_base: u32,
  d_pairwise_base: u32,
}
@group(0) @binding(0) var<storage, read>       values: array<f32>;
@group(0) @binding(1) var<storage, read>       ids: array<i32>;
@group(0) @binding(2) var<storage, read>       d_distance: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_pairwise: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.pairs) { return; }
  let value = values[p.values_base + i];
  if (nan_of(value)) { return; }
  let row = i / p.k;
  let d = d_distance[p.d_distance_base + row * p.columns + i % p.k];
  d_pairwise[p.d_pairwise_base + row * p.n + u32(ids[p.ids_base + i])] = d / max(value, 1e-8);
}
