// Bytes that lie one per word, packed four to a word: for codes that are computed, not given.
alias T = u32;         // @type u32 | i32
struct Params {
  n: u32,             // bytes
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i * 4u >= p.n) { return; }
  var word = 0u;
  for (var b = 0u; b < min(4u, p.n - i * 4u); b++) { word |= (u32(x[p.x_base + i * 4u + b]) & 0xffu) << (8u * b); }
  y[p.y_base + i] = word;
}
