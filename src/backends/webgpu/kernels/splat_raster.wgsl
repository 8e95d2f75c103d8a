// Composites a tile's splats front to back, one thread per pixel; a workgroup is a square of 16 x 16 pixels, whose
// threads read the same splats at the same time. Lists that lie are not followed out of bounds.
// @include "splat_hit.wgsl"
struct Params {
  n: u32,
  width: u32,
  height: u32,
  tile_size: u32,
  tiles_x: u32,
  limit: u32,
  max_steps: u32,     // 0: no limit
  alpha_cutoff: f32,
  threshold: f32,
  prep_base: u32,
  lists_base: u32,
  view_base: u32,
  image_base: u32,
}
@group(0) @binding(0) var<storage, read>       prep: array<f32>;
@group(0) @binding(1) var<storage, read>       lists: array<u32>;
@group(0) @binding(2) var<storage, read>       view: array<f32>;
@group(0) @binding(3) var<storage, read_write> image: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let square = group.x + group.y * groups.x;
  let across = (p.width + 15u) / 16u;
  let x = square % across * 16u + thread % 16u;
  let y = square / across * 16u + thread / 16u;
  if (x >= p.width || y >= p.height) { return; }
  let pixel = y * p.width + x;
  let range = p.lists_base + p.n + p.limit + (y / p.tile_size * p.tiles_x + x / p.tile_size) * 2u;
  let end = min(lists[range + 1u], p.limit);
  let ray = prep_at(p.n * 14u + pixel * 3u);
  var left = 1.0;
  var color = vec3<f32>(0.0);
  var steps = 0u;
  for (var e = lists[range]; e < end; e++) {
    let splat = splat_of(e);
    if (splat == p.n) { continue; }
    let alpha = hit_of(splat, ray).alpha;
    if (alpha == 0.0) { continue; }
    color += left * alpha * prep_at(splat * 4u);
    left *= 1.0 - alpha;
    steps += 1u;
    if (left < p.threshold || steps == p.max_steps) { break; }
  }
  for (var c = 0u; c < 3u; c++) {
    image[p.image_base + pixel * 4u + c] = f_pow(max(0.0, color[c] + left * view[p.view_base + 12u + c]), 2.2);
  }
  image[p.image_base + pixel * 4u + 3u] = 1.0 - left;
}
