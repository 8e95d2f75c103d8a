// fold1.wgsl for loads of four elements of a row.
alias V = vec4<f32>;
fn fold(v: V) -> Acc { return combine(combine(widen(v.x), widen(v.y)), combine(widen(v.z), widen(v.w))); }
