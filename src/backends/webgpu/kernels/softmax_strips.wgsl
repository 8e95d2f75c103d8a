// What the two passes of a softmax along an axis that is not the last share: a workgroup has a chunk of the places of its
// columns. The Params have outer, cols (places), inner (columns, in loads), chunks and stat_chunks.
// @include "softmax_columns.wgsl"
const AT_ONCE: u32 = 8u;  // loads of a thread that are under way

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
