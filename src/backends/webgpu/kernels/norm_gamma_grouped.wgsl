// norm_gamma.wgsl for rows that are groups of channels: a load has one.
// @include "gamma_index.wgsl"
alias GF = f32;
fn gamma_of(row: Row, c: u32) -> GF {
  return GF(gamma[p.gamma_base + channel_of(row.whole, (row.begin + c) * VECTOR)]);
}
fn beta_of(row: Row, c: u32) -> GF {
  return GF(beta[p.beta_base + channel_of(row.whole, (row.begin + c) * VECTOR)]);
}
