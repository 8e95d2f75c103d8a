// What a load gives: one element, as f32.
alias F = f32;
const VECTOR: u32 = 1u;
fn lanes_sum(v: F) -> f32 { return v; }
fn lanes_max(v: F) -> f32 { return v; }
fn lane_of_load(v: F, i: u32) -> f32 { return v; }
// 1 where element `at` of the row is in load `c`.
fn lanes_hit(c: u32, at: u32) -> F { return select(0.0, 1.0, c == at); }
