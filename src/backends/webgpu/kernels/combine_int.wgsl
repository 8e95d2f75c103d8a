// combine.wgsl for integers, which wrap.
alias E = i32;               // @type i32 | u32
alias T = i32;
alias Acc = i32;
override OP: u32 = 0u;       // not mean: combine_wide.wgsl
override UNUSED_BITS: u32 = 0u;  // of the word, above an integer of 8 or 16

fn identity() -> Acc { return bitcast<Acc>(p.identity); }
fn widen(v: E) -> Acc { return v; }
fn combine(a: Acc, b: Acc) -> Acc {
  if (OP == 2u) { return max(a, b); }
  if (OP == 3u) { return min(a, b); }
  if (OP == 4u) { return a * b; }
  return a + b;
}
fn finish(a: Acc) -> T { return (a << UNUSED_BITS) >> UNUSED_BITS; }
