// y = sum, mean, max, min or product along an axis; the result of a chunk where rows are cut.
// @include "rows.wgsl"
// @include "combine.wgsl"
// @include "fold1.wgsl"

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  identity: u32,  // bits of what changes nothing
  n: u32,         // elements in a row, for a mean
  src_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> dst: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> cells: array<Acc, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  let first = p.src_base + row.first;
  var acc = identity();
  var c = lane;
  // Four loads at a time hide the way to memory.
  for (; c + 3u * LANES < row.count; c += 4u * LANES) {
    let v0 = src[first + c * p.inner];
    let v1 = src[first + (c + LANES) * p.inner];
    let v2 = src[first + (c + 2u * LANES) * p.inner];
    let v3 = src[first + (c + 3u * LANES) * p.inner];
    acc = combine(acc, combine(combine(fold(v0), fold(v1)), combine(fold(v2), fold(v3))));
  }
  for (; c < row.count; c += LANES) { acc = combine(acc, fold(src[first + c * p.inner])); }
  if (LANES > 1u) {
    cells[thread] = acc;
    for (var half = LANES / 2u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      if (lane < half) { cells[thread] = combine(cells[thread], cells[thread + half * STEP]); }
    }
    acc = cells[thread];
  }
  if (row.live && lane == 0u) { dst[p.dst_base + row.index] = finish(acc); }
}
