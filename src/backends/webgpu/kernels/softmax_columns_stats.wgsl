// The first pass: per column and chunk the largest element and the sum of exp(x - largest). A chunk is every so many
// places, so that all workgroups go through the tensor side by side: what they read last is then its last places.
// @include "softmax_strips.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
alias ST = f32;          // @type f32 | vec4<f32>: F

struct Params {
  outer: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  stat_chunks: u32,
  src_base: u32,
  stats_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> stats: array<ST>;
@group(0) @binding(2) var<uniform>             p: Params;

fn load(s: Strip, place: u32) -> F { return F(src[p.src_base + s.column + place * p.inner]); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let s = strip_of(group.x + group.y * groups.x, thread % LX);
  let end = select(0u, p.cols, s.live);
  let step = p.chunks * LY;
  var top = F(-F32_MAX);
  var sum = F();
  var next: array<F, AT_ONCE>;
  var c = s.chunk * LY + thread / LX;
  if (c < end) {
    for (var i = 0u; i < AT_ONCE; i++) { next[i] = load(s, min(c + i * step, end - 1u)); }
  }
  for (; c < end; c += AT_ONCE * step) {
    var v = next;
    if (c + AT_ONCE * step < end) {  // under way while these are summed
      for (var i = 0u; i < AT_ONCE; i++) { next[i] = load(s, min(c + (AT_ONCE + i) * step, end - 1u)); }
    }
    var most = top;
    for (var i = 0u; i < AT_ONCE; i++) { most = max(most, v[i]); }
    sum = sum * exp(top - most);
    for (var i = 0u; i < AT_ONCE; i++) {
      if (c + i * step < end) { sum += exp(v[i] - most); }
    }
    top = most;
  }
  merge_column(top, sum, thread);
  if (s.live && thread < LX) {
    stats[p.stats_base + 2u * s.stat] = tops[thread];
    stats[p.stats_base + 2u * s.stat + 1u] = sums[thread];
  }
}
