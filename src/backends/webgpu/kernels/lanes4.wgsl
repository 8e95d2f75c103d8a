// lanes1.wgsl for loads of four elements.
alias F = vec4<f32>;
const VECTOR: u32 = 4u;
fn lanes_sum(v: F) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn lanes_max(v: F) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn lane_of_load(v: F, i: u32) -> f32 { return v[i]; }
fn lanes_hit(c: u32, at: u32) -> F {
  return select(vec4<f32>(0.0), vec4<f32>(1.0), vec4<u32>(c * 4u) + vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(at));
}
