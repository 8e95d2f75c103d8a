// Floats as whole numbers of three signed bytes, so that four products of codes and bytes of x are one instruction: x is a
// power of two, one for all the elements of x that a lane has, times n = 32768 high + 256 middle + low. |n| is less than 2^22,
// for the largest 0.99 * 2^21 or more: what an element loses is about 2^-22 of the largest at most (on the cpu 2^-23).
var<private> x_unit: f32;   // the power of two; NaN where x is not finite or too small for it: then all is done with care
var<private> x_shift: f32;  // its inverse

fn magnitude4(v: vec4f) -> u32 {
  let bits = bitcast<vec4u>(v) & vec4u(0x7fffffffu);
  return max(max(bits.x, bits.y), max(bits.z, bits.w));
}
fn sum4(v: vec4f) -> f32 { return dot(v, vec4f(1.0)); }
// `most`: the bits of the largest magnitude, NaN and infinity larger than any.
fn set_unit(most: u32) {
  let e = (most + 0x24000u) >> 23u;  // of the next power of two already where rounding would reach it
  let exponent = clamp(e, 24u, 254u);
  x_shift = bitcast<f32>((275u - exponent) << 23u);
  x_unit = bitcast<f32>(select((exponent - 21u) << 23u, 0x7fc00000u, e > 254u || (e < 24u && most > 0u)));
}

struct Digits {
  high: u32,
  middle: u32,
  low: u32,
}
// The last 23 bits of the sum are n + 2^22 + 2^15 + 2^7: bytes that are 64, 128 and 128 too large. The first is doubled, so
// that its sign is where a byte has it.
fn digits4(v: vec4f) -> Digits {
  let n = bitcast<vec4u>(fma(v, vec4f(x_shift), vec4f(12615808.0)));
  let a = (n.x & 0x00ff00ffu) | ((n.y << 8u) & 0xff00ff00u);
  let b = (n.z & 0x00ff00ffu) | ((n.w << 8u) & 0xff00ff00u);
  let c = ((n.x >> 8u) & 0xffu) | (n.y & 0xff00u);
  let d = ((n.z >> 8u) & 0xffu) | (n.w & 0xff00u);
  return Digits((((a >> 16u) | (b & 0xffff0000u)) << 1u) ^ 0x80808080u,
                ((c & 0xffffu) | (d << 16u)) ^ 0x80808080u,
                ((a & 0xffffu) | (b << 16u)) ^ 0x80808080u);
}
// Sixteen elements: a word of each digit for four.
struct Digits16 {
  high: vec4u,
  middle: vec4u,
  low: vec4u,
}
fn digits16(a: vec4f, b: vec4f, c: vec4f, d: vec4f) -> Digits16 {
  let q = digits4(a);
  let r = digits4(b);
  let s = digits4(c);
  let t = digits4(d);
  return Digits16(vec4u(q.high, r.high, s.high, t.high), vec4u(q.middle, r.middle, s.middle, t.middle),
                  vec4u(q.low, r.low, s.low, t.low));
}

// Signed codes in bytes by digits, and what they make: sums of codes times high, middle and low bytes.
fn products2(c: vec2u, d: vec2u) -> i32 { return dot4I8Packed(c.x, d.x) + dot4I8Packed(c.y, d.y); }
fn products4(c: vec4u, d: vec4u) -> i32 { return products2(c.xy, d.xy) + products2(c.zw, d.zw); }
fn by_digits(c: vec4u, x: Digits16) -> vec3i {
  return vec3i(products4(c, x.high), products4(c, x.middle), products4(c, x.low));
}
fn number(n: vec3i) -> f32 { return fma(f32(n.x), 32768.0, fma(f32(n.y), 256.0, f32(n.z))); }
