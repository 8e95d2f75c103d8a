// The first pass: per column and chunk the largest element and the sum of exp(x - largest).
// @include "softmax_columns.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
alias ST = f32;          // @type f32 | vec4<f32>: F

struct Params {
  outer: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  stat_chunks: u32,
  src_base: u32,
  stats_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> stats: array<ST>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let s = strip_of(group.x + group.y * groups.x, thread % LX);
  var top = F(LEAST);
  var sum = F();
  for (var c = thread / LX; c < s.end; c += 8u * LY) {
    var v: array<F, 8>;
    var most = top;
    for (var i = 0u; i < 8u; i++) {
      let place = c + i * LY;
      v[i] = F(src[p.src_base + s.first + min(place, s.end - 1u) * p.inner]);
      most = max(most, v[i]);
    }
    sum = sum * exp(top - most);
    for (var i = 0u; i < 8u; i++) {
      if (c + i * LY < s.end) { sum += exp(v[i] - most); }
    }
    top = most;
  }
  merge_column(top, sum, thread);
  if (s.live && thread < LX) {
    stats[p.stats_base + 2u * s.stat] = tops[thread];
    stats[p.stats_base + 2u * s.stat + 1u] = sums[thread];
  }
}
