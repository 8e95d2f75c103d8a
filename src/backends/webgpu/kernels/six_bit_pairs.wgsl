// Scales 2i and 2i + 1 of the eight six-bit pairs, then their minima.
fn scales_of(s: vec3u, i: u32) -> vec4f {
  let scales = select((s.z & 0x0f0f0f0fu) | ((s.x & 0xc0c0c0c0u) >> 2u), s.x & 0x3f3f3f3fu, i < 2u);
  let minima = select(((s.z >> 4u) & 0x0f0f0f0fu) | ((s.y & 0xc0c0c0c0u) >> 2u), s.y & 0x3f3f3f3fu, i < 2u);
  let shift = (i & 1u) * 16u;
  return vec4f(vec4u(scales >> shift, scales >> (shift + 8u), minima >> shift, minima >> (shift + 8u)) & vec4u(0xffu));
}
