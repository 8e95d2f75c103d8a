// Sums of dy * (x - mean) * r and of dy along the rows of a view of x that has one gamma per row: parts of the
// gradients of gamma and beta. count consecutive elements of x were normalised together.
// @include "rows.wgsl"
alias T = f32;                   // @type f32 | f16

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  count: u32,
  src_base: u32,
  dy_base: u32,
  moments_base: u32,
  dgamma_base: u32,
  dbeta_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<T>;
@group(0) @binding(1) var<storage, read>       dy: array<T>;
@group(0) @binding(2) var<storage, read>       moments: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dgamma: array<f32>;
@group(0) @binding(4) var<storage, read_write> dbeta: array<f32>;
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var gamma_sum = 0.0;
  var beta_sum = 0.0;
  for (var c = lane; c < row.count; c += LANES) {
    let at = row.first + c * p.inner;
    let m = moments[p.moments_base + at / p.count];
    let d = f32(dy[p.dy_base + at]);
    gamma_sum += d * ((f32(src[p.src_base + at]) - m.x - m.y) * m.z);
    beta_sum += d;
  }
  gamma_sum = row_sum(gamma_sum, thread);
  beta_sum = row_sum(beta_sum, thread);
  if (row.live && lane == 0u) {
    dgamma[p.dgamma_base + row.index] = gamma_sum;
    dbeta[p.dbeta_base + row.index] = beta_sum;
  }
}
