// streamed_columns.wgsl along the last axis: a workgroup has one row, and the elements of a load are its own.
// @include "scalar.wgsl"
// @include "lanes1.wgsl"
// @include "reduce.wgsl"
override WG: u32 = 256u;
const LX: u32 = 1u;
const LY: u32 = WG;
const ALONG: u32 = VECTOR;

fn alike(v: F) -> F { return F(lanes_max(v)); }
fn fold_sum(v: F, thread: u32) -> F { return F(wg_sum(lanes_sum(v), thread)); }
fn fold_max(v: F, thread: u32) -> F { return F(wg_max(lanes_max(v), thread)); }
