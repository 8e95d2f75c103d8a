// Of the eight six-bit pairs, scales 2i and 2i + 1 in the first two bytes of x, and their minima in those of y.
fn pairs_of(s: vec3u, i: u32) -> vec2u {
  let shift = (i & 1u) * 16u;
  let own = s.xy >> vec2u(shift);
  let last = vec2u(s.z >> shift, s.z >> (shift + 4u));
  return select((last & vec2u(0x0f0fu)) | ((own >> vec2u(2u)) & vec2u(0x3030u)), own & vec2u(0x3f3fu), i < 2u);
}
