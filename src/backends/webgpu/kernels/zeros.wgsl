// y = 0, whatever its elements are: one thread per word or four of them.
alias T = u32;             // @type u32 | vec4<u32>

struct Params {
  n: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<T>;
@group(0) @binding(1) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i < p.n) { y[p.y_base + i] = T(); }
}
