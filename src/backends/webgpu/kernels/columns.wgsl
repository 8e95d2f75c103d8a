// A weight [K, N] of codes with scales beside it (spec 10, 5.2), row by row: element (k, n) is code number k * N + n.
// @include "bytes.wgsl"
// @include "small_float.wgsl"
override SCHEME: u32 = 0u;  // 0 int8, 1 int8 with zero points, 2 int4, 3 fp8 e4m3, 4 fp8 e5m2, 5 nvfp4
override BITS: u32 = 8u;    // of a code
alias S = f32;              // @type f32 | u32
@group(0) @binding(3) var<storage, read>       scale: array<S>;
@group(0) @binding(4) var<storage, read>       zero: array<f32>;

fn code_value(bits: u32) -> f32 {
  if (SCHEME == 2u) { return f32(bitcast<i32>(bits << 28u) >> 28u); }
  if (SCHEME == 3u) { return f32_of_e4m3(bits & 0xffu); }
  if (SCHEME == 4u) { return f32_of_e5m2(bits & 0xffu); }
  if (SCHEME == 5u) {
    // 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign: a float of two exponent bits and one of mantissa.
    let size = bits & 7u;
    let value = select(bitcast<f32>((size << 22u) + (126u << 23u)), f32(size) * 0.5, size < 2u);
    return select(value, -value, (bits & 8u) != 0u);
  }
  return f32(bitcast<i32>(bits << 24u) >> 24u);
}
fn code_at(e: u32) -> f32 {
  if (BITS == 4u) {
    let nibble = e + (p.w_byte_base << 1u);
    return code_value((w[nibble >> 3u] >> ((nibble & 7u) * 4u)) & 15u);
  }
  return code_value(u8_at(p.w_byte_base + e));
}
fn four_codes(q: u32) -> vec4f {
  if (SCHEME <= 1u) { return signed4(q); }
  const WIDTH = BITS;
  return vec4f(code_value(q), code_value(q >> WIDTH), code_value(q >> (2u * WIDTH)), code_value(q >> (3u * WIDTH)));
}
fn codes8(e: u32) -> Eight {
  if (BITS == 4u) {
    let nibble = e + (p.w_byte_base << 1u);
    let shift = (nibble & 7u) * 4u;
    var q = w[nibble >> 3u] >> shift;
    if (shift != 0u) { q |= w[(nibble >> 3u) + 1u] << (32u - shift); }
    return Eight(four_codes(q & 0xffffu), four_codes(q >> 16u));
  }
  let at = p.w_byte_base + e;
  return Eight(four_codes(u32_at(at)), four_codes(u32_at(at + 4u)));
}

fn scale_at(block: u32, n: u32) -> f32 {
  let at = block * p.scale_block + n * p.scale_column;
  if (SCHEME == 5u) {
    let byte = p.scale_byte_base + at;
    return f32_of_e4m3((u32(scale[byte >> 2u]) >> ((byte & 3u) * 8u)) & 0xffu) * zero[p.zero_base];
  }
  return f32(scale[p.scale_base + at]);
}
fn scale4(block: u32, n: u32) -> vec4f {
  return vec4f(scale_at(block, n), scale_at(block, n + 1u), scale_at(block, n + 2u), scale_at(block, n + 3u));
}
fn scales8(block: u32, n: u32) -> Eight { return Eight(scale4(block, n), scale4(block, n + 4u)); }
fn zero_at(block: u32, n: u32) -> f32 {
  if (SCHEME != 1u) { return 0.0; }
  return zero[p.zero_base + block * p.n + n];
}
fn zeros8(block: u32, n: u32) -> Eight {
  if (SCHEME != 1u) { return Eight(vec4f(), vec4f()); }
  let at = p.zero_base + block * p.n + n;
  return Eight(vec4f(zero[at], zero[at + 1u], zero[at + 2u], zero[at + 3u]),
               vec4f(zero[at + 4u], zero[at + 5u], zero[at + 6u], zero[at + 7u]));
}
