// What is done with four sums before they are stored: nothing.
fn epilogue(v: vec4f, c: u32) -> vec4f { return v; }
