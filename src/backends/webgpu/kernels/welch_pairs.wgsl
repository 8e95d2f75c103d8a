// Peaks as pairs of bin and mean power.
struct Params {
  n: u32,
  segments: f32,
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
  if (i >= p.n) { return; }
  y[p.y_base + i * 2u] = f32(ids[p.ids_base + i]);
  y[p.y_base + i * 2u + 1u] = values[p.values_base + i] / p.segments;
}
