// Rows of a tensor [outer, cols, inner] along cols, on the threads of a workgroup: LANES threads have a row, and a
// workgroup SLOTS rows at once. A long row may be cut into chunks; a chunk counts as a row then, in the order [outer,
// chunks, inner]. The kernel's Params have rows (chunks counted), cols, inner, chunks and chunk (elements in one; the
// last may be shorter).
// @include "scalar.wgsl"
// @include "reduce.wgsl"
override WG: u32 = 256u;
override LANES: u32 = 256u;         // a power of two up to WG
override BY_COLUMNS: bool = false;  // neighbouring threads have neighbouring rows, not elements of a row: inner > 1
const SLOTS: u32 = WG / LANES;
const STEP: u32 = select(1u, SLOTS, BY_COLUMNS);  // from a lane of a row to the next

struct Row {
  index: u32,  // which, chunks counted
  live: bool,  // the last workgroup has rows beyond the end
  first: u32,  // its first element
  count: u32,  // its elements; 0 if it is not live
  begin: u32,  // where the chunk begins in its row
  whole: u32,  // the row it is a part of, in the order [outer, inner]
  chunk0: u32, // index of that row's first chunk; the others follow at a distance of inner
}

fn lane_of(thread: u32) -> u32 { return select(thread % LANES, thread / SLOTS, BY_COLUMNS); }

fn row_of(group: vec3u, groups: vec3u, thread: u32) -> Row {
  return row_at(group.x + group.y * groups.x, thread);
}
// Of the workgroups from the last to the first: for a second pass, whose predecessor has left the last rows in a cache. A
// workgroup beyond them all stays so.
fn row_from_end(group: vec3u, groups: vec3u, thread: u32) -> Row {
  return row_at((p.rows + SLOTS - 1u) / SLOTS - 1u - (group.x + group.y * groups.x), thread);
}
fn row_at(id: u32, thread: u32) -> Row {
  var row: Row;
  row.index = id * SLOTS + select(thread / LANES, thread % SLOTS, BY_COLUMNS);
  row.live = row.index < p.rows;
  let column = row.index % p.inner;
  let outer = row.index / p.inner / p.chunks;
  row.begin = row.index / p.inner % p.chunks * p.chunk;
  row.whole = outer * p.inner + column;
  row.chunk0 = outer * p.chunks * p.inner + column;
  row.first = (outer * p.cols + row.begin) * p.inner + column;
  row.count = select(0u, min(p.chunk, p.cols - row.begin), row.live);
  return row;
}

// Over the lanes of a row; every thread of the workgroup calls them, and gets its row's result.
fn row_sum(part: f32, thread: u32) -> f32 {
  if (LANES == 1u) { return part; }
  if (LANES == WG) { return wg_sum(part, thread); }
  workgroupBarrier();  // an earlier call's result is still being read
  reduce_cells[thread] = part;
  for (var half = LANES / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane_of(thread) < half) { reduce_cells[thread] += reduce_cells[thread + half * STEP]; }
  }
  workgroupBarrier();
  return reduce_cells[thread - lane_of(thread) * STEP];
}

fn row_max(part: f32, thread: u32) -> f32 {
  if (LANES == 1u) { return part; }
  if (LANES == WG) { return wg_max(part, thread); }
  workgroupBarrier();
  reduce_cells[thread] = part;
  for (var half = LANES / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (lane_of(thread) < half) {
      reduce_cells[thread] = f_max(reduce_cells[thread], reduce_cells[thread + half * STEP]);
    }
  }
  workgroupBarrier();
  return reduce_cells[thread - lane_of(thread) * STEP];
}
