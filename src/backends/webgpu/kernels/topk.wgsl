// The first k elements of rows in order, with their indices. A row of up to SIZE elements is sorted whole, by one
// workgroup.
// @include "scalar.wgsl"
// @include "key.wgsl"
// @include "bitonic.wgsl"
override WG: u32 = 256u;

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,   // distance between two elements of a row
  k: u32,
  src_base: u32,
  values_base: u32,
  ids_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read_write> values: array<E>;
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= p.rows) { return; }
  let outer = row / p.inner;
  let column = row % p.inner;
  let first = p.src_base + outer * p.cols * p.inner + column;
  for (var i = thread; i < SIZE; i += WG) {
    sort_keys[i] = 0u;
    sort_ids[i] = 0xffffffffu;  // behind every element
    if (i < p.cols) {
      sort_keys[i] = key_of(src[first + i * p.inner]);
      sort_ids[i] = i;
    }
  }
  sort_pairs(thread);
  for (var i = thread; i < p.k; i += WG) {
    let to = (outer * p.k + i) * p.inner + column;
    values[p.values_base + to] = src[first + sort_ids[i] * p.inner];
    ids[p.ids_base + to] = bitcast<i32>(sort_ids[i]);
  }
}
