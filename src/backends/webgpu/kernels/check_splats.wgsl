// Do the lists of all tiles lie within the entries, and do those name splats? What is noted is 0 and a range's end, or 1 and
// an entry.
// @include "check.wgsl"
struct Params {
  n: u32,               // splats
  tiles: u32,
  limit: u32,           // entries
  slot: u32,
  lists_base: u32,
  errors_base: u32,
}
@group(0) @binding(0) var<storage, read>       lists: array<u32>;
@group(0) @binding(1) var<storage, read_write> errors: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

fn range_of(tile: u32) -> vec2<u32> {
  let at = p.lists_base + p.n + p.limit + tile * 2u;
  return vec2<u32>(lists[at], lists[at + 1u]);
}
// The first entry of a range within the list that names no splat; the range's end where there is none.
fn bad_entry(range: vec2<u32>) -> u32 {
  var e = range.x;
  while (e < range.y && lists[p.lists_base + p.n + e] < p.n) { e++; }
  return e;
}

fn places() -> u32 { return p.tiles; }
fn is_bad(tile: u32) -> bool {
  let range = range_of(tile);
  return range.x < range.y && (range.y > p.limit || bad_entry(range) < range.y);
}
fn note_of(tile: u32) -> vec3u {
  let range = range_of(tile);
  if (range.y > p.limit) { return vec3u(0u, range.y, 0u); }
  return vec3u(1u, lists[p.lists_base + p.n + bad_entry(range)], 0u);
}
