// Bytes of the words w at any offset, little-endian, and runs of eight numbers. Blocks of 18, 22, 34, 110 and 210 bytes
// start between words, and a view may start at any byte.
// @include "words.wgsl"
struct Eight {
  a: vec4f,
  b: vec4f,
}

fn u32_at(at: u32) -> u32 {
  let shift = (at & 3u) * 8u;
  let low = word(at >> 2u);
  if (shift == 0u) { return low; }
  return (low >> shift) | (word((at >> 2u) + 1u) << (32u - shift));
}
fn u8_at(at: u32) -> u32 { return (word(at >> 2u) >> ((at & 3u) * 8u)) & 0xffu; }
fn u16_at(at: u32) -> u32 {
  if ((at & 3u) == 3u) { return u8_at(at) | (u8_at(at + 1u) << 8u); }
  return (word(at >> 2u) >> ((at & 3u) * 8u)) & 0xffffu;
}
fn half_at(at: u32) -> f32 { return unpack2x16float(u16_at(at)).x; }

fn unsigned4(q: u32) -> vec4f { return vec4f((vec4u(q) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0xffu)); }
fn signed4(q: u32) -> vec4f { return vec4f((vec4i(bitcast<i32>(q)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u)); }
fn bits4(q: u32) -> vec4f { return vec4f((vec4u(q) >> vec4u(0u, 1u, 2u, 3u)) & vec4u(1u)); }

fn signed8_at(at: u32) -> Eight { return Eight(signed4(u32_at(at)), signed4(u32_at(at + 4u))); }
// Nibbles e … e+7 of the 32 in 16 bytes: the low halves of all, then the high ones.
fn nibbles8_at(at: u32, e: u32) -> Eight {
  let shift = (e >> 4u) * 4u;
  let start = at + (e & 8u);
  return Eight(unsigned4((u32_at(start) >> shift) & 0x0f0f0f0fu), unsigned4((u32_at(start + 4u) >> shift) & 0x0f0f0f0fu));
}
