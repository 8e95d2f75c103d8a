// All slabs [N, K] decoded and transposed to [E, K, N]: eight elements of K per thread, neighbours along N side by side.
// @include "decode_q4_0.wgsl"
struct Params {
  runs: u32,          // E * K / 8 * N
  n: u32,
  k: u32,
  row_bytes: u32,
  w_byte_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       w: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let run = id.x + id.y * groups.x * 64u;
  if (run >= p.runs) { return; }
  let n = run % p.n;
  let per_expert = p.k / 8u;
  let k = (run / p.n) % per_expert * 8u;
  let expert = run / p.n / per_expert;
  let v = decode8(p.w_byte_base + (expert * p.n + n) * p.row_bytes + (k / BLOCK) * BYTES, k % BLOCK);
  let at = p.y_base + (expert * p.k + k) * p.n + n;
  for (var i = 0u; i < 4u; i++) {
    y[at + i * p.n] = v.a[i];
    y[at + (4u + i) * p.n] = v.b[i];
  }
}
