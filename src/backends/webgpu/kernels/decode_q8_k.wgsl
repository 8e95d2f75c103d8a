// GGUF Q8_K: d as f32, 256 signed bytes, sums that are not needed.
// @include "bytes.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 292u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = bitcast<f32>(u32_at(at));
  let q = signed8_at(at + 4u + e);
  return Eight(d * q.a, d * q.b);
}
