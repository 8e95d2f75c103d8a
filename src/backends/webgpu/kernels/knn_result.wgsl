// The columns and distances of a row's neighbours; of those that are not there, n and the largest number.
// @include "scalar.wgsl"
struct Params {
  pairs: u32,
  n: u32,
  k: u32,
  values_base: u32,
  ids_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       values: array<f32>;
@group(0) @binding(1) var<storage, read>       ids: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.pairs) { return; }
  let value = values[p.values_base + i];
  let at = p.y_base + i / p.k * p.k * 2u + i % p.k;
  y[at] = select(f32(ids[p.ids_base + i]), f32(p.n), nan_of(value));
  y[at + p.k] = select(value, F32_MAX, nan_of(value));
}
