// GGUF Q4_0: d, 16 bytes of nibbles (spec 10, 5.4). decode8: elements e … e+7, e a multiple of 8, of the block at a
// byte; so in every decode_*.wgsl.
// @include "bytes.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 18u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let q = nibbles8_at(at + 2u, e);
  return Eight(d * (q.a - 8.0), d * (q.b - 8.0));
}
