// (key, place) of the elements of rows, for a sort that puts the smallest pair first: of larger elements the key is
// smaller. One thread per entry; those behind a row's elements fill up what the sort needs.
// @include "key.wgsl"

struct Params {
  n: u32,          // entries
  padded: u32,     // entries of a row
  first_row: u32,
  cols: u32,
  inner: u32,      // distance between two elements of a row
  src_base: u32,
  entries_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let t = id.x + id.y * groups.x * 256u;
  if (t >= p.n) { return; }
  let row = p.first_row + t / p.padded;
  let i = t % p.padded;
  var entry = vec2<u32>(0xffffffffu, 0xffffffffu);  // behind every element
  if (i < p.cols) {
    let place = row / p.inner * p.cols * p.inner + row % p.inner + i * p.inner;
    entry = vec2<u32>(~key_of(src[p.src_base + place]), i);
  }
  entries[p.entries_base + t] = entry;
}
