// Running sum or product along an axis, of each chunk by itself; where rows are cut, it begins with the chunk's start.
// A thread has four elements in a row of the tensor, a row LANES threads; longer rows go tile by tile with a carry.
// @include "rows.wgsl"
// @include "combine.wgsl"
// @include "scan_begin.wgsl"
alias S = f32;                     // of starts
override REVERSE: bool = false;    // from the last element
override EXCLUSIVE: bool = false;  // element i is what comes before it

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  identity: u32,
  n: u32,
  src_base: u32,
  starts_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read>       starts: array<S>;
@group(0) @binding(2) var<storage, read_write> dst: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> cells: array<Acc, WG>;

// Element c of the scan, among the row's own.
fn place_of(row: Row, c: u32) -> u32 { return row.first + select(c, row.count - 1u - c, REVERSE) * p.inner; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var carry = start_of(row);
  for (var tile = 0u; tile < p.chunk; tile += 4u * LANES) {
    let c = tile + lane * 4u;
    var parts: array<Acc, 4>;
    var own = identity();
    for (var k = 0u; k < 4u; k++) {
      if (c + k < row.count) { own = combine(own, widen(src[p.src_base + place_of(row, c + k)])); }
      parts[k] = own;
    }
    var before = carry;
    if (LANES > 1u) {
      workgroupBarrier();
      cells[thread] = own;
      workgroupBarrier();
      for (var d = 1u; d < LANES; d = d * 2u) {
        var sum = cells[thread];
        if (lane >= d) { sum = combine(cells[thread - d * STEP], sum); }
        workgroupBarrier();
        cells[thread] = sum;
        workgroupBarrier();
      }
      if (lane > 0u) { before = combine(carry, cells[thread - STEP]); }
      carry = combine(carry, cells[thread + (LANES - 1u - lane) * STEP]);
    } else {
      carry = combine(carry, own);
    }
    for (var k = 0u; k < 4u; k++) {
      if (c + k < row.count) {
        var out = combine(before, parts[k]);
        if (EXCLUSIVE) {
          out = before;
          if (k > 0u) { out = combine(before, parts[max(k, 1u) - 1u]); }
        }
        dst[p.dst_base + place_of(row, c + k)] = finish(out);
      }
    }
  }
}
