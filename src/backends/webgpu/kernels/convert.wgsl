// The elements of a value in another type that holds them. One thread per element.
alias S = f32;             // @type f32 | i32 | u32
alias T = i32;             // @type f32 | i32 | u32

struct Params {
  n: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<S>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  y[p.y_base + i] = T(x[p.x_base + i]);
}
