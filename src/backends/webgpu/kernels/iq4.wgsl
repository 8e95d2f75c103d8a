// The 16 levels of IQ4_NL and IQ4_XS, as signed bytes in four words.
const IQ4_LEVELS = array<u32, 4>(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
fn iq4_level(q: f32) -> f32 {
  let n = u32(q);
  return f32((bitcast<i32>(IQ4_LEVELS[n >> 2u]) << (24u - 8u * (n & 3u))) >> 24u);
}
fn iq4_levels(q: vec4f) -> vec4f { return vec4f(iq4_level(q.x), iq4_level(q.y), iq4_level(q.z), iq4_level(q.w)); }
