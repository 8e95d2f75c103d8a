// Where a ray is nearest to a splat, and how much of the splat it sees there. The kernel has prep and lists as
// gaussian_splat_prepare makes them, of p.n splats.
// @include "scalar.wgsl"
// @include "splat_local.wgsl"
struct Hit {
  alpha: f32,           // 0: no hit
  t: f32,               // along the ray
  offset: vec3<f32>,    // from the centre, in standard deviations
}

fn prep_at(i: u32) -> vec3<f32> {
  return vec3<f32>(prep[p.prep_base + i], prep[p.prep_base + i + 1u], prep[p.prep_base + i + 2u]);
}
fn rotation_of(splat: u32) -> vec4<f32> {
  let at = p.prep_base + p.n * 10u + splat * 4u;
  return vec4<f32>(prep[at], prep[at + 1u], prep[at + 2u], prep[at + 3u]);
}
fn inv_scale_of(splat: u32) -> vec3<f32> { return prep_at(p.n * 7u + splat * 3u); }
fn opacity_of(splat: u32) -> f32 { return prep[p.prep_base + splat * 4u + 3u]; }
// The splat of a list entry; p.n where the list lies or the splat is not to be seen.
fn splat_of(entry: u32) -> u32 {
  let splat = min(lists[p.lists_base + p.n + entry], p.n);
  if (splat == p.n || lists[p.lists_base + splat] == 0u) { return p.n; }
  return splat;
}

fn hit_of(splat: u32, ray: vec3<f32>) -> Hit {
  var hit: Hit;
  let opacity = opacity_of(splat);
  let support_squared = max(0.0, -2.0 * f_log(p.alpha_cutoff / opacity));
  let o = 3.0 * prep_at(p.n * 4u + splat * 3u);
  let d = 3.0 * to_local(rotation_of(splat), ray) * inv_scale_of(splat);
  if (!(dot(d, d) > 1e-10 * support_squared)) { return hit; }
  hit.t = -dot(d, o) / dot(d, d);
  if (!(hit.t > 0.0)) { return hit; }
  hit.offset = o + hit.t * d;
  // Across the ray: what rounding leaves along it would tell in the gradient of the depth.
  hit.offset -= d * (dot(d, hit.offset) / dot(d, d));
  let alpha = opacity * exp(-0.5 * dot(hit.offset, hit.offset));
  if (alpha >= p.alpha_cutoff) { hit.alpha = alpha; }
  return hit;
}
