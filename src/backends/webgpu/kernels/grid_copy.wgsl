// The one element that grid_sample.wgsl takes, of any type: in the place of grid_sum.wgsl.
alias Total = T;
fn add_to(total: Total, v: T, part: f32) -> Total { return v; }
