// Codes of a small float format (core/small_float.h), by bits. One thread per element.
alias T = f32;                    // @type f32 | f16
override POWER: bool = false;     // f8e8m0: a power of two
override MANT: u32 = 3u;          // bits of the mantissa
override BIAS: i32 = 7;
override LARGEST: i32 = 126;      // magnitude of the largest finite value
override OVERFLOW: i32 = 127;     // of what lies above it, unless it saturates
override NAN_CODE: i32 = 127;
override SIGN: i32 = 128;         // the sign's bit
override SIGNED_ZERO: bool = true;
override SATURATE: bool = true;
override ROUNDING: u32 = 0u;      // of powers: 0 up, 1 down, 2 nearest

struct Params {
  n: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

fn power_code(size: u32) -> u32 {
  if (size > 0x7f800000u) { return 0xffu; }
  if (!SATURATE && (size < 0x00400000u || size > 0x7f000000u)) { return 0xffu; }
  if (size <= 0x00400000u) { return 0u; }
  if (size >= 0x7f000000u) { return 0xfeu; }
  // A denormal above 2^-127 has one bit of mantissa less.
  let denormal = size < 0x00800000u;
  let mantissa = select(size & 0x7fffffu, (size & 0x3fffffu) << 1u, denormal);
  let code = size >> 23u;
  if (ROUNDING == 0u) { return code + select(0u, 1u, mantissa != 0u); }
  if (ROUNDING == 2u) { return code + (mantissa >> 22u); }
  return code;
}

fn code_of(bits: u32) -> u32 {
  let size = bits & 0x7fffffffu;
  if (POWER) { return power_code(size); }
  var code = NAN_CODE;
  if (size < 0x7f800000u) {
    // Subnormals share the smallest exponent; those of f32 are far below every format.
    let exponent = max(i32(size >> 23u) - 127, 1 - BIAS);
    let unit = bitcast<f32>(u32(i32(MANT) - exponent + 127) << 23u);
    let ulps = i32(round(select(bitcast<f32>(size), 0.0, size < 0x00800000u) * unit));
    code = ((exponent + BIAS - 1) << MANT) + ulps;
  }
  if (size <= 0x7f800000u && (size == 0x7f800000u || code > LARGEST)) { code = select(OVERFLOW, LARGEST, SATURATE); }
  let has_sign = SIGNED_ZERO || (code != 0 && code != NAN_CODE);
  return u32(code ^ select(0, SIGN, has_sign && bits != size));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  y[p.y_base + i] = code_of(bitcast<u32>(f32(x[p.x_base + i])));
}
