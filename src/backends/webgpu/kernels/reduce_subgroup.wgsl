// reduce.wgsl for devices with subgroups: a sum per subgroup, then one over the subgroups' sums, which every subgroup does.
// The threads of a subgroup follow each other and its size is a power of two: subgroup_probe.wgsl shows whether that holds.
var<workgroup> reduce_cells: array<f32, WG>;

fn wg_sum(x: f32, lane: u32) -> f32 {
  let size = subgroupAdd(1u);
  let place = lane & (size - 1u);
  let part = subgroupAdd(x);
  workgroupBarrier();  // an earlier call's cells are still being read
  if (place == 0u) { reduce_cells[lane >> firstTrailingBit(size)] = part; }
  workgroupBarrier();
  let cells = WG >> firstTrailingBit(size);
  var sum = 0.0;
  for (var i = place; i < cells; i += size) { sum += reduce_cells[i]; }
  return subgroupAdd(sum);
}

// NaN where there is one, as f_max: subgroupMax may drop it.
fn subgroup_max(x: f32) -> f32 { return select(subgroupMax(x), subgroupAdd(x), subgroupAny(nan_of(x))); }

fn wg_max(x: f32, lane: u32) -> f32 {
  let size = subgroupAdd(1u);
  let place = lane & (size - 1u);
  let part = subgroup_max(x);
  workgroupBarrier();
  if (place == 0u) { reduce_cells[lane >> firstTrailingBit(size)] = part; }
  workgroupBarrier();
  let cells = WG >> firstTrailingBit(size);
  var top = part;
  for (var i = place; i < cells; i += size) { top = f_max(top, reduce_cells[i]); }
  return subgroup_max(top);
}
