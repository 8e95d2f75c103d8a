// columns[image, channel, tap, window]: x where each tap has been moved to, interpolated and scaled by its mask. A 1x1
// convolution of them is the deformed convolution. One thread per element.
alias T = f32;             // @type f32 | f16
override HAS_MASK: bool = false;

struct Params {
  n: u32,
  out_h: u32,
  out_w: u32,
  channels: u32,
  in_h: u32,
  in_w: u32,
  k_h: u32,
  k_w: u32,
  stride_h: u32,
  stride_w: u32,
  dilation_h: u32,
  dilation_w: u32,
  pad_h: u32,
  pad_w: u32,
  offset_groups: u32,
  x_base: u32,
  offset_base: u32,
  scale_base: u32,
  columns_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       offset: array<T>;    // of each tap its y, then its x
@group(0) @binding(2) var<storage, read>       scale: array<T>;     // the mask
@group(0) @binding(3) var<storage, read_write> columns: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

fn element(plane: u32, row: i32, col: i32) -> f32 {
  var v = 0.0;
  if (u32(row) < p.in_h && u32(col) < p.in_w) { v = f32(x[p.x_base + plane + u32(row) * p.in_w + u32(col)]); }
  return v;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let windows = p.out_h * p.out_w;
  let o = i % windows;
  let tap = i / windows % (p.k_h * p.k_w);
  let plane = i / windows / (p.k_h * p.k_w);   // image and channel
  let part = plane % p.channels / (p.channels / p.offset_groups);
  let moved = (plane / p.channels * p.offset_groups + part) * p.k_h * p.k_w + tap;
  let h = f32(i32(o / p.out_w * p.stride_h + tap / p.k_w * p.dilation_h) - i32(p.pad_h))
        + f32(offset[p.offset_base + 2u * moved * windows + o]);
  let w = f32(i32(o % p.out_w * p.stride_w + tap % p.k_w * p.dilation_w) - i32(p.pad_w))
        + f32(offset[p.offset_base + (2u * moved + 1u) * windows + o]);
  var v = 0.0;
  if (h > -1.0 && h < f32(p.in_h) && w > -1.0 && w < f32(p.in_w)) {
    let top = floor(h);
    let left = floor(w);
    let dh = h - top;
    let dw = w - left;
    let start = plane * p.in_h * p.in_w;
    let r = i32(top);
    let c = i32(left);
    v = (1.0 - dh) * ((1.0 - dw) * element(start, r, c) + dw * element(start, r, c + 1))
      + dh * ((1.0 - dw) * element(start, r + 1, c) + dw * element(start, r + 1, c + 1));
  }
  if (HAS_MASK) { v *= f32(scale[p.scale_base + moved * windows + o]); }
  columns[p.columns_base + i] = T(v);
}
