// y[image, channel, place] = sum of x[image, channel, tap, window] over the taps of windows that lie there. One thread per
// element of y.
// @include "scalar.wgsl"
// @include "fold_float.wgsl"
alias T = f32;             // @type f32 | f16 | i32 | u32

struct Params {
  n: u32,
  size_d: u32,             // of the image
  size_h: u32,
  size_w: u32,
  out_d: u32,              // windows along the axes
  out_h: u32,
  out_w: u32,
  k_d: u32,
  k_h: u32,
  k_w: u32,
  stride_d: u32,
  stride_h: u32,
  stride_w: u32,
  dilation_d: u32,
  dilation_h: u32,
  dilation_w: u32,
  pad_d: u32,
  pad_h: u32,
  pad_w: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

// The window whose tap k lies at a place; 0xffffffff: none.
fn window_at(place: u32, k: u32, pad: u32, dilation: u32, stride: u32, windows: u32) -> u32 {
  let from_start = i32(place + pad) - i32(k * dilation);
  if (from_start < 0 || u32(from_start) % stride != 0u || u32(from_start) / stride >= windows) { return 0xffffffffu; }
  return u32(from_start) / stride;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let col = i % p.size_w;
  let row = i / p.size_w % p.size_h;
  let z = i / (p.size_w * p.size_h) % p.size_d;
  let plane = i / (p.size_w * p.size_h * p.size_d);
  var sum = Acc(0);
  for (var kz = 0u; kz < p.k_d; kz++) {
    let wz = window_at(z, kz, p.pad_d, p.dilation_d, p.stride_d, p.out_d);
    if (wz == 0xffffffffu) { continue; }
    for (var ky = 0u; ky < p.k_h; ky++) {
      let wy = window_at(row, ky, p.pad_h, p.dilation_h, p.stride_h, p.out_h);
      if (wy == 0xffffffffu) { continue; }
      for (var kx = 0u; kx < p.k_w; kx++) {
        let wx = window_at(col, kx, p.pad_w, p.dilation_w, p.stride_w, p.out_w);
        if (wx == 0xffffffffu) { continue; }
        let tap = ((plane * p.k_d + kz) * p.k_h + ky) * p.k_w + kx;
        sum += Acc(x[p.x_base + ((tap * p.out_d + wz) * p.out_h + wy) * p.out_w + wx]);
      }
    }
  }
  y[p.y_base + i] = T(wrapped(sum));
}
