// The list of splats and the range of every tile in it, of sorted entries (tile, entry before sorting).
struct Params {
  limit: u32,
  ids: u32,       // where they start in lists
  ranges: u32,
  entries_base: u32,
  owners_base: u32,
  lists_base: u32,
  places_base: u32,
}
@group(0) @binding(0) var<storage, read>       entries: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read>       owners: array<u32>;
@group(0) @binding(2) var<storage, read_write> lists: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;  // of entries before sorting
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.limit) { return; }
  let entry = entries[p.entries_base + i];
  if (entry.x == 0xffffffffu) {
    lists[p.lists_base + p.ids + i] = 0u;
    return;
  }
  lists[p.lists_base + p.ids + i] = owners[p.owners_base + entry.y];
  places[p.places_base + entry.y] = i;
  let range = p.lists_base + p.ranges + entry.x * 2u;
  if (i == 0u || entries[p.entries_base + i - 1u].x != entry.x) { lists[range] = i; }
  if (i + 1u == p.limit || entries[p.entries_base + i + 1u].x != entry.x) { lists[range + 1u] = i + 1u; }
}
