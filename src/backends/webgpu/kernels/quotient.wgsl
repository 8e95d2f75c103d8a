// Quotients as the oracle has them: WGSL lets x / s be off by some units, which would flip a code next to a tie.
struct Quotient {
  value: f32,      // nearest f32 to x / s
  remainder: f32,  // what is left of x, of the size of a rounding error
}
// 24 bits as 12 and 12, so that products of the parts are exact.
fn split_high(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) & 0xfffff000u); }
fn remainder_of(x: f32, q: f32, s: f32) -> f32 {
  let qh = split_high(q);
  let ql = q - qh;
  let sh = split_high(s);
  let sl = s - sh;
  return (((x - qh * sh) - qh * sl) - ql * sh) - ql * sl;
}
fn quotient_of(x: f32, s: f32) -> Quotient {
  let q = x / s;
  if (!(abs(q) < 1.0e9) || (bitcast<u32>(q) & 0x7f800000u) == 0u) { return Quotient(q, 0.0); }  // saturates, or is 0
  let better = q + remainder_of(x, q, s) / s;
  return Quotient(better, remainder_of(x, better, s) / s);
}
// x / s to the nearest whole number, ties to even, decided by the quotient itself and not by its nearest f32.
fn round_quotient(x: f32, s: f32) -> f32 {
  let q = quotient_of(x, s);
  let low = floor(q.value);
  if (q.value - low == 0.5 && q.remainder != 0.0) { return select(low, low + 1.0, q.remainder > 0.0); }
  return round(q.value);
}
