// y[o, len[b] + s, t] = rows[o, s, t]: rows of units, one thread per unit. What does not fit the cache is left out.
alias T = u32;             // @type what lies together: f16 | u32 | vec2<u32> | vec4<u32>

struct Params {
  n: u32,                  // units of the rows
  used: u32,               // rows per o that count
  row: u32,                // units of a row
  count: u32,              // rows per o
  cap: u32,                // rows of the cache per o
  per_batch: u32,          // o per batch
  rows_base: u32,
  len_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       rows: array<T>;
@group(0) @binding(1) var<storage, read>       len: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let r = i / p.row;
  let o = r / p.count;
  let s = r - o * p.count;
  let start = len[p.len_base + o / p.per_batch];
  if (s >= p.used || start < 0 || start > i32(p.cap) || u32(start) + s >= p.cap) { return; }
  y[p.y_base + (o * p.cap + u32(start) + s) * p.row + i - r * p.row] = rows[p.rows_base + i];
}
