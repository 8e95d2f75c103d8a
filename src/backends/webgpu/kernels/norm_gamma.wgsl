// gamma and beta of load c of a row: one each per element. norm_gamma_grouped.wgsl: one per channel.
fn gamma_of(row: Row, c: u32) -> F { return F(gamma[p.gamma_base + row.begin + c]); }
fn beta_of(row: Row, c: u32) -> F { return F(beta[p.beta_base + row.begin + c]); }
