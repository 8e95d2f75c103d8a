// Rows of x at places that tuples of indices name.
// @include "index.wgsl"
alias T = u32;             // @type what lies together: f16 | u32 | vec2<u32> | vec4<u32>
override PER: u32 = 1u;    // units.wgsl

struct Params {
  n: u32,                  // units of y
  row: u32,                // units of a row
  depth: u32,              // indices of a tuple
  per_batch: u32,          // tuples that share their leading axes with x
  x_base: u32,
  indices_base: u32,
  sizes_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       indices: array<i32>;
@group(0) @binding(2) var<storage, read>       sizes: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

fn value(i: u32) -> T {
  let r = i / p.row;
  var at = r / p.per_batch;
  for (var k = 0u; k < p.depth; k += 1u) {
    let size = sizes[p.sizes_base + k];
    at = at * size + index_of(indices[p.indices_base + r * p.depth + k], size);
  }
  return x[p.x_base + at * p.row + i - r * p.row];
}
fn place(i: u32) -> u32 { return p.y_base + i; }
// @include "units.wgsl"
