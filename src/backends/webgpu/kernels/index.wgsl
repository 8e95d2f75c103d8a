// Indices that come as data: negative ones count from the end, once (spec 10, Q16).

// Out of range: the nearest one that is there. size > 0.
fn index_of(raw: i32, size: u32) -> u32 {
  let at = select(raw, raw + i32(size), raw < 0);
  return u32(clamp(at, 0, i32(size) - 1));
}

const NOWHERE: u32 = 0xffffffffu;
// Out of range: NOWHERE.
fn index_or_nowhere(raw: i32, size: u32) -> u32 {
  let at = select(raw, raw + i32(size), raw < 0);
  return select(NOWHERE, u32(at), at >= 0 && at < i32(size));
}
