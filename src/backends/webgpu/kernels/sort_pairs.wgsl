// Sorts pairs by both numbers: a bitonic network, whose result does not depend on the order of threads. Steps within
// blocks of 1024 run in workgroup memory.
override STEP: u32 = 0u;   // 0: sorts blocks, 1: one distance of at least a block, 2: the distances within blocks

struct Params {
  pairs: u32,              // of threads' work: half the number of entries
  turned: u32,             // the bit of a place whose sequence is merged in descending order; 0: none (STEP 1 and 2)
  distance: u32,           // between the two that are compared (STEP 1)
  entries_base: u32,
}
@group(0) @binding(0) var<storage, read_write> entries: array<vec2<u32>>;
@group(0) @binding(1) var<uniform>             p: Params;

var<workgroup> block: array<vec2<u32>, 1024>;

fn is_after(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x > b.x || (a.x == b.x && a.y > b.y); }
// The lower of the two elements that pair t compares.
fn lower_of(t: u32, distance: u32) -> u32 { return ((t & ~(distance - 1u)) << 1u) | (t & (distance - 1u)); }

// One distance within the block; `first` is the block's place in the whole.
fn step_block(lane: u32, first: u32, turned: u32, distance: u32) {
  workgroupBarrier();
  for (var t = lane; t < 512u; t += 256u) {
    let i = lower_of(t, distance);
    let a = block[i];
    let b = block[i + distance];
    if (is_after(a, b) == (((first + i) & turned) == 0u)) {
      block[i] = b;
      block[i + distance] = a;
    }
  }
}

// The same of two in different blocks.
fn step_far(i: u32) {
  let a = entries[p.entries_base + i];
  let b = entries[p.entries_base + i + p.distance];
  if (is_after(a, b) == ((i & p.turned) == 0u)) {
    entries[p.entries_base + i] = b;
    entries[p.entries_base + i + p.distance] = a;
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let g = group.x + group.y * groups.x;
  if (STEP == 1u) {
    let t = g * 256u + lane;
    if (t < p.pairs) { step_far(lower_of(t, p.distance)); }
    return;
  }
  let first = g * 1024u;
  if (first >= p.pairs * 2u) { return; }
  for (var k = lane; k < 1024u; k += 256u) { block[k] = entries[p.entries_base + first + k]; }
  if (STEP == 0u) {
    for (var size = 2u; size <= 1024u; size = size * 2u) {
      for (var distance = size / 2u; distance > 0u; distance = distance / 2u) {
        step_block(lane, first, size, distance);
      }
    }
  } else {
    for (var distance = 512u; distance > 0u; distance = distance / 2u) { step_block(lane, first, p.turned, distance); }
  }
  workgroupBarrier();
  for (var k = lane; k < 1024u; k += 256u) { entries[p.entries_base + first + k] = block[k]; }
}
