// y = where the first of the largest elements of each window lies: in x as one row, or in its plane. -1 where a window lies
// in the padding. One thread per window.
// @include "scalar.wgsl"
// @include "fold_float.wgsl"
alias T = f32;                       // @type f32 | f16 | i32 | u32
override IN_PLANE: bool = false;
override COLUMN_MAJOR: bool = false; // the first spatial axis counts fastest

struct Params {
  n: u32,                            // windows of all planes
  windows: u32,                      // of one plane
  out_h: u32,
  out_w: u32,
  in_d: u32,
  in_h: u32,
  in_w: u32,
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
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let o = i % p.windows;
  let z0 = i32(o / (p.out_h * p.out_w) * p.stride_d) - i32(p.pad_d);
  let y0 = i32(o / p.out_w % p.out_h * p.stride_h) - i32(p.pad_h);
  let x0 = i32(o % p.out_w * p.stride_w) - i32(p.pad_w);
  let plane = i / p.windows * p.in_d * p.in_h * p.in_w;
  var found = false;
  var best = Acc(0);
  var where_z = 0u;
  var where_row = 0u;
  var where_col = 0u;
  for (var kz = 0u; kz < p.k_d; kz++) {
    let z = u32(z0 + i32(kz * p.dilation_d));
    if (z >= p.in_d) { continue; }
    for (var ky = 0u; ky < p.k_h; ky++) {
      let row = u32(y0 + i32(ky * p.dilation_h));
      if (row >= p.in_h) { continue; }
      for (var kx = 0u; kx < p.k_w; kx++) {
        let col = u32(x0 + i32(kx * p.dilation_w));
        if (col >= p.in_w) { continue; }
        let v = Acc(x[p.x_base + plane + (z * p.in_h + row) * p.in_w + col]);
        if (!found || f_larger(v, best)) {
          found = true;
          best = v;
          where_z = z;
          where_row = row;
          where_col = col;
        }
      }
    }
  }
  var at = (where_z * p.in_h + where_row) * p.in_w + where_col;
  if (COLUMN_MAJOR) { at = (where_col * p.in_h + where_row) * p.in_d + where_z; }
  if (!IN_PLANE) { at += plane; }
  y[p.y_base + i] = select(-1, i32(at), found);
}
