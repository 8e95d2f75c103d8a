// The floor of the frames that share a maximum, one workgroup per maximum; NaN wins.
// @include "log_mel_scalar.wgsl"
// @include "reduce.wgsl"
override WG: u32 = 256u;

struct Params {
  groups: u32,
  size: u32,     // mel powers that share a maximum
  power_base: u32,
  lowest_base: u32,
}
@group(0) @binding(0) var<storage, read>       power: array<f32>;
@group(0) @binding(1) var<storage, read_write> lowest: array<f32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let g = group.x + group.y * groups.x;
  if (g >= p.groups) { return; }
  var top = -F32_MAX;
  for (var i = thread; i < p.size; i += WG) { top = f_max(top, power[p.power_base + g * p.size + i]); }
  top = wg_max(top, thread);
  if (thread == 0u) { lowest[p.lowest_base + g] = log_power(top) - 8.0; }
}
