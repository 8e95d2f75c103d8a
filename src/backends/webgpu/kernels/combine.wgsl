// What a reduction or a scan does with two values, of floats in f32. combine_int.wgsl, combine_c64.wgsl and
// combine_wide.wgsl are the same for other elements. The kernel's Params have identity (bits) and n.
alias E = f32;               // @type f32 | f16: what is read
alias T = f32;               // @type f32 | f16: what is written
alias Acc = f32;
override OP: u32 = 0u;       // as ReduceKind: sum, mean, max, min, prod

fn identity() -> Acc { return bitcast<f32>(p.identity); }
fn widen(v: E) -> Acc { return f32(v); }
fn combine(a: Acc, b: Acc) -> Acc {
  if (OP == 2u) { return f_max(a, b); }
  if (OP == 3u) { return f_min(a, b); }
  if (OP == 4u) { return a * b; }
  return a + b;
}
fn finish(a: Acc) -> T {
  if (OP == 1u) { return T(a / f32(p.n)); }
  return T(a);
}
