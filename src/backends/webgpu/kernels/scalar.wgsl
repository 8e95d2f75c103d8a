// Functions of one element, for generated element-wise kernels and epilogues. NaN is found by its bits: a compiler may
// assume that x != x is false.

// Of all floats. Often written 3.4028235e38, which is beyond it: WGSL refuses that, though naga does not.
const F32_MAX: f32 = 3.40282346e38;

fn nan_of(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn inf_of(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
// By bits of something that is known only at run time: constants that are not finite do not compile.
fn f32_from(bits: u32) -> f32 { return bitcast<f32>(bits); }

// By bits: NaN and denormals are not 0.
fn bool_of(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }
fn is_positive(x: f32) -> bool { return bitcast<u32>(x) - 1u < 0x7f800000u; }
// NaN is asked for, so that a choice by a < b is not made a min or max that drops it.
fn f_lt(a: f32, b: f32) -> bool { return a < b && !nan_of(a) && !nan_of(b); }
fn f_le(a: f32, b: f32) -> bool { return a <= b && !nan_of(a) && !nan_of(b); }
fn f_eq(a: f32, b: f32) -> bool { return a == b && !nan_of(a) && !nan_of(b); }

fn f_max(a: f32, b: f32) -> f32 { return select(select(b, a, a > b), select(b, a, nan_of(a)), nan_of(a) || nan_of(b)); }
fn f_min(a: f32, b: f32) -> f32 { return select(select(b, a, a < b), select(b, a, nan_of(a)), nan_of(a) || nan_of(b)); }
// The compiler may make max(x, 0) of x < 0 ? 0 : x, which drops NaN: that one is put back.
fn f_relu(x: f32) -> f32 { return select(select(x, 0.0, x < 0.0), x, nan_of(x)); }

// exp is taken of clamped arguments: some compilers give NaN beyond.
fn f_exp(x: f32) -> f32 { return select(exp(x), x, nan_of(x)); }
fn f_sigmoid(x: f32) -> f32 { return select(1.0 / (1.0 + exp(clamp(-x, -88.0, 88.0))), x, nan_of(x)); }
fn f_silu(x: f32) -> f32 {
  let y = select(x / (1.0 + exp(clamp(-x, -88.0, 88.0))), 0.0, x < -104.0);  // exp(88) is not much to the largest x
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  return select(select(y, zero / zero, inf_of(x) && x < 0.0), x, nan_of(x));  // -inf / inf is NaN
}
// Near 0 the quotient of exponentials loses digits: an odd polynomial there.
fn f_tanh(x: f32) -> f32 {
  let a = min(abs(x), 15.0);
  let e = exp(2.0 * a);
  let far = 1.0 - 2.0 / (e + 1.0);
  let s = x * x;
  let near = a * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.053968254 + s * 0.021869488))));
  let t = select(far, near, a < 0.25);
  return select(select(t, -t, x < 0.0), x, nan_of(x));
}

