// The words of w; words_of_quads.wgsl where it is bound as quads of them.
fn word(i: u32) -> u32 { return w[i]; }
