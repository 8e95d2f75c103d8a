// y = (max(log10(power), floor) + 4) / 4; where the floor is NaN, y is.
// @include "log_mel_scalar.wgsl"
struct Params {
  n: u32,
  size: u32,     // elements that share a floor
  power_base: u32,
  lowest_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       power: array<f32>;
@group(0) @binding(1) var<storage, read>       lowest: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  y[p.y_base + i] = (f_max(log_power(power[p.power_base + i]), lowest[p.lowest_base + i / p.size]) + 4.0) * 0.25;
}
