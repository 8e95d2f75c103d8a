// Which scale belongs to element e (ops/linear_scales.h).
fn scale_index(e: u32) -> u32 {
  let c = (e / p.inner) % p.cols / p.block;
  if (p.own == 0u) { return c; }
  return (e / p.inner / p.cols * p.blocks + c) * p.inner + e % p.inner;
}
