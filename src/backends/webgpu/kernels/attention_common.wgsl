// What the attention kernels share: their Params, which keys a query sees, and the score of a pair. Rows are the
// queries of all heads that read one kv head: row r is query r / group of head r % group of the group.
// Bindings named query, key, value, mask and lengths are the kernel's.
// @include "scalar.wgsl"
alias T = f32;                  // @type f32 | f16: of q, k, v and their gradients
alias E = f32;                  // what q, k, v are read by: T, or vec4<T> where everything is a multiple of 4
override VEC: bool = false;     // E is a vector
override MASK: u32 = 0u;        // 0 none, 1 causal, 2 custom, 3 sliding window, 4 bias
override LENGTHS: bool = false; // are keys in use given?
override SOFTCAP: bool = false;

struct Params {
  batch: u32,
  heads: u32,                   // of q
  kv_heads: u32,
  group: u32,                   // heads / kv_heads
  seq_q: u32,
  seq_k: u32,
  head_dim: u32,
  scale: f32,
  softcap: f32,
  window: i32,
  neg_inf: u32,                 // its bits
  has_lse: u32,                 // is it wanted?
  q_batch: u32,                 // strides, in elements; q's hold for y and its gradient
  q_head: u32,
  q_seq: u32,
  kv_batch: u32,
  kv_head: u32,
  kv_seq: u32,
  mask_batch: u32,              // 0 where the mask is broadcast
  mask_head: u32,
  mask_seq: u32,
  mask_key: u32,
  groups: u32,                  // workgroups
  slices: u32,                  // of a head's width that a workgroup computes
  splits: u32,                  // parts of the keys
  chunk: u32,                   // keys in a part
  query_base: u32,
  key_base: u32,
  value_base: u32,
  mask_base: u32,
  lengths_base: u32,
  result_base: u32,
  lse_base: u32,
  dy_base: u32,
  delta_base: u32,
  dq_base: u32,
  dk_base: u32,
  dv_base: u32,
}

fn is_neg_inf(x: f32) -> bool { return bitcast<u32>(x) == 0xff800000u; }
fn any_odd(x: vec4f) -> bool { return any((bitcast<vec4u>(x) & vec4u(0x7f800000u)) == vec4u(0x7f800000u)); }
// Four elements from `at` on; those of `width` and beyond are 0. `d`: where in the width the first one is.
fn load_query(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(query[p.query_base + at / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(query[p.query_base + at + i]).x); } }
  return r;
}
fn load_key(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(key[p.key_base + at / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(key[p.key_base + at + i]).x); } }
  return r;
}
fn load_value(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(value[p.value_base + at / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(value[p.value_base + at + i]).x); } }
  return r;
}

fn keys_in_use(b: u32) -> i32 {
  if (LENGTHS) { return clamp(i32(lengths[p.lengths_base + b]), 0, i32(p.seq_k)); }
  return i32(p.seq_k);
}
// The position of query 0: queries are the last of the keys in use.
fn first_position(keys: i32) -> i32 {
  if (LENGTHS) { return keys - i32(p.seq_q); }
  return max(0, keys - i32(p.seq_q));
}

// What a query is, to its scores.
struct Row {
  limit: i32,     // keys from here on are not seen
  position: i32,
  mask_at: u32,
}
fn row_of(row: u32, b: u32, kv_head: u32, keys: i32) -> Row {
  let i = row / p.group;
  let h = kv_head * p.group + row % p.group;
  return Row(select(0, keys, i < p.seq_q), i32(i) + first_position(keys),
             p.mask_base + b * p.mask_batch + h * p.mask_head + i * p.mask_seq);
}
fn query_at(row: u32, b: u32, kv_head: u32) -> u32 {
  return b * p.q_batch + (kv_head * p.group + row % p.group) * p.q_head + (row / p.group) * p.q_seq;
}

fn sees(row: Row, j: i32) -> bool {
  var seen = j < row.limit;
  if (MASK == 1u || MASK == 3u) { seen = seen && j <= row.position; }
  if (MASK == 3u) { seen = seen && row.position - j <= p.window; }
  if (MASK == 2u && seen) {
    let m = f32(mask[row.mask_at + u32(j) * p.mask_key]);
    seen = m >= 0.5 && !nan_of(m);
  }
  return seen;
}
// q . k becomes the score: -inf where the key is masked.
fn score_of(product: f32, row: Row, j: i32) -> f32 {
  var s = product * p.scale;
  if (SOFTCAP) { s = p.softcap * f_tanh(s / p.softcap); }
  let seen = sees(row, j);
  if (MASK == 4u && seen) { s += f32(mask[row.mask_at + u32(j) * p.mask_key]); }
  return select(bitcast<f32>(p.neg_inf), s, seen);
}
// The derivative of the score with respect to q . k.
fn slope_of(product: f32) -> f32 {
  if (SOFTCAP) {
    let t = f_tanh(product * p.scale / p.softcap);
    return p.scale * (1.0 - t * t);
  }
  return p.scale;
}

// The keys that rows first … last may see: begin and end.
fn key_range(first: u32, last: u32, keys: i32) -> vec2i {
  var begin = 0;
  var end = keys;
  if (MASK == 1u || MASK == 3u) { end = min(end, i32(last / p.group) + first_position(keys) + 1); }
  if (MASK == 3u) { begin = max(0, i32(first / p.group) + first_position(keys) - p.window); }
  return vec2i(begin, end);
}
