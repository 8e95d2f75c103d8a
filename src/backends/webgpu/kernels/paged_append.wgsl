// The rows of tokens len[b] + s go to their pages: a thread per unit of a row. What has no page is left out.
// @include "paged_token.wgsl"
alias T = f32;             // @type of rows: f32 | f16 | vec4<f32> | vec4<f16>
alias P = f32;             // of the pool: as many at once

@group(0) @binding(0) var<storage, read>       rows: array<T>;
@group(0) @binding(1) var<storage, read>       pages: array<i32>;
@group(0) @binding(2) var<storage, read>       len: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<P>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let token = place_of_token(i / p.row);
  if (token == NOWHERE) { return; }
  y[p.y_base + token * p.row + i % p.row] = P(rows[p.rows_base + i]);
}
