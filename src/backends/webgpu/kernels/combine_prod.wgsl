// combine.wgsl for products of floats, as (fraction, exponent of 2): parts of a product may overflow where the whole
// does not.
alias E = f32;               // @type f32 | f16
alias T = f32;               // @type f32 | f16
alias Acc = vec2<f32>;

// The fraction brought to 1 <= f < 2. 0, inf and NaN have no exponent of their own.
fn scaled(f: f32, exponent: f32) -> Acc {
  let bits = bitcast<u32>(f);
  let field = (bits >> 23u) & 255u;
  if (field == 255u || (bits & 0x7fffffffu) == 0u) { return vec2<f32>(f, 0.0); }
  if (field == 0u) {  // a denormal: its bits are a whole number of 2^-149
    let whole = f32(bits & 0x7fffffu);
    let own = bitcast<u32>(whole);
    return vec2<f32>(bitcast<f32>((bits & 0x80000000u) | (own & 0x7fffffu) | 0x3f800000u),
                     exponent + f32(own >> 23u) - 276.0);
  }
  return vec2<f32>(bitcast<f32>((bits & 0x807fffffu) | 0x3f800000u), exponent + f32(field) - 127.0);
}
fn identity() -> Acc { return vec2<f32>(1.0, 0.0); }
fn widen(v: E) -> Acc { return scaled(f32(v), 0.0); }
fn combine(a: Acc, b: Acc) -> Acc { return scaled(a.x * b.x, a.y + b.y); }
fn finish(a: Acc) -> T {
  // In two steps, since 2^e itself may not be an f32.
  let e = i32(clamp(a.y, -250.0, 250.0));
  let half = e / 2;
  let h = bitcast<f32>(u32(half + 127) << 23u);
  let r = bitcast<f32>(u32(e - half + 127) << 23u);
  return T(a.x * h * r);
}
