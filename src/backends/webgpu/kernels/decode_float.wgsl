// The floats that codes of a small float format stand for (core/small_float.h). One thread per element.
// @include "scalar.wgsl"
alias T = f32;                    // @type f32 | f16
override TO: u32 = 0u;            // 0 f32, 1 f16, 2 bf16
override POWER: bool = false;     // as in encode_float.wgsl
override MANT: u32 = 3u;
override BIAS: i32 = 7;
override LARGEST: i32 = 126;
override OVERFLOW: i32 = 127;
override NAN_CODE: i32 = 127;
override SIGN: i32 = 128;
override SIGNED_ZERO: bool = true;

struct Params {
  n: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

fn bits_of(byte: u32) -> u32 {
  if (POWER) { return select(select(byte << 23u, 0x7fc00000u, byte == 0xffu), 0x00400000u, byte == 0u); }
  let code = i32(byte) & (2 * SIGN - 1);
  if (!SIGNED_ZERO && code == NAN_CODE) { return 0x7fc00000u; }
  let size = code & (SIGN - 1);
  let sign = select(0u, 0x80000000u, code >= SIGN);
  if (size > LARGEST) { return sign | select(0x7fc00000u, 0x7f800000u, size == OVERFLOW && OVERFLOW != NAN_CODE); }
  let exponent = size >> MANT;
  let mantissa = size & ((1 << MANT) - 1);
  let unit = bitcast<f32>(u32(max(exponent, 1) - BIAS - i32(MANT) + 127) << 23u);
  return sign | bitcast<u32>(f32(mantissa + select(1 << MANT, 0, exponent == 0)) * unit);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  var v = bitcast<f32>(bits_of(x[p.x_base + i] & 0xffu));
  if (TO == 1u) { v = round_f16(v); }
  if (TO == 2u) { v = round_bf16(v); }
  y[p.y_base + i] = T(v);
}
