// What checks share: the first of places() that is_bad(), if no check before this one has found any, is noted for the host
// in the binding errors: which check + 1, then note_of(the place). One workgroup.
var<workgroup> first_bad: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) { atomicStore(&first_bad, places()); }
  workgroupBarrier();
  for (var i = thread; i < places(); i += 256u) {
    if (is_bad(i)) {
      atomicMin(&first_bad, i);
      break;
    }
  }
  workgroupBarrier();
  if (thread != 0u) { return; }
  let i = atomicLoad(&first_bad);
  let to = p.errors_base;
  if (i >= places() || errors[to] != 0u) { return; }
  let note = note_of(i);
  errors[to] = p.slot + 1u;
  errors[to + 1u] = note.x;
  errors[to + 2u] = note.y;
  errors[to + 3u] = note.z;
}
