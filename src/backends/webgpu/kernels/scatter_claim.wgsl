// winners[key] = 1 + the last update of that key. One thread per update.
struct Params {
  n: u32,
  entries_base: u32,
  winners_base: u32,
}
@group(0) @binding(0) var<storage, read>       entries: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> winners: array<atomic<u32>>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let key = entries[p.entries_base + i].x;
  if (key != 0xffffffffu) { atomicMax(&winners[p.winners_base + key], i + 1u); }
}
