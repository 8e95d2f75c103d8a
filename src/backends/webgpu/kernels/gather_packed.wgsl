// gather of a table whose elements lie packed in words, for tables that are large beside what is read of them: one
// thread per element of y.
// @include "index.wgsl"
// @include "packed.wgsl"
alias T = f32;             // @type f32 | i32 | u32
override KIND: u32 = 0u;   // packed.wgsl
override PER: u32 = 1u;    // units.wgsl

struct Params {
  n: u32,
  row: u32,                // elements of a row
  count: u32,              // indices
  cols: u32,               // rows of the table, per o
  table_byte_base: u32,
  indices_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       table: array<u32>;
@group(0) @binding(1) var<storage, read>       indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

fn value(i: u32) -> T {
  let r = i / p.row;
  let o = r / p.count;
  let at = index_of(indices[p.indices_base + r - o * p.count], p.cols);
  const size = select(1u, 2u, KIND >= 3u);
  let e = p.table_byte_base + ((o * p.cols + at) * p.row + i - r * p.row) * size;
  return element_of(table[e / 4u] >> (e % 4u * 8u));
}
fn place(i: u32) -> u32 { return p.y_base + i; }
// @include "units.wgsl"
