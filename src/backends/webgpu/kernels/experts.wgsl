// Which W a row of x belongs to; one that does not exist gives NO_EXPERT (spec 10, Q16).
const NO_EXPERT: u32 = 0xffffffffu;
@group(0) @binding(3) var<storage, read>       choice: array<i32>;
fn expert_of(token: u32) -> u32 {
  if (token >= p.m) { return NO_EXPERT; }
  let e = choice[p.choice_base + token];
  return select(u32(e), NO_EXPERT, e < 0 || u32(e) >= p.experts);
}
