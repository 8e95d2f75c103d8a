// Are indices in range (spec 10, Q16)?
// @include "check.wgsl"
struct Params {
  n: u32,
  rows: u32,          // an index stands for so many places, from it on
  depth: u32,         // ranges; index i is of range i % depth
  slot: u32,          // of this check
  indices_base: u32,
  ranges_base: u32,
  errors_base: u32,
}
@group(0) @binding(0) var<storage, read>       indices: array<i32>;
@group(0) @binding(1) var<storage, read>       ranges: array<u32>;         // first and end, as bits of i32
@group(0) @binding(2) var<storage, read_write> errors: array<u32>;         // then which index, its value, rows
@group(0) @binding(3) var<uniform>             p: Params;

fn places() -> u32 { return p.n; }
fn is_bad(i: u32) -> bool {
  let at = indices[p.indices_base + i];
  let range = p.ranges_base + i % p.depth * 2u;
  return at < bitcast<i32>(ranges[range]) || at > bitcast<i32>(ranges[range + 1u]) - i32(p.rows);
}
fn note_of(i: u32) -> vec3u { return vec3u(i, bitcast<u32>(indices[p.indices_base + i]), p.rows); }
