// Elements that grid_sample.wgsl adds up.
alias Total = f32;
fn add_to(total: Total, v: T, part: f32) -> Total { return total + f32(v) * part; }
