// Elements of x at places that tables name, an entry per axis and place; one thread per element of the result.
alias T = u32;             // @type f16 | u32 | vec2<u32>

struct Params {
  n: u32,
  rank: u32,
  x_base: u32,
  table_base: u32,
  beyond_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
// Per axis, the last one first: its size in the result, its distance in x, and where in this table its places start.
@group(0) @binding(1) var<storage, read>       table: array<u32>;
@group(0) @binding(2) var<storage, read>       beyond: array<T>;  // what stands for places that are not in x
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  var r = i;
  var at = 0u;
  var inside = true;
  for (var a = 0u; a < p.rank; a += 1u) {
    let size = table[p.table_base + 3u * a];
    let next = r / size;
    let place = table[p.table_base + table[p.table_base + 3u * a + 2u] + r - next * size];
    inside = inside && place != 0xffffffffu;
    at += place * table[p.table_base + 3u * a + 1u];
    r = next;
  }
  var v = beyond[p.beyond_base];
  if (inside) { v = x[p.x_base + at]; }
  y[p.y_base + i] = v;
}
