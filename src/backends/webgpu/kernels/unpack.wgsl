// One element per word from bytes that lie packed in words: y[i] = x[i]. One thread per element.
// @include "packed.wgsl"
alias T = f32;             // @type f32 | i32 | u32
override KIND: u32 = 0u;   // packed.wgsl

struct Params {
  n: u32,
  x_byte_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  const size = select(1u, 2u, KIND >= 3u);
  let at = p.x_byte_base + i * size;
  y[p.y_base + i] = element_of(x[at / 4u] >> (at % 4u * 8u));
}
