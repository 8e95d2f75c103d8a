// starts[r]: the first of the sorted entries whose key is not below r. One thread per r.
struct Params {
  n: u32,                  // of starts
  total: u32,              // entries
  entries_base: u32,
  starts_base: u32,
}
@group(0) @binding(0) var<storage, read>       entries: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> starts: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let r = id.x + id.y * groups.x * 256u;
  if (r >= p.n) { return; }
  var low = 0u;
  var high = p.total;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (entries[p.entries_base + middle].x < r) { low = middle + 1u; } else { high = middle; }
  }
  starts[p.starts_base + r] = low;
}
