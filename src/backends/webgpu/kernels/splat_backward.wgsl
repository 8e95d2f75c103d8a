// Gradients of the splats that a tile lists, one workgroup per tile: 14 numbers per entry of the list (position, log
// scale, rotation, opacity, colour), summed over the tile's pixels in a fixed order. Every pixel first composites its
// splats, then walks them back to front.
// @include "splat_hit.wgsl"
struct Params {
  n: u32,
  width: u32,
  height: u32,
  tile_size: u32,
  tiles_x: u32,
  tiles: u32,
  limit: u32,
  max_steps: u32,     // 0: no limit
  alpha_cutoff: f32,
  threshold: f32,
  clip: f32,
  prep_base: u32,
  lists_base: u32,
  view_base: u32,
  d_image_base: u32,
  positions_base: u32,
  parts_base: u32,
}
@group(0) @binding(0) var<storage, read>       prep: array<f32>;
@group(0) @binding(1) var<storage, read>       lists: array<u32>;
@group(0) @binding(2) var<storage, read>       view: array<f32>;
@group(0) @binding(3) var<storage, read>       d_image: array<f32>;
@group(0) @binding(4) var<storage, read>       positions: array<f32>;
@group(0) @binding(5) var<storage, read_write> parts: array<f32>;
@group(0) @binding(6) var<uniform>             p: Params;

// Hits behind so little do not show, and what becomes 0 cannot be divided by their factors again.
const LEAST: f32 = 1.0e-30;
var<workgroup> cells: array<f32, 3584>;   // 14 numbers of 256 pixels
var<workgroup> rows: array<f32, 224>;     // sums of 16 of them
var<workgroup> list: vec2<u32>;           // where the tile's begins and ends

fn view_at(i: u32) -> vec3<f32> {
  return vec3<f32>(view[p.view_base + i], view[p.view_base + i + 1u], view[p.view_base + i + 2u]);
}
fn put3(thread: u32, at: u32, v: vec3<f32>) {
  cells[at * 256u + thread] = v.x;
  cells[(at + 1u) * 256u + thread] = v.y;
  cells[(at + 2u) * 256u + thread] = v.z;
}

// From the gradient of a hit's alpha and colour to a pixel's 14 numbers. With o the offset in standard deviations and
// Q = |o|^2, alpha = opacity * exp(-Q / 2); t makes Q least, so Q does not change with it to first order.
fn put_hit(thread: u32, splat: u32, ray: vec3<f32>, hit: Hit, d_alpha: f32, d_color: vec3<f32>) {
  let d_q = -0.5 * hit.alpha * d_alpha;
  let inv = inv_scale_of(splat);
  let a = 6.0 * hit.offset * inv;
  let q = rotation_of(splat);
  let w = q.x;
  let u = q.yzw;
  let at = p.positions_base + splat * 3u;
  let v = view_at(0u) - vec3<f32>(positions[at], positions[at + 1u], positions[at + 2u]) + hit.t * ray;
  let by_v = a + 2.0 * (dot(a, u) * u - dot(u, u) * a) + 2.0 * w * cross(u, a);
  let by_u = 2.0 * (dot(v, u) * a + dot(a, u) * v - 2.0 * dot(a, v) * u) + 2.0 * w * cross(a, v);
  put3(thread, 0u, -d_q * by_v);
  // A scale at its lower bound does not change the image.
  put3(thread, 3u, select(vec3<f32>(0.0), -2.0 * d_q * hit.offset * hit.offset, inv < vec3<f32>(999999.0)));
  cells[6u * 256u + thread] = d_q * 2.0 * dot(u, cross(a, v));
  put3(thread, 7u, d_q * by_u);
  cells[10u * 256u + thread] = d_alpha * hit.alpha / opacity_of(splat);
  put3(thread, 11u, d_color);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let tile = group.x + group.y * groups.x;
  if (tile >= p.tiles) { return; }
  let corner = vec2<u32>(tile % p.tiles_x, tile / p.tiles_x) * p.tile_size;
  let size = min(vec2<u32>(p.tile_size), vec2<u32>(p.width, p.height) - corner);
  let range = p.lists_base + p.n + p.limit + tile * 2u;
  if (thread == 0u) { list = vec2<u32>(lists[range], min(lists[range + 1u], p.limit)); }
  let entries = workgroupUniformLoad(&list);  // the same for all threads also where the buffer is written
  let begin = entries.x;
  let end = entries.y;
  let background = view_at(12u);
  for (var first = 0u; first < size.x * size.y; first += 256u) {
    let own = first + thread;
    let inside = own < size.x * size.y;
    let pixel = (corner.y + own / size.x) * p.width + corner.x + own % size.x;
    var ray = vec3<f32>(0.0);
    // What is left behind the hits: the product of factors that are not 0, and how many are.
    var left = 1.0;
    var zeros = 0u;
    var linear = vec3<f32>(0.0);
    var stop = begin;
    if (inside) {
      ray = prep_at(p.n * 14u + pixel * 3u);
      var steps = 0u;
      for (var e = begin; e < end; e++) {
        stop = e + 1u;
        let splat = splat_of(e);
        if (splat == p.n) { continue; }
        let alpha = hit_of(splat, ray).alpha;
        if (alpha == 0.0) { continue; }
        if (zeros == 0u) { linear += left * alpha * prep_at(splat * 4u); }
        if (alpha == 1.0) { zeros += 1u; } else { left *= 1.0 - alpha; }
        steps += 1u;
        if (select(left, 0.0, zeros > 0u) < p.threshold || steps == p.max_steps) { break; }
        if (left < LEAST) { break; }
      }
    }
    linear += select(left, 0.0, zeros > 0u) * background;
    var g = vec3<f32>(0.0);
    if (inside) {
      for (var c = 0u; c < 3u; c++) {
        let d = clamp(d_image[p.d_image_base + pixel * 4u + c], -p.clip, p.clip);
        if (linear[c] > 0.0) { g[c] = d * 2.2 * pow(linear[c], 1.2); }
      }
    }
    var d_left = dot(g, background);   // the gradient of what is left behind the hit
    for (var back = begin; back < end; back++) {
      let e = end - 1u - (back - begin);
      for (var c = 0u; c < 14u; c++) { cells[c * 256u + thread] = 0.0; }
      if (inside && e < stop) {
        let splat = splat_of(e);
        if (splat != p.n) {
          let hit = hit_of(splat, ray);
          if (hit.alpha > 0.0) {
            if (hit.alpha == 1.0) { zeros -= 1u; } else { left /= 1.0 - hit.alpha; }
            let before = select(left, 0.0, zeros > 0u);
            let seen = dot(g, prep_at(splat * 4u));
            put_hit(thread, splat, ray, hit, before * (seen - d_left), before * hit.alpha * g);
            d_left = hit.alpha * seen + (1.0 - hit.alpha) * d_left;
          }
        }
      }
      workgroupBarrier();
      if (thread < 224u) {
        var sum = 0.0;
        for (var k = 0u; k < 16u; k++) { sum += cells[thread * 16u + k]; }
        rows[thread] = sum;
      }
      workgroupBarrier();
      if (thread < 14u) {
        var sum = 0.0;
        for (var k = 0u; k < 16u; k++) { sum += rows[thread * 16u + k]; }
        let at = p.parts_base + e * 14u + thread;
        if (first > 0u) { sum += parts[at]; }
        parts[at] = sum;
      }
    }
  }
}