// exp(z^2) erfc(z) for z >= 0, within 5e-7 of itself: a polynomial in t, fitted up to z = 9.5, where exp(-z^2) is over.
fn erfcx_of_positive(z: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.42 * z);
  return t * (0.236826599 + t * (0.239550233 + t * (0.194944113 + t * (0.268035322 + t * (-0.129209608 + t * (0.439261526 + t * (-0.319447398 + t * 0.0700390488)))))));
}
// Below 0.5 the series: 1 - erfc would cancel.
fn f_erf(x: f32) -> f32 {
  let a = abs(x);
  let s = a * a;
  let near = 1.1283792 * a * (1.0 + s * (-0.33333334 + s * (0.1 + s * (-0.023809524 + s * (0.004629630 + s * (-0.00075757576 + s * 0.00010683761))))));
  let far = 1.0 - erfcx_of_positive(a) * exp(-min(s, 88.0));
  let r = select(far, near, a < 0.5);
  return select(select(r, -r, x < 0.0), x, nan_of(x));
}
// x erfc(-x / sqrt 2) / 2: 1 + erf would cancel for negative x.
fn f_gelu(x: f32) -> f32 {
  let tail = 0.5 * erfcx_of_positive(abs(x) * 0.70710678) * exp(-min(0.5 * x * x, 88.0));
  return select(x * select(1.0 - tail, tail, x < 0.0), x, nan_of(x));
}
// 2 u, where gelu_approx is x (1 + tanh u) / 2 = x / (1 + exp(-2 u)), which does not cancel for negative x either.
fn gelu_approx_exponent(x: f32) -> f32 { return x * (1.5957691216 + 0.0713548163 * x * x); }
fn f_gelu_approx(x: f32) -> f32 {
  let u2 = gelu_approx_exponent(x);
  let y = select(x / (1.0 + exp(clamp(-u2, -88.0, 88.0))), 0.0, u2 < -104.0);
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  return select(select(y, zero / zero, inf_of(x) && x < 0.0), x, nan_of(x));  // -inf / inf is NaN
}

