// result = act(sum of the slices + bias + residual): what conv_gemm.wgsl left in slices. One thread per element.
// @include "scalar.wgsl"
// @include "activation.wgsl"
alias T = f32;             // @type f32 | f16
override HAS_BIAS: bool = false;
override HAS_RESIDUAL: bool = false;

struct Params {
  n: u32,
  slices: u32,
  slice_stride: u32,
  plane: u32,
  channels: u32,
  parts_base: u32,
  bias_base: u32,
  residual_base: u32,
  result_base: u32,
}
@group(0) @binding(0) var<storage, read>       parts: array<f32>;
@group(0) @binding(1) var<storage, read>       bias: array<T>;
@group(0) @binding(2) var<storage, read>       residual: array<T>;
@group(0) @binding(3) var<storage, read_write> result: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  // Four loads are on their way at a time.
  var four = vec4<f32>();
  let first = p.parts_base + i;
  let whole = p.slices / 4u * 4u;
  for (var s = 0u; s < whole; s += 4u) {
    let at = first + s * p.slice_stride;
    four += vec4<f32>(parts[at], parts[at + p.slice_stride], parts[at + 2u * p.slice_stride], parts[at + 3u * p.slice_stride]);
  }
  var v = (four.x + four.y) + (four.z + four.w);
  for (var s = whole; s < p.slices; s++) { v += parts[first + s * p.slice_stride]; }
  if (HAS_BIAS) { v += f32(bias[p.bias_base + i / p.plane % p.channels]); }
  if (HAS_RESIDUAL) { v += f32(residual[p.residual_base + i]); }
  result[p.result_base + i] = T(activate(v));
}
