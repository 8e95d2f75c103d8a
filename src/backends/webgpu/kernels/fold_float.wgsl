// How windows of floats are folded. Needs scalar.wgsl.
alias Acc = f32;
override BITS: u32 = 32u;

fn f_larger(a: Acc, b: Acc) -> bool { return a > b || (nan_of(a) && !nan_of(b)); }
fn fold(kind: u32, a: Acc, b: Acc) -> Acc {
  switch (kind) {
    case 0u: { return f_max(a, b); }
    case 1u: { return f_min(a, b); }
    case 4u: { return a * b; }
    default: { return a + b; }
  }
}
fn divided(a: Acc, count: u32) -> Acc { return a / f32(count); }
fn wrapped(a: Acc) -> Acc { return a; }
