// reduce.wgsl for devices with subgroups: a sum per subgroup, then one over the subgroups. Takes subgroups of any size
// and any assignment of threads to them: a thread's place in its subgroup is counted, and a subgroup's cell is that of
// its first thread; the other cells hold what changes nothing.
var<workgroup> reduce_cells: array<f32, WG>;

fn wg_sum(x: f32, lane: u32) -> f32 {
  let part = subgroupAdd(x);
  let size = subgroupAdd(1u);
  let place = subgroupExclusiveAdd(1u);
  workgroupBarrier();  // an earlier call's result is still being read
  reduce_cells[lane] = select(0.0, part, place == 0u);
  workgroupBarrier();
  var sum = 0.0;
  for (var i = place; i < WG; i += size) { sum += reduce_cells[i]; }
  return subgroupAdd(sum);
}

// NaN where there is one, as f_max: subgroupMax may drop it.
fn subgroup_max(x: f32) -> f32 { return select(subgroupMax(x), subgroupAdd(x), subgroupAny(nan_of(x))); }

fn wg_max(x: f32, lane: u32) -> f32 {
  let part = subgroup_max(x);
  let size = subgroupAdd(1u);
  let place = subgroupExclusiveAdd(1u);
  workgroupBarrier();
  reduce_cells[lane] = part;  // a maximum may be counted several times
  workgroupBarrier();
  var top = part;
  for (var i = place; i < WG; i += size) { top = f_max(top, reduce_cells[i]); }
  return subgroup_max(top);
}
