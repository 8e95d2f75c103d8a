// Do the lists of all tiles lie within the entries, and do those name splats? As check_indices.wgsl; the index that is noted
// is 0 for a range and 1 for an entry. One workgroup.
struct Params {
  n: u32,               // splats
  tiles: u32,
  limit: u32,           // entries
  slot: u32,
  lists_base: u32,
  errors_base: u32,
}
@group(0) @binding(0) var<storage, read>       lists: array<u32>;
@group(0) @binding(1) var<storage, read_write> errors: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;
var<workgroup> first_bad: atomic<u32>;

fn range_of(tile: u32) -> vec2<u32> {
  let at = p.lists_base + p.n + p.limit + tile * 2u;
  return vec2<u32>(lists[at], lists[at + 1u]);
}
// The first entry of a range within the list that names no splat; the range's end where there is none.
fn bad_entry(range: vec2<u32>) -> u32 {
  var e = range.x;
  while (e < range.y && lists[p.lists_base + p.n + e] < p.n) { e++; }
  return e;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) { atomicStore(&first_bad, p.tiles); }
  workgroupBarrier();
  for (var t = thread; t < p.tiles; t += 256u) {
    let range = range_of(t);
    if (range.x >= range.y) { continue; }
    if (range.y > p.limit || bad_entry(range) < range.y) {
      atomicMin(&first_bad, t);
      break;
    }
  }
  workgroupBarrier();
  if (thread != 0u) { return; }
  let tile = atomicLoad(&first_bad);
  let to = p.errors_base;
  if (tile >= p.tiles || errors[to] != 0u) { return; }
  let range = range_of(tile);
  errors[to] = p.slot + 1u;
  if (range.y > p.limit) {
    errors[to + 1u] = 0u;
    errors[to + 2u] = range.y;
  } else {
    errors[to + 1u] = 1u;
    errors[to + 2u] = lists[p.lists_base + p.n + bad_entry(range)];
  }
}
