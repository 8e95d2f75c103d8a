// combine.wgsl for four neighbouring columns of floats at once: sum, mean, max, min.
alias E = vec4<f32>;         // @type vec4<f32> | vec4<f16>
alias T = vec4<f32>;         // @type vec4<f32> | vec4<f16>
alias Acc = vec4<f32>;
override OP: u32 = 0u;

fn nans_of(v: Acc) -> vec4<bool> { return (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u); }
fn identity() -> Acc { return vec4<f32>(bitcast<f32>(p.identity)); }
fn widen(v: E) -> Acc { return vec4<f32>(v); }
fn combine(a: Acc, b: Acc) -> Acc {
  if (OP < 2u) { return a + b; }
  let first = select((a < b), (a > b), OP == 2u);  // NaN comes first, too
  return select(b, a, nans_of(a) | (first & !nans_of(b)));
}
fn finish(a: Acc) -> T {
  if (OP == 1u) { return T(a / f32(p.n)); }
  return T(a);
}
