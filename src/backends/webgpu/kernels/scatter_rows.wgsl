// y[key] = update, of the last update with that key: rows of units, one thread per unit.
alias T = u32;             // @type what lies together: f16 | u32 | vec2<u32> | vec4<u32>

struct Params {
  n: u32,                  // units of the updates
  row: u32,                // units of a row
  updates_base: u32,
  entries_base: u32,
  winners_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       updates: array<T>;
@group(0) @binding(1) var<storage, read>       entries: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read>       winners: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let u = i / p.row;
  let key = entries[p.entries_base + u].x;
  if (key == 0xffffffffu) { return; }
  if (winners[p.winners_base + key] != u + 1u) { return; }
  y[p.y_base + key * p.row + i - u * p.row] = updates[p.updates_base + i];
}
