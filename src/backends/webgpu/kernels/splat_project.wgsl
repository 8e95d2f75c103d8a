// The local frame and the outline of every splat, one thread each. The outline of an ellipsoid is an ellipse whose dual
// conic is K (Sigma - c c^T) K^T; the terms of fourth order in c cancel, so they are not computed.
// @include "splat_camera.wgsl"
// @include "splat_local.wgsl"
struct Params {
  n: u32,
  width: u32,
  height: u32,
  tile_size: u32,
  radius_scale: f32,
  alpha_cutoff: f32,
  positions_base: u32,
  scales_base: u32,
  rotations_base: u32,
  opacities_base: u32,
  view_base: u32,
  prep_base: u32,
  lists_base: u32,
  outlines_base: u32,
}
@group(0) @binding(0) var<storage, read>       positions: array<f32>;
@group(0) @binding(1) var<storage, read>       scales: array<f32>;
@group(0) @binding(2) var<storage, read>       rotations: array<f32>;
@group(0) @binding(3) var<storage, read>       opacities: array<f32>;
@group(0) @binding(4) var<storage, read>       view: array<f32>;
@group(0) @binding(5) var<storage, read_write> prep: array<f32>;
@group(0) @binding(6) var<storage, read_write> lists: array<u32>;
// Per splat (x, y, half width, half height), (a, b, c, depth), (seen, listed, radius, 0).
@group(0) @binding(7) var<storage, read_write> outlines: array<vec4<f32>>;
@group(0) @binding(8) var<uniform>             p: Params;

struct Outline {
  place: vec4<f32>,
  conic: vec4<f32>,
  radius: f32,
  seen: bool,
  listed: bool,
}

fn sphere_in_view(c: Camera, center: vec3<f32>, radius: f32) -> bool {
  if (!(center.z + radius > 1e-4) || !(center.z - radius < c.far)) { return false; }
  let sides = vec2<f32>(length(vec2<f32>(c.focal, c.middle.x)), length(vec2<f32>(c.focal, c.middle.y)));
  let low = c.focal * center.xy + c.middle * center.z;
  let high = -c.focal * center.xy + c.middle * center.z;
  return all(low >= -radius * sides) && all(high >= -radius * sides);
}

fn outline_of(c: Camera, offset: vec3<f32>, q: vec4<f32>, size: vec3<f32>, opacity: f32) -> Outline {
  var out: Outline;
  if (!(opacity >= p.alpha_cutoff)) { return out; }
  let support = sqrt(max(0.0, -2.0 * f_log(p.alpha_cutoff / opacity)));
  let center = vec3<f32>(dot(c.right, offset), dot(c.up, offset), dot(c.ahead, offset));
  let column0 = to_local(q, vec3<f32>(1.0, 0.0, 0.0));
  let column1 = to_local(q, vec3<f32>(0.0, 1.0, 0.0));
  let column2 = to_local(q, vec3<f32>(0.0, 0.0, 1.0));
  let r = max(size * support, vec3<f32>(1e-6));
  var axes: array<vec3<f32>, 3>;
  for (var k = 0u; k < 3u; k++) {
    let axis = vec3<f32>(column0[k], column1[k], column2[k]);
    axes[k] = r[k] * vec3<f32>(dot(c.right, axis), dot(c.up, axis), dot(c.ahead, axis));
  }
  if (!sphere_in_view(c, center, max(r.x, max(r.y, r.z)))) { return out; }

  let screen = vec2<f32>(f32(p.width), f32(p.height));
  let depth_of_axes = vec3<f32>(axes[0].z, axes[1].z, axes[2].z);
  let m = center.z * center.z - dot(depth_of_axes, depth_of_axes);
  let depth = sqrt(dot(offset, offset));
  if (m > 0.0 && center.z > 0.0) {
    var shift = vec2<f32>(0.0);   // Sigma's last column
    var e = vec3<f32>(0.0);       // xx, yy, xy
    for (var k = 0u; k < 3u; k++) {
      shift += axes[k].xy * axes[k].z;
      let v = axes[k].xy * center.z - axes[k].z * center.xy;
      e += vec3<f32>(v * v, v.x * v.y);
      let next = axes[(k + 1u) % 3u];
      let w = axes[k].xy * next.z - next.xy * axes[k].z;
      e -= vec3<f32>(w * w, w.x * w.y);
    }
    let place = c.middle + c.focal * (center.xy * center.z - shift) / m;
    e *= c.focal * c.focal / (m * m);
    let det = e.x * e.y - e.z * e.z;
    let spread = length(vec2<f32>((e.x - e.y) * 0.5, e.z));
    let long = (e.x + e.y) * 0.5 + spread;  // squared
    let half = sqrt(e.xy);
    if (any(place + half < vec2<f32>(0.0)) || any(place - half > screen)) { return out; }
    out.place = vec4<f32>(place, half);
    out.conic = vec4<f32>(e.y / det, -e.z / det, e.x / det, depth);
    out.radius = max(sqrt(long) + 1.0, 1.0);
    // Too thin, or without an area for its size: seen by no tile.
    out.listed = det > 1e-12 * e.x * e.y && det / long >= 0.015625 && out.conic.x > 1e-10 && out.conic.z > 1e-10 &&
                 !inf_of(out.conic.x) && !inf_of(out.conic.z) && !nan_of(out.conic.y);
  } else {  // the eye is inside, or the outline reaches behind it: the whole screen
    let whole = max(screen.x, screen.y);
    out.place = vec4<f32>(screen * 0.5, whole, whole);
    out.conic = vec4<f32>(1.0 / (whole * whole), 0.0, 1.0 / (whole * whole), depth);
    out.radius = max(whole + 1.0, 1.0);
    out.listed = whole >= 0.125;
  }
  let beyond = out.place.xy - clamp(out.place.xy, vec2<f32>(0.0), screen);
  out.seen = center.z > 1e-4 && !nan_of(depth) && !inf_of(depth) && dot(beyond, beyond) <= out.radius * out.radius;
  return out;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let c = camera();
  var offset: vec3<f32>;
  var size: vec3<f32>;
  var q: vec4<f32>;
  for (var k = 0u; k < 3u; k++) {
    offset[k] = positions[p.positions_base + i * 3u + k] - c.eye[k];
    size[k] = exp(scales[p.scales_base + i * 3u + k]) * p.radius_scale;
  }
  for (var k = 0u; k < 4u; k++) {
    q[k] = rotations[p.rotations_base + i * 4u + k];
    prep[p.prep_base + p.n * 10u + i * 4u + k] = q[k];
  }
  let inv_scale = 1.0 / max(size * 3.0, vec3<f32>(1e-6));
  let local = to_local(q, -offset) * inv_scale;
  for (var k = 0u; k < 3u; k++) {
    prep[p.prep_base + p.n * 4u + i * 3u + k] = local[k];
    prep[p.prep_base + p.n * 7u + i * 3u + k] = inv_scale[k];
  }
  let o = outline_of(c, offset, q, size, clamp(opacities[p.opacities_base + i], 0.0, 1.0));
  lists[p.lists_base + i] = select(0u, 1u, o.seen);
  let at = p.outlines_base + i * 3u;
  outlines[at] = o.place;
  outlines[at + 1u] = o.conic;
  outlines[at + 2u] = vec4<f32>(select(0.0, 1.0, o.seen), select(0.0, 1.0, o.seen && o.listed), o.radius, 0.0);
}
