// The Params of all attention kernels, and which keys a query sees by its place. Rows are the queries of all heads that
// read one kv head: row r is query r / group of head r % group of the group.

struct Params {
  batch: u32,
  heads: u32,                   // of q
  kv_heads: u32,
  group: u32,                   // heads / kv_heads
  seq_q: u32,                   // queries and keys to compute: an active extent cuts them
  seq_k: u32,
  head_dim: u32,
  scale: f32,
  softcap: f32,                 // 0: none
  causal: u32,                  // keys behind the query's position are masked
  window: i32,                  // so are those more than this before it
  neg_inf: u32,                 // its bits
  has_lse: u32,                 // is it wanted?
  has_lengths: u32,             // are keys in use given?
  lse_seq: u32,                 // strides, in elements: of a head's queries in lse
  q_batch: u32,
  q_head: u32,
  q_seq: u32,
  y_batch: u32,                 // of the result; gradients have these for q too
  y_head: u32,
  y_seq: u32,
  k_batch: u32,                 // of a page where keys lie in pages
  k_head: u32,
  k_seq: u32,
  v_batch: u32,
  v_head: u32,
  v_seq: u32,
  pages: u32,                   // in a pool
  page_keys: u32,               // keys in a page
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
  stats_base: u32,
  first_base: u32,
  second_base: u32,
}

fn is_neg_inf(x: f32) -> bool { return bitcast<u32>(x) == 0xff800000u; }

// The position of query 0: queries are the last of the keys in use.
fn first_position(keys: i32) -> i32 { return select(max(0, keys - i32(p.seq_q)), keys - i32(p.seq_q), p.has_lengths != 0u); }

// The keys that query i sees: begin and end.
fn band_of(i: u32, keys: i32) -> vec2i {
  let position = i32(i) + first_position(keys);
  if (p.causal == 0u) { return vec2i(0, keys); }
  return vec2i(max(0, position - p.window), min(keys, position + 1));
}

// Where the row's query lies, where its result, and its number among all queries.
fn query_at(row: u32, b: u32, kv_head: u32) -> u32 {
  return b * p.q_batch + (kv_head * p.group + row % p.group) * p.q_head + (row / p.group) * p.q_seq;
}
fn result_at(row: u32, b: u32, kv_head: u32) -> u32 {
  return b * p.y_batch + (kv_head * p.group + row % p.group) * p.y_head + (row / p.group) * p.y_seq;
}
fn query_index(row: u32, b: u32, kv_head: u32) -> u32 {
  return (b * p.heads + kv_head * p.group + row % p.group) * p.lse_seq + row / p.group;
}
