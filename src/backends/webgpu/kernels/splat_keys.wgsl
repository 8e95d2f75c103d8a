// Starts the sorting: pairs (depth, splat), of splats that no tile lists behind all others; no entry belongs to a tile,
// and no tile has one.
struct Params {
  n: u32,
  sorted: u32,        // pairs in `order`
  entries_count: u32,
  tiles: u32,
  ranges: u32,        // where they start in lists
  outlines_base: u32,
  order_base: u32,
  entries_base: u32,
  lists_base: u32,
}
@group(0) @binding(0) var<storage, read>       outlines: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> order: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> lists: array<u32>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i < p.sorted) {
    var key = 0xffffffffu;
    if (i < p.n && outlines[p.outlines_base + i * 3u + 2u].y == 1.0) {
      key = bitcast<u32>(outlines[p.outlines_base + i * 3u + 1u].w);  // not negative: in the order of its bits
    }
    order[p.order_base + i] = vec2<u32>(key, i);
  }
  if (i < p.entries_count) { entries[p.entries_base + i] = vec2<u32>(0xffffffffu, i); }
  if (i < p.tiles) {
    lists[p.lists_base + p.ranges + i * 2u] = 0xffffffffu;
    lists[p.lists_base + p.ranges + i * 2u + 1u] = 0u;
  }
}
