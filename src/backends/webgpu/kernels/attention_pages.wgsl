// As attention_places.wgsl, for keys in pages. The table of pages is bound in the mask's place.
fn page_of(b: u32, j: u32) -> u32 {
  return min(u32(mask[p.mask_base + b * p.mask_batch + j / p.page_keys]), p.pages - 1u);
}
fn key_at(b: u32, kv_head: u32, j: u32) -> u32 {
  return page_of(b, j) * p.k_batch + kv_head * p.k_head + j % p.page_keys * p.k_seq;
}
fn value_at(b: u32, kv_head: u32, j: u32) -> u32 {
  return page_of(b, j) * p.v_batch + kv_head * p.v_head + j % p.page_keys * p.v_seq;
}
