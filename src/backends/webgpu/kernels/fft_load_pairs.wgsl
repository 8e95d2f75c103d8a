// Rows of complex numbers.
fn load(row: u32, i: u32) -> vec2<f32> { return src[p.src_base + row * p.loaded + i]; }
