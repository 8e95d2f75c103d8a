// sum = x + residual [+ bias] over rows of cols elements: what a norm of rows that are too long for registers reads.
alias T = f32;                   // @type f32 | f16
override HAS_BIAS: bool = false;

struct Params {
  n: u32,
  cols: u32,
  src_base: u32,
  residual_base: u32,
  bias_base: u32,
  total_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<T>;
@group(0) @binding(1) var<storage, read>       residual: array<T>;
@group(0) @binding(2) var<storage, read>       bias: array<T>;
@group(0) @binding(3) var<storage, read_write> total: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  var v = f32(src[p.src_base + i]) + f32(residual[p.residual_base + i]);
  if (HAS_BIAS) { v += f32(bias[p.bias_base + i % p.cols]); }
  total[p.total_base + i] = T(v);
}
