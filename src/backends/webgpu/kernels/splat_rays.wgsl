// What gaussian_splat_prepare tells of the image: the ray of every pixel, then ten settings.
// @include "splat_camera.wgsl"
struct Params {
  pixels: u32,
  width: u32,
  height: u32,
  rays: u32,       // where they start in prep
  tile_size: u32,
  tiles_x: u32,
  alpha_cutoff: f32,
  threshold: f32,
  max_steps: f32,
  view_base: u32,
  prep_base: u32,
}
@group(0) @binding(0) var<storage, read>       view: array<f32>;
@group(0) @binding(1) var<storage, read_write> prep: array<f32>;
@group(0) @binding(2) var<uniform>             p: Params;

fn put(i: u32, v: f32) { prep[p.prep_base + p.rays + i] = v; }

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.pixels) { return; }
  let c = camera();
  let at = (vec2<f32>(f32(i % p.width), f32(i / p.width)) + 0.5 - c.middle) / c.focal;
  let ray = unit_of(at.x * c.right + at.y * c.up + c.ahead);
  put(i * 3u, ray.x);
  put(i * 3u + 1u, ray.y);
  put(i * 3u + 2u, ray.z);
  if (i == 0u) {
    let end = p.pixels * 3u;
    put(end, f32(p.width));
    put(end + 1u, f32(p.height));
    put(end + 2u, f32(p.tile_size));
    put(end + 3u, f32(p.tiles_x));
    put(end + 4u, p.alpha_cutoff);
    put(end + 5u, p.threshold);
    put(end + 6u, view[p.view_base + 12u]);
    put(end + 7u, view[p.view_base + 13u]);
    put(end + 8u, view[p.view_base + 14u]);
    put(end + 9u, p.max_steps);
  }
}
