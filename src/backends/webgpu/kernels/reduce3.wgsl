// wg_sum of reduce.wgsl for three numbers at once.
var<workgroup> reduce3_cells: array<vec4<f32>, WG>;

fn wg_sum3(part: vec3<f32>, lane: u32) -> vec3<f32> {
  workgroupBarrier();  // an earlier call's result is still being read
  reduce3_cells[lane] = vec4<f32>(part, 0.0);
  for (var half = WG / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane < half) { reduce3_cells[lane] += reduce3_cells[lane + half]; }
  }
  workgroupBarrier();
  return reduce3_cells[0].xyz;
}
