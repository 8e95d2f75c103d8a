// Sums and maxima over a workgroup of WG threads (a power of two) in workgroup memory. Every thread of the workgroup
// calls them; every thread gets the result.
var<workgroup> reduce_cells: array<f32, WG>;

fn wg_sum(x: f32, lane: u32) -> f32 {
  workgroupBarrier();  // an earlier call's result is still being read
  reduce_cells[lane] = x;
  for (var half = WG / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane < half) { reduce_cells[lane] += reduce_cells[lane + half]; }
  }
  workgroupBarrier();
  return reduce_cells[0];
}

fn wg_max(x: f32, lane: u32) -> f32 {
  workgroupBarrier();
  reduce_cells[lane] = x;
  for (var half = WG / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane < half) { reduce_cells[lane] = f_max(reduce_cells[lane], reduce_cells[lane + half]); }
  }
  workgroupBarrier();
  return reduce_cells[0];
}
