// As words.wgsl, of w: array<vec4<u32>>.
fn word(i: u32) -> u32 { return w[i >> 2u][i & 3u]; }
