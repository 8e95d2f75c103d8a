// Distances with NaN, which no selection takes, where a row meets itself.
struct Params {
  elements: u32,
  n: u32,
  nan_bits: u32,
  pairwise_base: u32,
  candidates_base: u32,
}
@group(0) @binding(0) var<storage, read>       pairwise: array<f32>;
@group(0) @binding(1) var<storage, read_write> candidates: array<f32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.elements) { return; }
  candidates[p.candidates_base + i] = select(pairwise[p.pairwise_base + i], bitcast<f32>(p.nan_bits), i % p.n == i / p.n);
}
