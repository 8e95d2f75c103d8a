// Norms of rows or columns that no workgroup holds, in one dispatch: y = (x - mean) / sqrt(variance + eps) * gamma + beta. A
// thread's mean and squares grow by a batch of loads at a time, each around the batch's own mean. Elements are seen from one of
// the first, `pivot`: means are small then, and so is what rounding takes of them.
// @include "streamed.wgsl"
// @include "scalar.wgsl"
// @include "norm_root.wgsl"
// @include "norm_lanes1.wgsl"
// @include "gamma_index.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>
alias G = f32;                   // of gamma: as V along rows, or one element
alias GF = f32;                  // @type f32 | vec4<f32>: G, as f32
override HAS_BETA: bool = true;
override CENTRED: bool = true;   // less the mean; an rms norm is not
override GROUPED: bool = false;  // rows are groups of channels: per_gamma consecutive elements share a gamma

struct Params {
  outer: u32,
  cols: u32,
  inner: u32,
  n: u32,                        // elements in a row
  eps: f32,
  groups: u32,                   // rows that follow each other with gammas of their own
  group_channels: u32,           // gammas of a row
  per_gamma: u32,                // elements that share one
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read_write> dst: array<V>;
@group(0) @binding(4) var<uniform>             p: Params;

var<private> count: f32;         // of elements so far
var<private> mean: F;
var<private> squares: F;         // of deviations from the mean
var<private> smaller: F;         // of those * SMALLER

// With the loads i, i + 1, …
fn take(v: ptr<function, array<F, STEP>>, i: u32) {
  var many = 0.0;
  var middle = F();
  for (var j = 0u; j < STEP; j++) {
    if (place(i + j) < p.cols) {
      many += 1.0;
      middle += (*v)[j];
    }
  }
  if (many == 0.0) { return; }
  middle = select(F(), middle / many, CENTRED);
  for (var j = 0u; j < STEP; j++) {
    if (place(i + j) < p.cols) {
      let d = (*v)[j] - middle;
      let s = d * SMALLER;
      squares += d * d;
      smaller += s * s;
    }
  }
  let all = count + many;
  if (CENTRED && count == 0.0) {
    mean = middle;
  } else if (CENTRED) {
    let apart = middle - mean;
    let s = apart * SMALLER;
    let weight = count * many / all;
    squares += apart * apart * weight;
    smaller += s * s * weight;
    mean += apart * (many / all);
  }
  count = all;
}
fn gamma_at(i: u32) -> u32 {
  return select(min(place(i), p.cols - 1u), channel_of(outer, min(place(i), p.cols - 1u) * ALONG), GROUPED);
}
fn normed(v: F, i: u32, middle: F, rest: F, r: F) -> F {
  let at = gamma_at(i);
  var out = (v - middle - rest) * r * F(GF(gamma[p.gamma_base + at]));
  if (HAS_BETA) { out += F(GF(beta[p.beta_base + at])); }
  return out;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let live = begin(group, groups, thread);
  let rest = batches();
  var pivot = F();
  if (CENTRED) { pivot = alike(F(src[p.src_base + first])); }
  var kept: array<F, KEPT>;
  var next: array<F, STEP>;
  for (var k = 0u; k < KEPT; k++) { kept[k] = load(k); }
  if (rest > 0u) {
    for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + i); }
  }
  var scales: array<GF, KEPT>;
  var shifts: array<GF, KEPT>;
  if (WHOLE) {  // before the sums are known; else the registers are dearer
    for (var k = 0u; k < KEPT; k++) {
      let at = gamma_at(k);
      scales[k] = GF(gamma[p.gamma_base + at]);
      if (HAS_BETA) { shifts[k] = GF(beta[p.beta_base + at]); }
    }
  }
  for (var k = 0u; k < KEPT; k += STEP) {
    var v: array<F, STEP>;
    for (var i = 0u; i < STEP; i++) { v[i] = kept[k + i] - pivot; }
    take(&v, k);
  }
  for (var b = 0u; b < rest; b++) {
    var v = next;
    if (b + 1u < rest) {  // under way while these are summed
      for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + (b + 1u) * STEP + i); }
    }
    for (var i = 0u; i < STEP; i++) { v[i] -= pivot; }
    take(&v, KEPT + b * STEP);
  }
  let n = f32(p.n);
  var whole = F();
  var remains = F();
  if (CENTRED) {
    whole = fold_sum(mean * count, thread) / n;
    let apart = select(F(), mean - whole, count > 0.0);  // squares may be infinite, and times 0 NaN
    let s = apart * SMALLER;
    remains = fold_sum(apart * count, thread) / n;
    squares += apart * apart * count;
    smaller += s * s * count;
  }
  squares = fold_sum(squares, thread);
  smaller = fold_sum(smaller, thread);
  if (!live) { return; }
  let r = inverse_roots(squares, smaller, remains, n, p.eps);
  for (var b = rest; b > 0u; b--) {  // the last batch is still there
    var v = next;
    if (b > 1u) {
      for (var i = 0u; i < STEP; i++) { next[i] = load(KEPT + (b - 2u) * STEP + i); }
    }
    for (var i = 0u; i < STEP; i++) {
      let at = KEPT + (b - 1u) * STEP + i;
      store(at, normed(v[i] - pivot, at, whole, remains, r));
    }
  }
  for (var k = 0u; k < KEPT; k++) {
    if (WHOLE) {
      store(k, (kept[k] - pivot - whole - remains) * r * F(scales[k]) + F(shifts[k]));
    } else {
      store(k, normed(kept[k] - pivot, k, whole, remains, r));
    }
  }
}