// The leading 12 bits of a significand: products of two such numbers are exact.
fn head_of(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
// The whole number below p, and what lies above it in units of 2^-28. In integers no compiler rearranges sums.
fn parts_of(p: f32) -> vec2<i32> { return vec2<i32>(i32(floor(p)), i32((p - floor(p)) * 268435456.0)); }
// a^b of finite numbers, of the bits of an a above 0 (any arithmetic may take a denormal one for 0). WGSL's own may be off by the
// exponent's size times 2^-21: here log2(a) is known as the sum of e, a head and a rest, and b times each is added up in integers.
fn positive_pow(bits: u32, b: f32) -> f32 {
  let own = select(bits, bitcast<u32>(f32(bits)), bits < 0x800000u);  // of a denormal a times 2^149
  var m = (own & 0x7fffffu) | 0x800000u;
  var e = f32(own >> 23u) - select(127.0, 276.0, bits < 0x800000u);
  if (m > 0xb504f3u) { e += 1.0; } else { m = m << 1u; }  // a = m * 2^(e - 24), m / 2^24 in sqrt(1/2) … sqrt(2)
  var head = 0.0;
  var rest = 0.0;
  if (m != 0x1000000u) {
    // log2 of it is 2 / ln 2 * atanh(s), s = (m - 1) / (m + 1); what the head of s leaves is found in integers.
    let size = select(0x1000000u - m, m - 0x1000000u, m > 0x1000000u);
    let sum = f32(m + 0x1000000u);
    let s_head = head_of(f32(size) / sum);
    let s_bits = bitcast<u32>(s_head);
    let down = 138u - (s_bits >> 23u);  // s_head * 2^down is a number of 12 bits
    let left = bitcast<i32>(select(size << (down & 31u), 0u, down > 31u) -
                            (((s_bits & 0x7fffffu) | 0x800000u) >> 12u) * (m + 0x1000000u));
    let s_rest = f32(left) / sum * bitcast<f32>((127u - down) << 23u);
    let s = s_head + s_rest;
    let z = s * s;
    let tail = s * z * (0.33333334 + z * (0.2 + z * (0.14285715 + z * (0.11111111 + z * 0.09090909))));
    let product = bitcast<u32>(2.884765625 * s_head);  // exact: 12 bits of 2 / ln 2
    head = bitcast<f32>(product & 0xfffff000u);
    rest = f32(product & 0xfffu) * bitcast<f32>(((product >> 23u) - 23u) << 23u);
    rest += 6.2445678e-4 * s_head + 2.8853901 * (s_rest + tail);
    if (m < 0x1000000u) {
      head = -head;
      rest = -rest;
    }
  }
  let size = b * (e + (head + rest));
  if (!(abs(size) < 200.0)) { return select(0.0, 1.0 / bitcast<f32>(bits & 0u), size > 0.0); }
  let b_head = head_of(b);
  let b_rest = b - b_head;
  let power = parts_of(b_head * e) + parts_of(b_rest * e) + parts_of(b_head * head) + parts_of(b_rest * head) +
              parts_of(b * rest);
  let whole = power.x + (power.y >> 28u);
  let half = whole / 2;
  let r = exp2(f32(power.y & 0xfffffff) * 3.7252903e-9) * bitcast<f32>(u32(half + 127) << 23u);
  return r * bitcast<f32>(u32(whole - half + 127) << 23u);
}

// WGSL's pow is not defined for negative bases.
fn f_pow(a: f32, b: f32) -> f32 {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (nan_of(a) || nan_of(b)) { return a + b; }
  let whole = b == floor(b);
  let odd = whole && abs(b) < 16777216.0 && abs(b) % 2.0 == 1.0;
  let zero = bitcast<f32>(bitcast<u32>(b) & 0u);  // 0 that the compiler does not know
  if (!bool_of(a)) {
    let positive = select(1.0 / zero, 0.0, b > 0.0);
    return select(positive, -positive, odd && bitcast<u32>(a) != 0u);
  }
  if (inf_of(a)) {
    let size = select(0.0, 1.0 / zero, b > 0.0);
    return select(size, -size, a < 0.0 && odd);
  }
  if (inf_of(b)) {
    let grows = (abs(a) > 1.0) == (b > 0.0);
    return select(select(0.0, 1.0 / zero, grows), 1.0, abs(a) == 1.0);
  }
  let negative = bitcast<u32>(a) > 0x80000000u;
  if (negative && !whole) { return zero / zero; }
  let power = b * log2(abs(a));
  var r = 1.0;
  // Small whole exponents exactly as products: models square and cube.
  if (whole && abs(b) <= 16.0) {
    var base = abs(a);
    for (var e = u32(abs(b)); e != 0u; e = e >> 1u) {
      if ((e & 1u) == 1u) { r *= base; }
      base *= base;
    }
    if (b < 0.0) { r = 1.0 / r; }
  } else if (abs(b) <= 4.0 && abs(power) <= 16.0) {  // what the logarithm is off by stays small
    r = exp2(power);
  } else {
    r = positive_pow(bitcast<u32>(a) & 0x7fffffffu, b);
  }
  return select(r, -r, negative && odd);
}

// Cephes' polynomials: WGSL promises 2^-11 for its own.
fn f_atan(x: f32) -> f32 {
  var a = abs(x);
  var y = 0.0;
  if (a > 2.4142135) {
    y = 1.5707963;
    a = -1.0 / a;
  } else if (a > 0.41421357) {
    y = 0.78539816;
    a = (a - 1.0) / (a + 1.0);
  }
  let z = a * a;
  y += (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * a + a;
  return select(select(y, -y, x < 0.0), x, nan_of(x));
}
fn asin_of_small(s: f32, z: f32) -> f32 {
  return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2) * z + 1.6666752422e-1) * z * s + s;
}
fn f_asin(x: f32) -> f32 {
  let a = abs(x);
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  if (nan_of(x)) { return x; }
  if (a > 1.0) { return zero / zero; }
  let z = 0.5 * (1.0 - a);
  let r = select(asin_of_small(a, a * a), 1.5707963 - 2.0 * asin_of_small(sqrt(z), z), a > 0.5);
  return select(r, -r, x < 0.0);
}
fn f_acos(x: f32) -> f32 {
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  if (nan_of(x)) { return x; }
  if (abs(x) > 1.0) { return zero / zero; }
  let z = 0.5 * (1.0 - abs(x));
  let far = 2.0 * asin_of_small(sqrt(z), z);
  return select(1.5707963 - asin_of_small(x, x * x), select(far, 3.1415927 - far, x < 0.0), abs(x) > 0.5);
}
// The upper half of a product.
fn mul_high(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let mid = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (mid & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (mid >> 16u) + (other >> 16u);
}
// 128 bits of 2 / pi from a word on, where word 0 is zeros. No array: drivers take long to compile those.
fn two_by_pi(word: u32) -> vec4<u32> {
  var bits = vec4<u32>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u);
  bits = select(bits, vec4<u32>(0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u), word == 1u);
  bits = select(bits, vec4<u32>(0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u), word == 2u);
  bits = select(bits, vec4<u32>(0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u), word == 3u);
  return select(bits, vec4<u32>(0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu), word == 4u);
}
struct Quarters {
  count: i32,  // or another number that is the same turn
  rest: f32,   // x less so many times pi / 2
}
fn quarters_of(x: f32) -> Quarters {
  if (abs(x) < 65536.0) {  // in three parts: their products are exact
    let j = round(x * 0.63661977);
    return Quarters(i32(j), ((x - j * 1.5703125) - j * 4.837512969970703e-4) - j * 7.54978995489188e-8);
  }
  // Payne and Hanek: the significand times 96 bits of 2 / pi, without those above that make whole turns.
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  let m = (bits & 0x7fffffu) | 0x800000u;
  let start = (bits >> 23u) - 120u;
  let words = two_by_pi(start >> 5u);
  let shift = start & 31u;
  let c = (words.xyz << vec3<u32>(shift)) | ((words.yzw >> vec3<u32>(1u)) >> vec3<u32>(31u - shift));
  let lower = m * c.y + mul_high(m, c.z);
  let turn = m * c.x + mul_high(m, c.y) + select(0u, 1u, lower < m * c.y);  // in units of 2^-32; those of `lower` follow
  let part = bitcast<i32>((turn << 2u) | (lower >> 30u));  // of a quarter, from -1/2 to 1/2
  let count = bitcast<i32>(turn >> 30u) + select(0, 1, part < 0);
  let y = (f32(part) + f32(lower << 2u) * 2.3283064e-10) * 3.6572952e-10;  // * 2^-32; * 2^-32 * pi / 2
  if (x < 0.0) { return Quarters(-count, -y); }
  return Quarters(count, y);
}
fn f_sin_shifted(x: f32, quarters: i32) -> f32 {
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  if (nan_of(x) || inf_of(x)) { return zero / zero; }
  let reduced = quarters_of(x);
  let y = reduced.rest;
  let q = (reduced.count + quarters) & 3;
  let z = y * y;
  let s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * y + y;
  let c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
  let r = select(s, c, (q & 1) == 1);
  return select(r, -r, q >= 2);
}
fn f_sin(x: f32) -> f32 { return f_sin_shifted(x, 0); }
fn f_cos(x: f32) -> f32 { return f_sin_shifted(x, 1); }
fn f_tan(x: f32) -> f32 { return f_sin_shifted(x, 0) / f_sin_shifted(x, 1); }

