// row_sum of three numbers at once.
// @include "rows.wgsl"
// @include "reduce3.wgsl"
fn row_sum3(part: vec3<f32>, thread: u32) -> vec3<f32> {
  if (LANES == 1u) { return part; }
  if (LANES == WG) { return wg_sum3(part, thread); }
  workgroupBarrier();  // an earlier call's result is still being read
  reduce3_cells[thread] = vec4<f32>(part, 0.0);
  for (var half = LANES / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane_of(thread) < half) { reduce3_cells[thread] += reduce3_cells[thread + half * STEP]; }
  }
  workgroupBarrier();
  return reduce3_cells[thread - lane_of(thread) * STEP].xyz;
}
