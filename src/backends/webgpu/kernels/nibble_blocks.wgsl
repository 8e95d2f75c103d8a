// Nibbles of 16 bytes by the lane's elements of x: the low ones by its first 16, the high ones by the others.
// @include "nibbles.wgsl"
fn low_by_x(q: vec4u) -> f32 {
  return dot(low_nibbles(q.x), xq0) + dot(low_nibbles(q.y), xq1) + dot(low_nibbles(q.z), xq2) +
         dot(low_nibbles(q.w), xq3);
}
fn high_by_x(q: vec4u) -> f32 {
  return dot(high_nibbles(q.x), xq4) + dot(high_nibbles(q.y), xq5) + dot(high_nibbles(q.z), xq6) +
         dot(high_nibbles(q.w), xq7);
}
fn nibbles_by_x(q: vec4u) -> f32 { return low_by_x(q) + high_by_x(q); }
