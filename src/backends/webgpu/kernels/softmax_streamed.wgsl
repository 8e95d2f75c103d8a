// Softmax of rows or columns that no workgroup holds, in one dispatch.
// @include "scalar.wgsl"
// @include "streamed.wgsl"
alias V = f32;             // @type f32 | f16 | vec4<f32> | vec4<f16>

struct Params {
  outer: u32,
  cols: u32,
  inner: u32,
  src_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> dst: array<V>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let live = begin(group, groups, thread);
  let rest = batches();
  var kept: array<F, KEPT>;
  var next: array<F, STEP>;
  for (var k = 0u; k < KEPT; k++) { kept[k] = load(k); }
  if (rest > 0u) {
    for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + i); }
  }
  var top = F(-F32_MAX);
  var sum = F();
  for (var k = 0u; k < KEPT; k++) { top = max(top, kept[k]); }
  for (var k = 0u; k < KEPT; k++) {
    if (place(k) < p.cols) { sum += exp(kept[k] - top); }
  }
  for (var b = 0u; b < rest; b++) {
    var v = next;
    if (b + 1u < rest) {  // under way while these are summed
      for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + (b + 1u) * STEP + i); }
    }
    var most = top;
    for (var i = 0u; i < STEP; i++) { most = max(most, v[i]); }
    sum = sum * exp(top - most);
    for (var i = 0u; i < STEP; i++) {
      if (place(KEPT + b * STEP + i) < p.cols) { sum += exp(v[i] - most); }
    }
    top = most;
  }
  let most = fold_max(top, thread);
  let scale = 1.0 / fold_sum(sum * exp(top - most), thread);
  if (!live) { return; }
  for (var b = rest; b > 0u; b--) {  // the last batch is still there
    var v = next;
    if (b > 1u) {
      for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + (b - 2u) * STEP + i); }
    }
    for (var i = 0u; i < STEP; i++) { store(KEPT + (b - 1u) * STEP + i, exp(v[i] - most) * scale); }
  }
  for (var k = 0u; k < KEPT; k++) { store(k, exp(kept[k] - most) * scale); }
}
