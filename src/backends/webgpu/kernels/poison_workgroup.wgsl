// A pattern in all of a workgroup's memory, for the kernel that gets it next: wgpu-native does not clear it.
override FOURS: u32 = 1024u;   // words, in fours

struct Params {
  pattern: u32,
  never: u32,      // is no word's value
  sink_base: u32,
}
@group(0) @binding(0) var<storage, read_write> sink: array<u32>;
@group(0) @binding(1) var<uniform>             p: Params;

var<workgroup> cells: array<vec4u, FOURS>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  for (var i = thread; i < FOURS; i += 256u) { cells[i] = vec4u(p.pattern); }
  workgroupBarrier();
  // Somebody who may read any of them, or they would not be written.
  if (cells[(thread * 7u + p.never) % FOURS].x == p.never) { sink[p.sink_base] = thread; }
}
