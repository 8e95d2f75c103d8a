// y[o, k, t] = table[o, indices[k], t]: rows of units.
// @include "index.wgsl"
alias T = u32;             // @type what lies together: f16 | u32 | vec2<u32> | vec4<u32>
override PER: u32 = 1u;    // units.wgsl

struct Params {
  n: u32,                  // units of y
  row: u32,                // units of a row
  count: u32,              // indices
  cols: u32,               // rows of the table, per o
  table_base: u32,
  indices_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       table: array<T>;
@group(0) @binding(1) var<storage, read>       indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

fn value(i: u32) -> T {
  let r = i / p.row;
  let o = r / p.count;
  let at = index_of(indices[p.indices_base + r - o * p.count], p.cols);
  return table[p.table_base + (o * p.cols + at) * p.row + i - r * p.row];
}
fn place(i: u32) -> u32 { return p.y_base + i; }
// @include "units.wgsl"
