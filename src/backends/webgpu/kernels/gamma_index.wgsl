// Which gamma an element of a row has, where rows are groups of channels: per_gamma consecutive elements share one. The quotient
// is taken of floats, which are fast, and is one off at most where a row has few gammas.
fn channel_of(row: u32, element: u32) -> u32 {
  var q = u32(f32(element) * (1.0 / f32(p.per_gamma)));
  if (q * p.per_gamma > element) { q -= 1u; }
  if ((q + 1u) * p.per_gamma <= element) { q += 1u; }
  if (p.group_channels >= 1048576u) { q = element / p.per_gamma; }
  return row % p.groups * p.group_channels + q;
}
