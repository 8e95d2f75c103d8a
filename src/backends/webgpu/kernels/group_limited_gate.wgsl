// llada2.group_limited_gate (spec 10, 4.20): one workgroup per token. Places are counted, not sorted: the place of a group
// or expert is how many others are better, NaN being the largest and ties going to the smaller index.
// @include "scalar.wgsl"
struct Params {
  tokens: u32,
  experts: u32,
  n_group: u32,       // at most 1024
  topk_group: u32,
  top_k: u32,         // at most 1024
  scaling: f32,
  sig_base: u32,
  route_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       sig: array<f32>;
@group(0) @binding(1) var<storage, read>       route: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> group_scores: array<f32, 1024>;
var<workgroup> kept: array<u32, 1024>;
var<workgroup> chosen: array<f32, 1024>;  // sig of the chosen experts, in their order

fn larger(u: f32, v: f32) -> bool {
  if (nan_of(u)) { return !nan_of(v); }
  return u > v && !nan_of(v);
}
fn before(u: f32, i: u32, v: f32, j: u32) -> bool { return larger(u, v) || (!larger(v, u) && i < j); }

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let token = group.x + group.y * groups.x;
  if (token >= p.tokens) { return; }
  let first = p.route_base + token * p.experts;
  let per_group = p.experts / p.n_group;
  for (var g = thread; g < p.n_group; g += 256u) {
    var one = route[first + g * per_group];
    var two = 0.0;
    for (var i = 1u; i < per_group; i++) {
      let v = route[first + g * per_group + i];
      if (larger(v, one)) {
        two = one;
        one = v;
      } else if (i == 1u || larger(v, two)) {
        two = v;
      }
    }
    group_scores[g] = one + two;
  }
  workgroupBarrier();
  for (var g = thread; g < p.n_group; g += 256u) {
    var place = 0u;
    for (var i = 0u; i < p.n_group; i++) {
      if (i != g && before(group_scores[i], i, group_scores[g], g)) { place++; }
    }
    kept[g] = select(0u, 1u, place < p.topk_group);
  }
  workgroupBarrier();
  for (var e = thread; e < p.experts; e += 256u) {
    let v = route[first + e];
    let open = kept[e / per_group] != 0u;
    var place = 0u;
    for (var i = 0u; i < p.experts; i++) {
      let other_open = kept[i / per_group] != 0u;
      // Experts of kept groups come first, by their scores; the others by their number.
      if (open && other_open && i != e && before(route[first + i], i, v, e)) { place++; }
      if (!open && (other_open || i < e)) { place++; }
    }
    if (place < p.top_k) {
      chosen[place] = sig[p.sig_base + token * p.experts + e];
      y[p.y_base + token * 2u * p.top_k + place] = f32(e);
    }
  }
  workgroupBarrier();
  var sum = 1.0e-20;
  for (var i = 0u; i < p.top_k; i++) { sum += chosen[i]; }
  for (var i = thread; i < p.top_k; i += 256u) {
    let weight = chosen[i] * p.scaling;
    y[p.y_base + token * 2u * p.top_k + p.top_k + i] = select(weight, weight / sum, p.top_k > 1u);
  }
}
