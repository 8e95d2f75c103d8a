// The parts of a channel put together: its scale for fake_quantize, alone or in the running mean of a state, or the sum.
// One thread per channel.
// @include "scalar.wgsl"
// @include "quotient.wgsl"
alias S = f32;              // @type f32 | f16: of the state
alias N = f32;              // @type f32 | f16: of the next one
override MODE: u32 = 0u;    // 0 the batch's scale, 1 the running mean, 2 the sum of the parts

struct Params {
  channels: u32,
  parts: u32,
  top: f32,           // largest code
  decay: f32,
  state_base: u32,
  x_base: u32,
  y_base: u32,
  next_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<f32>;
@group(0) @binding(1) var<storage, read>       state: array<S>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> next: array<N>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let c = id.x + id.y * groups.x * 64u;
  if (c >= p.channels) { return; }
  var total = 0.0;
  for (var i = 0u; i < p.parts; i++) {
    let part = x[p.x_base + c * p.parts + i];
    if (MODE == 2u) { total += part; } else { total = f_max(total, part); }
  }
  if (MODE != 2u) {
    total = f_div(total, p.top);
    if (f_lt(total, 1.0e-12)) { total = 1.0e-12; }
  }
  if (MODE == 1u) {
    let old = f32(state[p.state_base + c]);
    if (nan_of(old) || old > 0.0) { total = p.decay * old + (1.0 - p.decay) * total; }
  }
  y[p.y_base + c] = total;
  next[p.next_base + c] = N(total);
}
