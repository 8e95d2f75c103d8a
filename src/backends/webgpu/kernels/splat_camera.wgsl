// The eye of `view`: its place, target, up, field of view in degrees at 9, far at 11. The kernel has p.width, p.height.
// @include "scalar.wgsl"
struct Camera {
  eye: vec3<f32>,
  right: vec3<f32>,
  up: vec3<f32>,
  ahead: vec3<f32>,
  focal: f32,
  middle: vec2<f32>,
  far: f32,
}

fn view_at(i: u32) -> vec3<f32> {
  return vec3<f32>(view[p.view_base + i], view[p.view_base + i + 1u], view[p.view_base + i + 2u]);
}
fn unit_of(v: vec3<f32>) -> vec3<f32> {
  let length = sqrt(dot(v, v));
  if (length <= 1e-8) { return vec3<f32>(0.0, 0.0, 1.0); }
  return v / length;
}
fn camera() -> Camera {
  var c: Camera;
  c.eye = view_at(0u);
  c.ahead = unit_of(view_at(3u) - c.eye);
  c.right = unit_of(cross(view_at(6u), c.ahead));
  c.up = unit_of(cross(c.ahead, c.right));
  c.focal = 0.5 * f32(p.height) / f_tan(view[p.view_base + 9u] * 0.0087266463);
  c.middle = vec2<f32>(f32(p.width), f32(p.height)) * 0.5;
  c.far = view[p.view_base + 11u];
  return c;
}
