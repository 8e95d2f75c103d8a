// reduce3.wgsl for devices with subgroups, as reduce_subgroup.wgsl.
var<workgroup> reduce3_cells: array<vec4<f32>, WG>;

fn wg_sum3(part: vec3<f32>, lane: u32) -> vec3<f32> {
  let size = subgroupAdd(1u);
  let place = lane & (size - 1u);
  let own = subgroupAdd(part);
  workgroupBarrier();  // an earlier call's cells are still being read
  if (place == 0u) { reduce3_cells[lane >> firstTrailingBit(size)] = vec4<f32>(own, 0.0); }
  workgroupBarrier();
  let cells = WG >> firstTrailingBit(size);
  var sum = vec3<f32>(0.0);
  for (var i = place; i < cells; i += size) { sum += reduce3_cells[i].xyz; }
  return subgroupAdd(sum);
}
