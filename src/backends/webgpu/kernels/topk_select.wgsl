// topk.wgsl for longer rows: a workgroup finds the elements of SIZE consecutive places by where the row's order is cut
// before and behind them, and sorts those.
// @include "scalar.wgsl"
// @include "key.wgsl"
// @include "bitonic.wgsl"
// @include "radix.wgsl"
override WG: u32 = 256u;

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,   // distance between two elements of a row
  k: u32,
  blocks: u32,  // workgroups of a row
  src_base: u32,
  values_base: u32,
  ids_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read_write> values: array<E>;
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> found: atomic<u32>;
var<private> row_first: u32;

fn row_key(i: u32) -> u32 { return key_of(src[row_first + i * p.inner]); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let block = group.x + group.y * groups.x;
  let row = block / p.blocks;
  if (row >= p.rows) { return; }
  let outer = row / p.inner;
  let column = row % p.inner;
  row_first = p.src_base + outer * p.cols * p.inner + column;
  let begin = block % p.blocks * SIZE;
  let end = min(begin + SIZE, p.k);
  let last = cut_after(end, thread);
  var before = vec2<u32>(0xffffffffu, 0xffffffffu);
  if (begin > 0u) { before = cut_after(begin, thread); }
  for (var i = thread; i < SIZE; i += WG) {
    sort_keys[i] = 0u;
    sort_ids[i] = 0xffffffffu;
  }
  if (thread == 0u) { atomicStore(&found, 0u); }
  workgroupBarrier();
  for (var i = thread; i < p.cols; i += WG) {
    let rank = rank_of(row_key(i), i);
    if (at_least(rank, last) && (begin == 0u || !at_least(rank, before))) {
      let slot = atomicAdd(&found, 1u);
      sort_keys[slot] = rank.x;
      sort_ids[slot] = i;
    }
  }
  sort_pairs(thread);
  for (var i = thread; begin + i < end; i += WG) {
    let to = (outer * p.k + begin + i) * p.inner + column;
    values[p.values_base + to] = src[row_first + sort_ids[i] * p.inner];
    ids[p.ids_base + to] = bitcast<i32>(sort_ids[i]);
  }
}
