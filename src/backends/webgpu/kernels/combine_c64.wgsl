// combine.wgsl for complex numbers: sum, mean, prod.
alias E = vec2<f32>;
alias T = vec2<f32>;
alias Acc = vec2<f32>;
override OP: u32 = 0u;

fn identity() -> Acc { return vec2<f32>(bitcast<f32>(p.identity), 0.0); }
fn widen(v: E) -> Acc { return v; }
fn combine(a: Acc, b: Acc) -> Acc {
  if (OP == 4u) { return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
  return a + b;
}
fn finish(a: Acc) -> T {
  if (OP == 1u) { return a / f32(p.n); }
  return a;
}
