// (key, i) of every update i: the row that its tuple of indices names, or NOWHERE. One thread per update; threads
// beyond fill up what the sort needs.
// @include "index.wgsl"

struct Params {
  n: u32,                  // updates
  total: u32,              // entries
  depth: u32,              // indices of a tuple
  indices_base: u32,
  sizes_base: u32,
  entries_base: u32,
}
@group(0) @binding(0) var<storage, read>       indices: array<i32>;
@group(0) @binding(1) var<storage, read>       sizes: array<u32>;
@group(0) @binding(2) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.total) { return; }
  var key = NOWHERE;
  if (i < p.n) {
    key = 0u;
    for (var k = 0u; k < p.depth && key != NOWHERE; k += 1u) {
      let size = sizes[p.sizes_base + k];
      let at = index_or_nowhere(indices[p.indices_base + i * p.depth + k], size);
      key = select(key * size + at, NOWHERE, at == NOWHERE);
    }
  }
  entries[p.entries_base + i] = vec2<u32>(key, i);
}
