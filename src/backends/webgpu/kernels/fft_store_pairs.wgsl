// Rows of complex numbers.
fn store(row: u32, i: u32, x: vec2<f32>) { dst[p.dst_base + row * p.stored + i] = x; }
