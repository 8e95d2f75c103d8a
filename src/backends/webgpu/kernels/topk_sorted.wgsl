// The first k elements of rows, with their indices, by the sorted entries of topk_entries.wgsl. One thread per result.
alias E = f32;     // @type f32 | f16 | i32 | u32

struct Params {
  n: u32,          // results
  k: u32,          // of a row
  padded: u32,     // entries of a row
  first_row: u32,
  cols: u32,
  inner: u32,      // distance between two elements of a row
  src_base: u32,
  entries_base: u32,
  values_base: u32,
  ids_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read>       entries: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> values: array<E>;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let t = id.x + id.y * groups.x * 256u;
  if (t >= p.n) { return; }
  let sorted = t / p.k;
  let i = t % p.k;
  let row = p.first_row + sorted;
  let outer = row / p.inner;
  let column = row % p.inner;
  let place = entries[p.entries_base + sorted * p.padded + i].y;
  let to = (outer * p.k + i) * p.inner + column;
  values[p.values_base + to] = src[p.src_base + outer * p.cols * p.inner + column + place * p.inner];
  ids[p.ids_base + to] = bitcast<i32>(place);
}
