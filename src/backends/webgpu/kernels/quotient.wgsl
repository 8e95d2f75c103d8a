// Quotients as the oracle has them: WGSL lets x / s be off by some units, which would flip a code next to a tie. What is
// close to one is divided in integers: a correction in floats is what compilers may rearrange.
struct Quotient {
  value: f32,  // nearest f32 to x / s
  side: i32,   // the sign of x / s - value
}
fn exact_quotient(x: f32, s: f32) -> Quotient {
  let sign = (bitcast<u32>(x) ^ bitcast<u32>(s)) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(s) & 0x7fffffffu;
  if (a == 0u && b != 0u && b <= 0x7f800000u) { return Quotient(bitcast<f32>(sign), 0); }
  if (b == 0u || a >= 0x7f800000u || b >= 0x7f800000u) { return Quotient(x / s, 0); }
  // Each is m * 2^(e - 150) with m of 24 bits, denormals too.
  let up_a = select(countLeadingZeros(a) - 8u, 0u, a >= 0x800000u);
  let up_b = select(countLeadingZeros(b) - 8u, 0u, b >= 0x800000u);
  var m = select((a & 0x7fffffu) | 0x800000u, a << up_a, a < 0x800000u);
  let d = select((b & 0x7fffffu) | 0x800000u, b << up_b, b < 0x800000u);
  var e = max(i32(a >> 23u), 1) - i32(up_a) - max(i32(b >> 23u), 1) + i32(up_b) + 127;
  if (m < d) {
    m = m << 1u;
    e -= 1;
  }
  // 1 and 24 bits behind the point, eight at a time: one more than an f32 holds.
  var q = 1u;
  var rest = m - d;
  for (var i = 0u; i < 3u; i++) {
    rest = rest << 8u;
    q = (q << 8u) | (rest / d);
    rest = rest % d;
  }
  let up = (q & 1u) != 0u && (rest != 0u || (q & 2u) != 0u);
  var side = select(0, select(1, -1, up), rest != 0u || (q & 1u) != 0u);
  if (sign != 0u) { side = -side; }
  if (e > 254) { return Quotient(bitcast<f32>(sign | 0x7f800000u), 0); }
  if (e < 1) { return Quotient(bitcast<f32>(sign), 0); }
  return Quotient(bitcast<f32>(sign | ((u32(e) << 23u) + (q >> 1u) + select(0u, 1u, up) - 0x800000u)), side);
}

// WGSL promises nothing about x / s for such s.
fn is_extreme(s: f32) -> bool { return ((bitcast<u32>(s) >> 23u) & 255u) - 7u > 245u; }
// May the error of q = x / s matter to a rounding? It is close to a tie, or so large that whole numbers are close to the
// units of its last place.
fn is_uncertain(q: f32, s: f32) -> bool {
  let size = abs(q);
  return is_extreme(s) || !(size < 1048576.0) || abs(size - floor(size) - 0.5) <= size * 1.0e-6;
}
// x / s to the nearest whole number, ties to even, decided by the quotient itself.
fn round_quotient(x: f32, s: f32) -> f32 {
  let near = x / s;
  if (!is_uncertain(near, s)) { return round(near); }
  let q = exact_quotient(x, s);
  let low = floor(q.value);
  if (q.value - low == 0.5 && q.side != 0) { return select(low, low + 1.0, q.side > 0); }
  return round(q.value);
}
// The same, decided by the quotient's nearest f32.
fn round_f32_quotient(x: f32, s: f32) -> f32 {
  let near = x / s;
  if (!is_uncertain(near, s)) { return round(near); }
  return round(exact_quotient(x, s).value);
}
// |x / s| <= top
fn quotient_at_most(x: f32, s: f32, top: f32) -> bool {
  let near = abs(x / s);
  if (!is_extreme(s) && abs(near - top) > top * 1.0e-5) { return near < top; }
  let q = exact_quotient(abs(x), abs(s));
  return q.value < top || (q.value == top && q.side <= 0);
}
