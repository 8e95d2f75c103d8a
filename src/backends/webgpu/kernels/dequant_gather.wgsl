// Rows of a packed table, decoded: eight elements per thread. An index that does not exist takes the nearest row (spec
// 10, Q16).
// @include "decode_q4_0.wgsl"
struct Params {
  count: u32,         // indices
  k: u32,
  rows: u32,          // of the table
  row_bytes: u32,
  w_byte_base: u32,
  index_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       w: array<u32>;
@group(0) @binding(1) var<storage, read>       index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let run = id.x + id.y * groups.x * 64u;
  let runs = p.k / 8u;
  let item = run / runs;
  if (item >= p.count) { return; }
  let k = (run % runs) * 8u;
  let own = index[p.index_base + item];
  let row = u32(clamp(select(own, own + i32(p.rows), own < 0), 0, i32(p.rows) - 1));
  let v = decode8(p.w_byte_base + row * p.row_bytes + (k / BLOCK) * BYTES, k % BLOCK);
  let at = p.y_base + item * p.k + k;
  for (var i = 0u; i < 4u; i++) {
    y[at + i] = v.a[i];
    y[at + 4u + i] = v.b[i];
  }
}
