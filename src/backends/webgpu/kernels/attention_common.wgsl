// How attention's kernels read the bindings query, key, value and mask, and the score of a pair.
// @include "scalar.wgsl"
// @include "attention_params.wgsl"
// @include "attention_keys.wgsl"
// @include "attention_places.wgsl"
alias T = f32;                  // @type f32 | f16: of q and its gradient
alias E = f32;                  // what q is read by: T, or vec4<T> where everything is a multiple of 4
alias M = f32;                  // of the mask
override VEC: bool = false;     // E and KE are vectors
override MASK: u32 = 0u;        // 0: no operand, 1: a key is seen where it is >= 0.5, 2: it is added to the scores

fn any_odd(x: vec4f) -> bool { return any((bitcast<vec4u>(x) & vec4u(0x7f800000u)) == vec4u(0x7f800000u)); }
// Four elements of a row that begins at `at`, from number d of its width on; 0 beyond the width.
fn load_query(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(query[p.query_base + (at + d) / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(query[p.query_base + at + d + i]).x); } }
  return r;
}

// What a query is, to its scores.
struct Row {
  band: vec2i,      // the keys it sees by its place
  mask_at: u32,
}
fn row_of(row: u32, b: u32, kv_head: u32, keys: i32) -> Row {
  let i = row / p.group;
  let h = kv_head * p.group + row % p.group;
  return Row(select(vec2i(0), band_of(i, keys), i < p.seq_q),
             p.mask_base + b * p.mask_batch + h * p.mask_head + i * p.mask_seq);
}
// q . k becomes the score: -inf where the key is masked.
fn score_of(product: f32, row: Row, j: i32) -> f32 {
  var s = product * p.scale;
  if (p.softcap > 0.0) { s = p.softcap * f_tanh(s / p.softcap); }
  var seen = j >= row.band.x && j < row.band.y;
  if (MASK != 0u && seen) {
    let m = f32(mask[row.mask_at + u32(j) * p.mask_key]);
    if (MASK == 1u) {
      seen = m >= 0.5 && !nan_of(m);
    } else {
      s += m;
    }
  }
  return select(bitcast<f32>(p.neg_inf), s, seen);
}
// exp(score - base); never 0 for a key that is seen, though its weight may be less than any number: 0 is a masked key's, whose
// value is not read. (The bits of what is not negative grow with it, NaN last.)
fn weight_of(score: f32, base: f32) -> f32 {
  return select(bitcast<f32>(max(bitcast<u32>(f_exp(score - base)), 0x00800000u)), 0.0, is_neg_inf(score));
}
// The derivative of the score with respect to q . k.
fn slope_of(product: f32) -> f32 {
  if (p.softcap > 0.0) {
    let t = f_tanh(product * p.scale / p.softcap);
    return p.scale * (1.0 - t * t);
  }
  return p.scale;
}
