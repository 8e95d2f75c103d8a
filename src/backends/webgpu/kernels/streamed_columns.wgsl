// streamed.wgsl along an axis that is not the last: a load is of one column, or of four neighbours. Every thread of the
// workgroup calls the folds, and gets what the threads of its column have.
// @include "lanes1.wgsl"
override WG: u32 = 256u;
override LX: u32 = 16u;    // a power of two
const LY: u32 = WG / LX;
const ALONG: u32 = 1u;     // elements of a column in a load
var<workgroup> cells: array<F, WG>;

// A number for all the elements that are folded together, of a load of theirs.
fn alike(v: F) -> F { return v; }

fn fold_sum(v: F, thread: u32) -> F {
  workgroupBarrier();  // an earlier call's result is still being read
  cells[thread] = v;
  for (var half = LY / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (thread < half * LX) { cells[thread] += cells[thread + half * LX]; }
  }
  workgroupBarrier();
  return cells[thread % LX];
}
// Drops NaN where max does.
fn fold_max(v: F, thread: u32) -> F {
  workgroupBarrier();
  cells[thread] = v;
  for (var half = LY / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (thread < half * LX) { cells[thread] = max(cells[thread], cells[thread + half * LX]); }
  }
  workgroupBarrier();
  return cells[thread % LX];
}
