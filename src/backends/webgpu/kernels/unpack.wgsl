// One element per word from bytes that lie packed in words: y[i] = x[i]. One thread per element.
alias T = f32;             // @type f32 | f16 | i32 | u32
override KIND: u32 = 0u;   // 0 i8, 1 u8, 2 bool, 3 i16, 4 u16, 5 bf16, 6 f16

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
  let bits = x[at / 4u] >> (at % 4u * 8u);
  if (KIND == 0u) { y[p.y_base + i] = T(bitcast<i32>(bits << 24u) >> 24u); }
  if (KIND == 1u) { y[p.y_base + i] = T(bits & 0xffu); }
  if (KIND == 2u) { y[p.y_base + i] = T(min(bits & 0xffu, 1u)); }
  if (KIND == 3u) { y[p.y_base + i] = T(bitcast<i32>(bits << 16u) >> 16u); }
  if (KIND == 4u) { y[p.y_base + i] = T(bits & 0xffffu); }
  if (KIND == 5u) { y[p.y_base + i] = T(bitcast<f32>(bits << 16u)); }
  if (KIND == 6u) { y[p.y_base + i] = T(unpack2x16float(bits & 0xffffu).x); }
}
