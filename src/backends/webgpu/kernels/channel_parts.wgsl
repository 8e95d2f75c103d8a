// A number per channel and part of it: the largest magnitude, or what the gradient of a learned scale sums. One workgroup
// per part.
// @include "scalar.wgsl"
// @include "reduce.wgsl"
// @include "quotient.wgsl"
alias T = f32;              // @type f32 | f16
alias S = f32;              // @type f32 | f16
override WG: u32 = 256u;
override SUM: bool = false; // false: max |x|; true: sum of dy times the slope of the scale

struct Params {
  channels: u32,
  inner: u32,         // elements behind the channel's axis
  count: u32,         // elements of a channel
  parts: u32,         // per channel
  span: u32,          // elements of a part
  top: f32,           // largest code
  x_base: u32,
  dy_base: u32,
  scale_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       dy: array<T>;
@group(0) @binding(2) var<storage, read>       scale: array<S>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = group.x + group.y * groups.x;
  if (id >= p.channels * p.parts) { return; }
  let channel = id / p.parts;
  let start = (id % p.parts) * p.span;
  let end = min(start + p.span, p.count);
  var s = 1.0;
  if (SUM) {
    s = f32(scale[p.scale_base + channel]);
    if (f_lt(s, 1.0e-12)) { s = 1.0e-12; }
  }
  var total = 0.0;
  for (var j = start + lane; j < end; j += WG) {
    let at = (j / p.inner * p.channels + channel) * p.inner + j % p.inner;
    let v = f32(x[p.x_base + at]);
    if (SUM) {
      let z = v / s;
      var slope = select(p.top, -p.top, z < 0.0);
      if (nan_of(z) || quotient_at_most(v, s, p.top)) { slope = round_quotient(v, s) - z; }
      total += f32(dy[p.dy_base + at]) * slope;
    } else {
      total = f_max(total, abs(v));
    }
  }
  if (SUM) { total = wg_sum(total, lane); } else { total = wg_max(total, lane); }
  if (lane == 0u) { y[p.y_base + id] = total; }
}
