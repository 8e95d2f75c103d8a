// What a load of a reduction gives: one element.
alias V = f32;
fn fold(v: V) -> Acc { return widen(v); }
