// norm_gamma.wgsl for rows that are groups of channels: per_gamma consecutive elements share one.
fn channel_of(row: Row, c: u32) -> u32 {
  return row.whole % p.groups * p.group_channels + (row.begin + c) * VECTOR / p.per_gamma;
}
fn gamma_of(row: Row, c: u32) -> F { return F(f32(gamma[p.gamma_base + channel_of(row, c)])); }
fn beta_of(row: Row, c: u32) -> F { return F(f32(beta[p.beta_base + channel_of(row, c)])); }
