// gamma and beta of load c of a row: one each per element. norm_gamma_grouped.wgsl: one per channel.
alias GF = F;
fn gamma_of(row: Row, c: u32) -> GF { return GF(gamma[p.gamma_base + row.begin + c]); }
fn beta_of(row: Row, c: u32) -> GF { return GF(beta[p.beta_base + row.begin + c]); }
