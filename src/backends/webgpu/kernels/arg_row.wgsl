// The largest key of a row and its index; of equal keys the smallest index.
var<workgroup> cells: array<vec2<u32>, WG>;

fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(b, a, a.x > b.x || (a.x == b.x && a.y < b.y));
}
fn best_of_row(part: vec2<u32>, thread: u32) -> vec2<u32> {
  if (LANES == 1u) { return part; }
  workgroupBarrier();
  cells[thread] = part;
  for (var half = LANES / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane_of(thread) < half) { cells[thread] = better(cells[thread], cells[thread + half * STEP]); }
  }
  workgroupBarrier();
  return cells[thread - lane_of(thread) * STEP];
}
