// Keys in use, of a binding `lengths`.
fn keys_in_use(b: u32) -> i32 {
  if (p.has_lengths != 0u) { return clamp(lengths[p.lengths_base + b], 0, i32(p.seq_k)); }
  return i32(p.seq_k);
}
