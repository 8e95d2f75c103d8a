// Softmax along an axis that is not the last: a workgroup has LX neighbouring columns (of loads), LY places at once.
// @include "scalar.wgsl"
// @include "lanes1.wgsl"
override WG: u32 = 256u;
override LX: u32 = 32u;   // a power of two
const LY: u32 = WG / LX;
var<workgroup> tops: array<F, WG>;
var<workgroup> sums: array<F, WG>;

// Of what the LY threads of a column found: the largest element and the sum in tops[lx] and sums[lx].
fn merge_column(top: F, sum: F, thread: u32) {
  tops[thread] = top;
  sums[thread] = sum;
  for (var half = LY / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (thread < half * LX) {
      let other = tops[thread + half * LX];
      let most = max(tops[thread], other);
      sums[thread] = sums[thread] * exp(tops[thread] - most) + sums[thread + half * LX] * exp(other - most);
      tops[thread] = most;
    }
  }
  workgroupBarrier();
}