// The remainder of a / b exactly, whatever the quotient: long division of the significands, eight bits at a time.
fn f_fmod(a: f32, b: f32) -> f32 {
  let s = bitcast<u32>(a) & 0x80000000u;
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) {
    let zero = bitcast<f32>(x & 0u);
    return zero / zero;
  }
  if (x < y) { return a; }
  // value = m * 2^(e - 150), e >= 1
  var m = (x & 0x7fffffu) | select(0u, 0x800000u, x >= 0x800000u);
  let d = (y & 0x7fffffu) | select(0u, 0x800000u, y >= 0x800000u);
  let e = max(y >> 23u, 1u);
  var left = max(x >> 23u, 1u) - e;
  m = m % d;
  while (left > 0u) {
    let k = min(left, 8u);
    m = (m << k) % d;
    left -= k;
  }
  if (m == 0u) { return bitcast<f32>(s); }
  let up = min(countLeadingZeros(m) - 8u, e - 1u);
  m = m << up;
  return bitcast<f32>(s | select(m, ((e - up) << 23u) | (m & 0x7fffffu), m >= 0x800000u));
}
// With the sign of b, as Python's %; a zero too.
fn f_mod(a: f32, b: f32) -> f32 {
  let r = f_fmod(a, b);
  if (nan_of(r)) { return r; }
  let s = bitcast<u32>(b) & 0x80000000u;
  if ((bitcast<u32>(r) & 0x7fffffffu) == 0u) { return bitcast<f32>(s); }
  return select(r, r + b, (bitcast<u32>(r) & 0x80000000u) != s);
}
// Signs by bits: denormals count.
fn f_sign(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) { return 0.0; }
  return select(select(1.0, -1.0, bits >= 0x80000000u), x, nan_of(x));
}
// GPUs take a denormal for 0: its bits * 2^-149.
fn f_sqrt(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if (bits != 0u && bits < 0x00800000u) { return sqrt(f32(bits) * 2.0) * 2.6469780e-23; }
  let zero = bitcast<f32>(bits & 0u);
  return select(sqrt(x), select(zero / zero, x, nan_of(x)), bits > 0x80000000u);
}
fn f_rsqrt(x: f32) -> f32 { return 1.0 / f_sqrt(x); }
fn f_log(x: f32) -> f32 {
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  if ((bitcast<u32>(x) & 0x7fffffffu) == 0u) { return -1.0 / zero; }
  let bits = bitcast<u32>(x);
  if (bits > 0x7f800000u) { return select(zero / zero, x, nan_of(x)); }  // NaN, or below 0
  if (bits < 0x00800000u) { return log(f32(bits)) - 103.27893; }  // a denormal: bits * 2^-149
  return log(x);
}
fn f_sinh(x: f32) -> f32 {
  let s = x * x;
  let near = x * (1.0 + s * (0.16666667 + s * (0.0083333333 + s * 0.0001984127)));
  let e = exp(abs(x) * 0.5);
  let far = 0.5 * e * e - 0.5 / (e * e);
  return select(select(far, -far, x < 0.0), near, abs(x) < 0.5);
}
fn f_cosh(x: f32) -> f32 { let e = exp(abs(x) * 0.5); return 0.5 * e * e + 0.5 / (e * e); }
fn f_asinh(x: f32) -> f32 {
  let a = abs(x);
  let s = a * a;
  let near = a * (1.0 + s * (-0.16666667 + s * (0.075 + s * -0.044642857)));
  let far = select(log(a + sqrt(s + 1.0)), log(a) + 0.69314718, a > 1.0e9);
  let r = select(far, near, a < 0.125);
  return select(r, -r, x < 0.0);
}
fn f_acosh(x: f32) -> f32 {
  let far = log(x) + 0.69314718;
  let near = log(x + sqrt((x - 1.0) * (x + 1.0)));
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  return select(select(near, far, x > 1.0e9), zero / zero, x < 1.0);
}
fn f_atanh(x: f32) -> f32 {
  let s = x * x;
  let near = x * (1.0 + s * (0.33333334 + s * (0.2 + s * 0.14285715)));
  return select(0.5 * f_log((1.0 + x) / (1.0 - x)), near, abs(x) < 0.125);
}

