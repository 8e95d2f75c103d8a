// Softmax of whole columns in one dispatch. A thread keeps its first KEPT loads in registers and reads the others twice, the
// second time backwards: what was read last may still be in a cache.
// @include "softmax_columns.wgsl"
alias V = f32;             // @type f32 | f16 | vec4<f32> | vec4<f16>
override KEPT: u32 = 12u;
override STEP: u32 = 8u;   // loads of a thread that are under way

struct Params {
  outer: u32,
  cols: u32,               // places
  inner: u32,              // columns, in loads
  src_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> dst: array<V>;
@group(0) @binding(2) var<uniform>             p: Params;

var<private> column: u32;  // its first element
var<private> line: u32;    // of the LY places at once, the thread's
// The i-th of the thread's places.
fn place(i: u32) -> u32 { return line + i * LY; }
fn load(i: u32) -> F { return F(src[p.src_base + column + min(place(i), p.cols - 1u) * p.inner]); }
fn store(i: u32, v: F) {
  if (place(i) < p.cols) { dst[p.dst_base + column + place(i) * p.inner] = V(v); }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let across = (p.inner + LX - 1u) / LX;
  let id = group.x + group.y * groups.x;
  let outer = id / across;
  let x = id % across * LX + thread % LX;
  let live = outer < p.outer && x < p.inner;
  column = min(outer, p.outer - 1u) * p.cols * p.inner + min(x, p.inner - 1u);
  line = thread / LX;
  let rest = (max(p.cols, KEPT * LY) - KEPT * LY + STEP * LY - 1u) / (STEP * LY);  // batches that are not kept
  var kept: array<F, KEPT>;
  var next: array<F, STEP>;
  for (var k = 0u; k < KEPT; k++) { kept[k] = load(k); }
  if (rest > 0u) {
    for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + i); }
  }
  var top = F(LEAST);
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
  merge_column(top, sum, thread);
  if (!live) { return; }
  let most = tops[thread % LX];
  let scale = 1.0 / sums[thread % LX];
  for (var b = rest; b > 0u; b--) {  // the last batch is still there
    var v = next;
    if (b > 1u) {
      for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + (b - 2u) * STEP + i); }
    }
    for (var i = 0u; i < STEP; i++) { store(KEPT + (b - 1u) * STEP + i, exp(v[i] - most) * scale); }
  }
  for (var k = 0u; k < KEPT; k++) { store(k, exp(kept[k] - most) * scale); }
}
