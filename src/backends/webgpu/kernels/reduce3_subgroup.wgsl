// reduce3.wgsl for devices with subgroups, as reduce_subgroup.wgsl.
var<workgroup> reduce3_cells: array<vec4<f32>, WG>;

fn wg_sum3(part: vec3<f32>, lane: u32) -> vec3<f32> {
  let own = subgroupAdd(part);
  let size = subgroupAdd(1u);
  let place = subgroupExclusiveAdd(1u);
  workgroupBarrier();  // an earlier call's result is still being read
  reduce3_cells[lane] = select(vec4<f32>(0.0), vec4<f32>(own, 0.0), place == 0u);
  workgroupBarrier();
  var sum = vec3<f32>(0.0);
  for (var i = place; i < WG; i += size) { sum += reduce3_cells[i].xyz; }
  return subgroupAdd(sum);
}