// Rounds to nearest even as F16 and BF16 do, by bits: WGSL leaves the rounding of f16() open.
fn round_f16(x: f32) -> f32 {
  let b = bitcast<u32>(x);
  let s = b & 0x80000000u;
  let a = b & 0x7fffffffu;
  if (a >= 0x7f800000u) { return x; }
  if (a >= 0x477ff000u) { return bitcast<f32>(s | 0x7f800000u); }
  if (a >= 0x38800000u) { return bitcast<f32>(s | ((a + 0xfffu + ((a >> 13u) & 1u)) & 0xffffe000u)); }
  if (a <= 0x33000000u) { return bitcast<f32>(s); }
  let shift = 126u - (a >> 23u);
  let m = (a & 0x7fffffu) | 0x800000u;
  let q = (m + (1u << (shift - 1u)) - 1u + ((m >> shift) & 1u)) >> shift;
  let r = f32(q) * 5.9604645e-8;
  return select(r, -r, s != 0u);
}
fn round_bf16(x: f32) -> f32 {
  let b = bitcast<u32>(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) { return x; }
  return bitcast<f32>((b + 0x7fffu + ((b >> 16u) & 1u)) & 0xffff0000u);
}

// The bits of an F16 that a register holds, and back.
fn f16_bits(x: f32) -> u32 {
  let b = bitcast<u32>(round_f16(x));
  let s = (b >> 16u) & 0x8000u;
  let a = b & 0x7fffffffu;
  if (a > 0x7f800000u) { return s | 0x7e00u | ((a >> 13u) & 0x3ffu); }
  if (a == 0x7f800000u) { return s | 0x7c00u; }
  if (a >= 0x38800000u) { return s | ((a - 0x38000000u) >> 13u); }
  return s | u32(bitcast<f32>(a) * 16777216.0);  // a denormal: a multiple of 2^-24
}
fn f16_from_bits(bits: u32) -> f32 {
  let s = (bits & 0x8000u) << 16u;
  let e = (bits >> 10u) & 31u;
  let m = bits & 0x3ffu;
  if (e == 31u) { return bitcast<f32>(s | 0x7f800000u | (m << 13u)); }
  if (e == 0u) { return bitcast<f32>(s | bitcast<u32>(f32(m) * 5.9604645e-8)); }
  return bitcast<f32>(s | ((e + 112u) << 23u) | (m << 13u));
}

