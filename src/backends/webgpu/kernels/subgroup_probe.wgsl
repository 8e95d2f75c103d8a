// The reductions by subgroups on numbers whose results are known, and the subgroups' size: subgroups.cpp compares. Every
// thread writes what it got: size, sum, maximum, three sums, and two that mean nothing.
// @include "scalar.wgsl"
// @include "reduce_subgroup.wgsl"
// @include "reduce3_subgroup.wgsl"
override WG: u32 = 256u;

@group(0) @binding(0) var<storage, read>       x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_size) size: u32) {
  let at = group.x * WG + lane;
  let v = x[at];
  let sum = wg_sum(v, lane);
  let top = wg_max(v, lane);
  let sums = wg_sum3(vec3<f32>(v, v + 1.0, 2.0 * v), lane);
  y[2u * at] = vec4<f32>(f32(size), sum, top, sums.x);
  y[2u * at + 1u] = vec4<f32>(sums.yz, 0.0, 0.0);
}
