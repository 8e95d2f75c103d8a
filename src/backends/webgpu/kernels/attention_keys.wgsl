// Keys and values: four elements of one that begins at `at`, from number d of its width on; 0 beyond the width.
alias KT = f32;                 // @type f32 | f16
alias KE = f32;                 // what they are read by: KT, or vec4<KT>

fn load_key(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<KT>(key[p.key_base + (at + d) / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<KT>(key[p.key_base + at + d + i]).x); } }
  return r;
}
fn load_value(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<KT>(value[p.value_base + (at + d) / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<KT>(value[p.value_base + at + d + i]).x); } }
  return r;
}
