// The second pass: y = exp(x - max) / sum. It goes through the tensor backwards: what the first pass read last may still be
// in a cache.
// @include "softmax_strips.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
alias ST = f32;          // @type f32 | vec4<f32>: F

struct Params {
  outer: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,            // places of a workgroup, one after the other
  stat_chunks: u32,      // chunks of the first pass
  src_base: u32,
  stats_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       stats: array<ST>;
@group(0) @binding(2) var<storage, read_write> dst: array<V>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  // A workgroup beyond the last strip has an id beyond them all.
  let s = strip_of(strips() - 1u - (group.x + group.y * groups.x), thread % LX);
  var top = F(-F32_MAX);
  var sum = F();
  if (s.live) {
    for (var j = thread / LX; j < p.stat_chunks; j += LY) {
      let at = p.stats_base + 2u * (s.stat0 + j * p.inner);
      let most = max(top, stats[at]);
      sum = sum * exp(top - most) + stats[at + 1u] * exp(stats[at] - most);
      top = most;
    }
  }
  merge_column(top, sum, thread);
  let most = tops[thread % LX];
  let scale = 1.0 / sums[thread % LX];
  let first = s.chunk * p.chunk;
  let end = select(0u, min(p.cols, first + p.chunk), s.live);
  for (var c = first + thread / LX; c < end; c += AT_ONCE * LY) {
    var v: array<F, AT_ONCE>;
    for (var i = 0u; i < AT_ONCE; i++) {
      v[i] = F(src[p.src_base + s.column + min(c + i * LY, end - 1u) * p.inner]);
    }
    for (var i = 0u; i < AT_ONCE; i++) {
      let place = c + i * LY;
      if (place < end) { dst[p.dst_base + s.column + place * p.inner] = V(exp(v[i] - most) * scale); }
    }
  }
}
