// y = fold of x over each window; padding is the fold's identity. One thread per window, or LANES of a workgroup. A thread folds
// parts of a window by themselves: long sums stay near their size.
// @include "scalar.wgsl"
// @include "fold_float.wgsl"
alias T = f32;               // @type f32 | f16 | i32 | u32
override KIND: u32 = 0u;     // 0 max, 1 min, 2 sum, 3 mean, 4 product
override LANES: u32 = 1u;    // threads that share a window: 1 or 64
override PADDED: bool = true;  // a mean counts the padding

struct Params {
  n: u32,                    // windows of all planes
  windows: u32,              // of one plane
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
  end_d: u32,                // padding behind the last element
  end_h: u32,
  end_w: u32,
  identity: u32,             // its bits
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> cells: array<Acc, 64>;

// Taps along an axis before the padded input ends: fewer than all where ceil mode lets a window hang over.
fn padded_taps(at: i32, size: u32, end: u32, taps: u32, dilation: u32) -> u32 {
  let room = i32(size + end) - at;
  if (room <= 0) { return 0u; }
  return min(taps, (u32(room) + dilation - 1u) / dilation);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let block = group.x + group.y * groups.x;
  let i = select(block, block * 64u + lane, LANES == 1u);
  let o = i % p.windows;
  let z0 = i32(o / (p.out_h * p.out_w) * p.stride_d) - i32(p.pad_d);
  let y0 = i32(o / p.out_w % p.out_h * p.stride_h) - i32(p.pad_h);
  let x0 = i32(o % p.out_w * p.stride_w) - i32(p.pad_w);
  let plane = p.x_base + i / p.windows * p.in_d * p.in_h * p.in_w;
  var value = bitcast<Acc>(p.identity);
  if (i < p.n) {
    if (LANES == 1u) {
      for (var kz = 0u; kz < p.k_d; kz++) {
        let z = u32(z0 + i32(kz * p.dilation_d));
        if (z >= p.in_d) { continue; }
        for (var ky = 0u; ky < p.k_h; ky++) {
          let row = u32(y0 + i32(ky * p.dilation_h));
          if (row >= p.in_h) { continue; }
          let start = plane + (z * p.in_h + row) * p.in_w;
          var part = bitcast<Acc>(p.identity);
          for (var kx = 0u; kx < p.k_w; kx++) {
            let col = u32(x0 + i32(kx * p.dilation_w));
            if (col < p.in_w) { part = fold(KIND, part, Acc(x[start + col])); }
          }
          value = fold(KIND, value, part);
        }
      }
    } else {
      var part = bitcast<Acc>(p.identity);
      for (var t = lane; t < p.k_d * p.k_h * p.k_w; t += 64u) {
        let z = u32(z0 + i32(t / (p.k_h * p.k_w) * p.dilation_d));
        let row = u32(y0 + i32(t / p.k_w % p.k_h * p.dilation_h));
        let col = u32(x0 + i32(t % p.k_w * p.dilation_w));
        if (z < p.in_d && row < p.in_h && col < p.in_w) {
          part = fold(KIND, part, Acc(x[plane + (z * p.in_h + row) * p.in_w + col]));
        }
        if (t / 64u % 64u == 63u) {
          value = fold(KIND, value, part);
          part = bitcast<Acc>(p.identity);
        }
      }
      value = fold(KIND, value, part);
    }
  }
  if (LANES > 1u) {
    cells[lane] = value;
    for (var half = 32u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      if (lane < half) { cells[lane] = fold(KIND, cells[lane], cells[lane + half]); }
    }
    workgroupBarrier();
    value = cells[0];
    if (lane != 0u) { return; }
  }
  if (i >= p.n) { return; }
  if (KIND == 3u) {
    var count = padded_taps(z0, p.in_d, p.end_d, p.k_d, p.dilation_d) * padded_taps(y0, p.in_h, p.end_h, p.k_h, p.dilation_h)
              * padded_taps(x0, p.in_w, p.end_w, p.k_w, p.dilation_w);
    if (!PADDED) {
      // Those before the input's end, less those before its beginning.
      var inside = vec3u(padded_taps(z0, p.in_d, 0u, p.k_d, p.dilation_d), padded_taps(y0, p.in_h, 0u, p.k_h, p.dilation_h),
                         padded_taps(x0, p.in_w, 0u, p.k_w, p.dilation_w));
      let before = vec3u((u32(max(-z0, 0)) + p.dilation_d - 1u) / p.dilation_d, (u32(max(-y0, 0)) + p.dilation_h - 1u) / p.dilation_h,
                         (u32(max(-x0, 0)) + p.dilation_w - 1u) / p.dilation_w);
      inside -= min(inside, before);
      count = inside.x * inside.y * inside.z;
    }
    value = divided(value, count);
  }
  y[p.y_base + i] = T(wrapped(value));
}
