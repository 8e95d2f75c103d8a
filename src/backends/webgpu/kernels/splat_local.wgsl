// World to the axes of a splat: v rotated by the inverse of q = (w, x, y, z).
fn to_local(q: vec4<f32>, v: vec3<f32>) -> vec3<f32> { return v + 2.0 * cross(cross(v, q.yzw) + q.x * v, q.yzw); }
