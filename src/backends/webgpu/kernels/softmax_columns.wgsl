// What the two passes of a softmax along an axis that is not the last share: a workgroup has LX neighbouring columns (of
// loads) and a chunk of the places along the axis, LY at once. The Params have outer, cols (places), inner (columns, in
// loads), chunks and stat_chunks.
// @include "lanes1.wgsl"
override LX: u32 = 32u;   // a power of two
const LY: u32 = 256u / LX;
const AT_ONCE: u32 = 8u;  // loads of a thread that are under way
const LEAST: f32 = -3.4028235e38;
var<workgroup> tops: array<F, 256>;
var<workgroup> sums: array<F, 256>;

struct Strip {
  live: bool,
  column: u32,  // its first element
  chunk: u32,
  stat: u32,    // of the column and the chunk, among [outer, chunks, inner]
  stat0: u32,   // of the column and the first chunk
}
fn strips() -> u32 { return p.outer * p.chunks * ((p.inner + LX - 1u) / LX); }
fn strip_of(id: u32, lx: u32) -> Strip {
  let across = (p.inner + LX - 1u) / LX;
  let column = id % across * LX + lx;
  let outer = id / across / p.chunks;
  var s: Strip;
  s.live = outer < p.outer && column < p.inner;
  s.column = outer * p.cols * p.inner + min(column, p.inner - 1u);
  s.chunk = id / across % p.chunks;
  s.stat = (outer * p.chunks + s.chunk) * p.inner + column;
  s.stat0 = outer * p.stat_chunks * p.inner + column;
  return s;
}
// Of what the LY threads of a column found: the largest element and the sum in tops[lx] and sums[lx].
fn merge_column(top: F, sum: F, thread: u32) {
  tops[thread] = top;
  sums[thread] = sum;
  for (var half = LY / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (thread < half * LX) {
      let other = tops[thread + half * LX];
      let most = max(tops[thread], other);
      sums[thread] = sums[thread] * exp(tops[thread] - most) + sums[thread + half * LX] * exp(other - most);
      tops[thread] = most;
    }
  }
  workgroupBarrier();
}
