// y = exp(x - max) / sum along one axis, any inner stride. One workgroup per row; arithmetic is f32 whatever T is.
// @include "scalar.wgsl"
// @include "reduce.wgsl"
alias T = f32;            // @type f32 | f16
override WG: u32 = 64u;   // a power of two: reduce.wgsl halves it

struct Params {
  rows: u32,              // rows to compute
  cols: u32,              // elements in a row
  inner: u32,             // distance between two elements of a row
  x_base: u32,            // where x starts in its binding; *_base fields are filled in by the plan
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let row = group.x + group.y * groups.x;       // the grid wraps into y
  if (row >= p.rows) { return; }
  let first = (row / p.inner) * p.cols * p.inner + row % p.inner;
  var top = f32(x[p.x_base + first]);
  for (var c = lane; c < p.cols; c += WG) { top = f_max(top, f32(x[p.x_base + first + c * p.inner])); }
  top = wg_max(top, lane);
  var sum = 0.0;
  for (var c = lane; c < p.cols; c += WG) { sum += exp(f32(x[p.x_base + first + c * p.inner]) - top); }
  let scale = 1.0 / wg_sum(sum, lane);
  for (var c = lane; c < p.cols; c += WG) {
    let at = first + c * p.inner;
    y[p.y_base + at] = T(exp(f32(x[p.x_base + at]) - top) * scale);
  }
}