// Casts to integers truncate, saturate and give 0 for NaN.
fn i32_from_f32(x: f32, low: i32, high: i32) -> i32 {
  if (nan_of(x)) { return 0; }
  if (x <= f32(low)) { return low; }
  if (x >= f32(high)) { return high; }
  return i32(x);
}
fn u32_from_f32(x: f32, high: u32) -> u32 {
  if (nan_of(x) || x <= 0.0) { return 0u; }
  if (x >= f32(high)) { return high; }
  return u32(x);
}
fn i_pow(base: i32, exponent: i32) -> i32 {
  if (exponent < 0) { return select(select(0, select(-1, 1, (exponent & 1) == 0), base == -1), 1, base == 1); }
  var r = 1;
  var b = base;
  for (var e = u32(exponent); e != 0u; e = e >> 1u) {
    if ((e & 1u) == 1u) { r *= b; }
    b *= b;
  }
  return r;
}
fn u_pow(base: u32, exponent: u32) -> u32 {
  var r = 1u;
  var b = base;
  for (var e = exponent; e != 0u; e = e >> 1u) {
    if ((e & 1u) == 1u) { r *= b; }
    b *= b;
  }
  return r;
}
// A zero divisor gives 0, the smallest integer / -1 wraps: neither is defined in all compilers.
fn i_div(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return -a; }
  return a / b;
}
fn u_div(a: u32, b: u32) -> u32 { return select(a / max(b, 1u), 0u, b == 0u); }
fn i_fmod(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  return a - b * (a / b);  // Vulkan leaves % of negative integers open
}
fn u_fmod(a: u32, b: u32) -> u32 { return select(a % max(b, 1u), 0u, b == 0u); }
fn i_mod(a: i32, b: i32) -> i32 {
  let r = i_fmod(a, b);
  return select(r, r + b, r != 0 && (r < 0) != (b < 0));
}
fn i_shl(x: i32, n: i32) -> i32 { return select(x << (u32(n) & 31u), 0, n < 0 || n >= 32); }
fn u_shl(x: u32, n: u32) -> u32 { return select(x << (n & 31u), 0u, n >= 32u); }
fn i_shr(x: i32, n: i32) -> i32 { return select(x >> (u32(n) & 31u), x >> 31u, n < 0 || n >= 32); }
fn u_shr(x: u32, n: u32) -> u32 { return select(x >> (n & 31u), 0u, n >= 32u); }
