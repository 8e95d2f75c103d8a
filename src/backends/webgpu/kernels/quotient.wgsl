// Quotients as IEEE has them: WGSL lets x / s be off by 2.5 units of the last place, and by anything for very large and small s.
// The division of significands is corrected by what it leaves, in integers: a correction in floats is what compilers may
// rearrange.
struct Quotient {
  value: f32,  // nearest f32 to x / s
  side: i32,   // the sign of x / s - value; 0 of denormals
}
fn exact_quotient(x: f32, s: f32) -> Quotient {
  let sign = (bitcast<u32>(x) ^ bitcast<u32>(s)) & 0x80000000u;
  var a = bitcast<u32>(x) & 0x7fffffffu;
  var b = bitcast<u32>(s) & 0x7fffffffu;
  var e = 127;
  if (a - 0x800000u >= 0x7f000000u || b - 0x800000u >= 0x7f000000u) {
    if (a == 0u && b != 0u && b <= 0x7f800000u) { return Quotient(bitcast<f32>(sign), 0); }
    if (b == 0u || a >= 0x7f800000u || b >= 0x7f800000u) { return Quotient(x / s, 0); }
    // Denormals: bit 23 becomes the first one, as normal numbers have it.
    let up_a = select(countLeadingZeros(a) - 8u, 0u, a >= 0x800000u);
    let up_b = select(countLeadingZeros(b) - 8u, 0u, b >= 0x800000u);
    a = a << up_a;
    b = b << up_b;
    e += i32(up_b) - i32(up_a);
  }
  let m = (a & 0x7fffffu) | 0x800000u;
  let d = (b & 0x7fffffu) | 0x800000u;
  let below = select(0u, 1u, m < d);  // m / d is in 0.5 … 1, not in 1 … 2
  e += i32(a >> 23u) - i32(b >> 23u) - i32(below);
  // The 24 digits of a quotient that is off by up to 3. What it leaves is a few d, so that 32 bits of it are enough.
  let near = bitcast<f32>((a & 0x7fffffu) | 0x3f800000u) / bitcast<f32>((b & 0x7fffffu) | 0x3f800000u);
  var q = bitcast<u32>(near) - select(0x3f000000u, 0x3e800000u, below != 0u);
  var rest = 2 * i32((m << (23u + below)) - q * d);
  let unit = i32(d);
  if (rest > 3 * unit) {
    q += 2u;
    rest -= 4 * unit;
  }
  if (rest < -3 * unit) {
    q -= 2u;
    rest += 4 * unit;
  }
  if (rest > unit) {
    q += 1u;
    rest -= 2 * unit;
  }
  if (rest < -unit) {
    q -= 1u;
    rest += 2 * unit;
  }
  if (e > 254) { return Quotient(bitcast<f32>(sign | 0x7f800000u), 0); }
  if (e < 1) {  // a denormal has fewer digits
    if (e < -23) { return Quotient(bitcast<f32>(sign), 0); }
    let fewer = u32(1 - e);
    let tail = q << (32u - fewer);
    let up = tail > 0x80000000u || (tail == 0x80000000u && (rest > 0 || (rest == 0 && ((q >> fewer) & 1u) != 0u)));
    return Quotient(bitcast<f32>(sign | ((q >> fewer) + select(0u, 1u, up))), 0);
  }
  let value = bitcast<f32>(sign | ((u32(e) << 23u) + q - 0x800000u));
  return Quotient(value, select(rest, -rest, sign != 0u));
}
// The value alone, in fewer steps: where all three are normal numbers and x / s is off by no more than a unit.
fn f_div(x: f32, s: f32) -> f32 {
  let near = x / s;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(s) & 0x7fffffffu;
  let c = bitcast<u32>(near) & 0x7fffffffu;
  let m = (a & 0x7fffffu) | 0x800000u;
  let d = (b & 0x7fffffu) | 0x800000u;
  let q = (c & 0x7fffffu) | 0x800000u;
  let up = (a >> 23u) - (b >> 23u) - (c >> 23u) + 150u;
  let rest = 2 * i32((m << (up & 31u)) - q * d);
  let unit = i32(d);
  // Divisors from 2^126 on have reciprocals that are denormals; units below a power of two are halves.
  if (min(a, min(b, c)) < 0x800000u || max(b + 0x1000000u, max(a, c)) >= 0x7f800000u || up - 23u > 1u ||
      abs(rest) > 3 * unit || (q == 0x800000u && rest < 0)) {
    return exact_quotient(x, s).value;
  }
  return bitcast<f32>(bitcast<u32>(near) + select(0u, 1u, rest > unit) - select(0u, 1u, rest < -unit));
}

// x / s to the nearest whole number, ties to even, decided by the quotient itself.
fn round_quotient(x: f32, s: f32) -> f32 {
  let q = exact_quotient(x, s);
  let low = floor(q.value);
  if (q.value - low == 0.5 && q.side != 0) { return select(low, low + 1.0, q.side > 0); }
  return round(q.value);
}
// |x / s| <= top
fn quotient_at_most(x: f32, s: f32, top: f32) -> bool {
  let q = exact_quotient(abs(x), abs(s));
  return q.value < top || (q.value == top && q.side <= 0);
}
