// scan.wgsl for rows that lie in one piece and fit KEPT loads of four elements per thread: one read, one write. The
// sums of all loads are scanned at once.
// @include "rows.wgsl"
// @include "combine.wgsl"
// @include "scan_begin.wgsl"
alias S = f32;                     // of starts
alias VE = vec4<f32>;              // four elements, read and written
alias VT = vec4<f32>;
override REVERSE: bool = false;    // from the last element
override EXCLUSIVE: bool = false;  // element i is what comes before it
override KEPT: u32 = 4u;

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
@group(0) @binding(0) var<storage, read>       src: array<VE>;
@group(0) @binding(1) var<storage, read>       starts: array<S>;
@group(0) @binding(2) var<storage, read_write> dst: array<VT>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> cells: array<Acc, WG * KEPT>;

fn place_of(row: Row, c: u32) -> u32 { return row.first + select(c, row.count - 1u - c, REVERSE); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var parts: array<Acc, KEPT * 4u>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    var own = identity();
    if (c < row.count) {
      let v = src[p.src_base + place_of(row, c)];
      for (var j = 0u; j < 4u; j++) {
        own = combine(own, widen(v[select(j, 3u - j, REVERSE)]));
        parts[k * 4u + j] = own;
      }
    }
    cells[k * WG + thread] = own;
  }
  for (var d = 1u; d < LANES; d = d * 2u) {
    workgroupBarrier();
    var left: array<Acc, KEPT>;
    for (var k = 0u; k < KEPT; k++) {
      left[k] = identity();
      if (lane >= d) { left[k] = cells[k * WG + thread - d]; }
    }
    workgroupBarrier();
    for (var k = 0u; k < KEPT; k++) { cells[k * WG + thread] = combine(left[k], cells[k * WG + thread]); }
  }
  workgroupBarrier();
  var carry = start_of(row);
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    var before = carry;
    if (lane > 0u) { before = combine(carry, cells[k * WG + thread - 1u]); }
    carry = combine(carry, cells[k * WG + thread - lane + LANES - 1u]);
    if (c < row.count) {
      var v: VT;
      for (var j = 0u; j < 4u; j++) {
        var out = combine(before, parts[k * 4u + j]);
        if (EXCLUSIVE) {
          out = before;
          if (j > 0u) { out = combine(before, parts[k * 4u + max(j, 1u) - 1u]); }
        }
        v[select(j, 3u - j, REVERSE)] = finish(out);
      }
      dst[p.dst_base + place_of(row, c)] = v;
    }
  }
}
