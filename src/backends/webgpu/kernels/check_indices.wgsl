// Are indices in range (spec 10, Q16)? The first that is not, of the first check that finds one, is noted. One workgroup.
struct Params {
  n: u32,
  rows: u32,          // an index stands for so many places, from it on
  depth: u32,         // ranges; index i is of range i % depth
  slot: u32,          // of this check
  indices_base: u32,
  ranges_base: u32,
  errors_base: u32,
}
@group(0) @binding(0) var<storage, read>       indices: array<i32>;
@group(0) @binding(1) var<storage, read>       ranges: array<u32>;         // first and end, as bits of i32
@group(0) @binding(2) var<storage, read_write> errors: array<u32>;         // which check + 1, which index, its value, rows
@group(0) @binding(3) var<uniform>             p: Params;
var<workgroup> first_bad: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) { atomicStore(&first_bad, p.n); }
  workgroupBarrier();
  for (var i = thread; i < p.n; i += 256u) {
    let at = indices[p.indices_base + i];
    let range = p.ranges_base + i % p.depth * 2u;
    if (at < bitcast<i32>(ranges[range]) || at > bitcast<i32>(ranges[range + 1u]) - i32(p.rows)) {
      atomicMin(&first_bad, i);
      break;
    }
  }
  workgroupBarrier();
  if (thread != 0u) { return; }
  let i = atomicLoad(&first_bad);
  let to = p.errors_base;
  if (i >= p.n || errors[to] != 0u) { return; }
  errors[to] = p.slot + 1u;
  errors[to + 1u] = i;
  errors[to + 2u] = bitcast<u32>(indices[p.indices_base + i]);
  errors[to + 3u] = p.rows;
}
