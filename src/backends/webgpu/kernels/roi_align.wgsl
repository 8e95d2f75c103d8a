// y[region, channel, row, col] = mean or largest of the interpolated points of a bin (backends/host/roi_bins.h says where they
// lie). An image that does not exist, and a bin of more than 2^20 points, gives 0. One thread per bin and channel.
// @include "scalar.wgsl"
alias T = f32;             // @type f32 | f16
override LARGEST: bool = false;
override HALF_PIXEL: bool = true;

struct Params {
  n: u32,
  images: u32,
  channels: u32,
  in_h: u32,
  in_w: u32,
  bins_h: u32,
  bins_w: u32,
  ratio: u32,              // points of a bin along an axis; 0: as many as it has elements
  scale: f32,
  x_base: u32,
  rois_base: u32,
  which_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       rois: array<T>;      // x1, y1, x2, y2
@group(0) @binding(2) var<storage, read>       which: array<i32>;   // the image of each region
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

struct BinAxis {
  start: f32,
  bin: f32,
  points: i32,             // -1: too many
}
fn bin_axis(first: f32, last: f32, bins: u32) -> BinAxis {
  let shift = select(0.0, 0.5, HALF_PIXEL);
  let start = first * p.scale - shift;
  var extent = last * p.scale - shift - start;
  if (!HALF_PIXEL) { extent = max(extent, 1.0); }
  let bin = extent / f32(bins);
  let wanted = ceil(bin);
  if (!(abs(wanted) < 1048576.0)) { return BinAxis(start, bin, -1); }
  return BinAxis(start, bin, select(max(0, i32(wanted)), i32(p.ratio), p.ratio > 0u));
}
fn point_at(a: BinAxis, bin: u32, i: i32) -> f32 {
  return a.start + f32(bin) * a.bin + (f32(i) + 0.5) * a.bin / f32(a.points);
}

struct Between {
  low: u32,
  high: u32,
  part: f32,
}
fn between(at: f32, size: u32) -> Between {
  let v = max(at, 0.0);
  let low = u32(v);
  if (low >= size - 1u) { return Between(size - 1u, size - 1u, 0.0); }
  return Between(low, low + 1u, v - f32(low));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let bin_col = i % p.bins_w;
  let bin_row = i / p.bins_w % p.bins_h;
  let channel = i / (p.bins_w * p.bins_h) % p.channels;
  let region = i / (p.bins_w * p.bins_h) / p.channels;
  let roi = p.rois_base + region * 4u;
  let across = bin_axis(f32(rois[roi]), f32(rois[roi + 2u]), p.bins_w);
  let down = bin_axis(f32(rois[roi + 1u]), f32(rois[roi + 3u]), p.bins_h);
  let owner = which[p.which_base + region];
  var sum = 0.0;
  var largest = 0.0;
  var any_part = false;
  let many = f32(across.points) * f32(down.points) > 1048576.0;
  if (u32(owner) < p.images && across.points >= 0 && down.points >= 0 && !many) {
    let plane = p.x_base + (u32(owner) * p.channels + channel) * p.in_h * p.in_w;
    for (var r = 0; r < down.points; r++) {
      let v = point_at(down, bin_row, r);
      for (var c = 0; c < across.points; c++) {
        let u = point_at(across, bin_col, c);
        var places = vec4<u32>();
        var parts = vec4<f32>();
        if (v >= -1.0 && v <= f32(p.in_h) && u >= -1.0 && u <= f32(p.in_w)) {
          let rows = between(v, p.in_h);
          let cols = between(u, p.in_w);
          places = vec4<u32>(rows.low * p.in_w + cols.low, rows.low * p.in_w + cols.high,
                             rows.high * p.in_w + cols.low, rows.high * p.in_w + cols.high);
          parts = vec4<f32>((1.0 - rows.part) * (1.0 - cols.part), (1.0 - rows.part) * cols.part,
                            rows.part * (1.0 - cols.part), rows.part * cols.part);
        }
        for (var k = 0u; k < 4u; k++) {
          let part = parts[k] * f32(x[plane + places[k]]);
          sum += part;
          largest = select(part, f_max(largest, part), any_part);
          any_part = true;
        }
      }
    }
  }
  y[p.y_base + i] = T(select(sum / f32(max(1, down.points * across.points)), largest, LARGEST));
}
