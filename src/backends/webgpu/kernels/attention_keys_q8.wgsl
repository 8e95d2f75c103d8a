// As attention_keys.wgsl, for rows of q8_0: four quants to a word, then the scales of blocks of 32, two to a word.
alias KE = u32;

fn q8_of(quants: u32, scales: u32, d: u32) -> vec4f {
  let q = bitcast<i32>(quants);
  let scale = select(unpack2x16float(scales).x, unpack2x16float(scales).y, d % 64u >= 32u);
  return scale * vec4f(f32(extractBits(q, 0u, 8u)), f32(extractBits(q, 8u, 8u)), f32(extractBits(q, 16u, 8u)),
                       f32(extractBits(q, 24u, 8u)));
}
fn load_key(at: u32, d: u32) -> vec4f {
  let row = p.key_base + at;
  return q8_of(key[row + d / 4u], key[row + p.head_dim / 4u + d / 64u], d);
}
fn load_value(at: u32, d: u32) -> vec4f {
  let row = p.value_base + at;
  return q8_of(value[row + d / 4u], value[row + p.head_dim / 4u + d / 64u], d);
}
