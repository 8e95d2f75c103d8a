// How windows of integers are folded: takes the place of fold_float.wgsl.
alias Acc = i32;           // @type i32 | u32
override BITS: u32 = 32u;  // of the dtype: results wrap

fn f_larger(a: Acc, b: Acc) -> bool { return a > b; }
fn fold(kind: u32, a: Acc, b: Acc) -> Acc {
  switch (kind) {
    case 0u: { return max(a, b); }
    case 1u: { return min(a, b); }
    case 4u: { return a * b; }
    default: { return a + b; }
  }
}
fn divided(a: Acc, count: u32) -> Acc { return a / Acc(count); }
fn wrapped(a: Acc) -> Acc { return (a << (32u - BITS)) >> (32u - BITS); }
