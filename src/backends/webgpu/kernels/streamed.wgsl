// Rows or columns of a tensor [outer, cols, inner] along cols that one workgroup reads twice: LX neighbours of them, LY places
// at once. A thread keeps its first KEPT loads in registers and goes through the others backwards the second time: what was
// read last may still be in a cache. The Params have outer, cols, inner (cols or inner in loads) and the bases.
// @include "streamed_columns.wgsl"
override KEPT: u32 = 12u;
override STEP: u32 = 8u;       // loads of a thread that are under way
override WHOLE: bool = false;  // everything is kept

var<private> outer: u32;
var<private> first: u32;   // the thread's column: its first element
var<private> line: u32;    // of the LY places at once, the thread's
// The thread's place; false: it has no column.
fn begin(group: vec3u, groups: vec3u, thread: u32) -> bool {
  let across = (p.inner + LX - 1u) / LX;
  let id = group.x + group.y * groups.x;
  let x = id % across * LX + thread % LX;
  outer = min(id / across, p.outer - 1u);
  first = outer * p.cols * p.inner + min(x, p.inner - 1u);
  line = thread / LX;
  return id / across < p.outer && x < p.inner;
}
// The i-th of the thread's places.
fn place(i: u32) -> u32 { return line + i * LY; }
fn load(i: u32) -> F { return F(src[p.src_base + first + min(place(i), p.cols - 1u) * p.inner]); }
fn store(i: u32, v: F) {
  if (place(i) < p.cols) { dst[p.dst_base + first + place(i) * p.inner] = V(v); }
}
// Batches of STEP loads that are not kept.
fn batches() -> u32 {
  if (WHOLE) { return 0u; }
  return (max(p.cols, KEPT * LY) - KEPT * LY + STEP * LY - 1u) / (STEP * LY);
}
