// Convolution of bytes less their zero points over one to three spatial axes, summed in i32 (sums wrap); with REQUANTIZE
// as codes of the result's scale. One thread per result. Padding is x's zero point, which adds nothing.
// @include "requantize.wgsl"
alias TX = i32;                   // @type i32 | u32
alias TW = i32;                   // @type i32 | u32
override X_ZERO: u32 = 0u;        // zero points: 0 the one in Params, 1 one number
override W_ZERO: u32 = 0u;        // and 2 one per result channel
override REQUANTIZE: bool = false;

struct Params {
  total: u32,         // results
  cin: u32,
  cout: u32,
  cin_group: u32,
  cout_group: u32,
  in_d: u32,
  in_h: u32,
  in_w: u32,
  out_d: u32,
  out_h: u32,
  out_w: u32,
  kernel_d: u32,
  kernel_h: u32,
  kernel_w: u32,
  stride_d: u32,
  stride_h: u32,
  stride_w: u32,
  pad_d: u32,
  pad_h: u32,
  pad_w: u32,
  dilation_d: u32,
  dilation_h: u32,
  dilation_w: u32,
  x_point: i32,
  w_point: i32,
  out_point: i32,
  mult: u32,          // bits of the f32
  x_base: u32,
  w_base: u32,
  x_zero_base: u32,
  w_zero_base: u32,
  bias_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<TX>;
@group(0) @binding(1) var<storage, read>       w: array<TW>;
@group(0) @binding(2) var<storage, read>       x_zero: array<TX>;
@group(0) @binding(3) var<storage, read>       w_zero: array<TW>;
@group(0) @binding(4) var<storage, read>       bias: array<i32>;
@group(0) @binding(5) var<storage, read_write> y: array<i32>;
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.total) { return; }
  let ox = i % p.out_w;
  let oy = i / p.out_w % p.out_h;
  let oz = i / (p.out_w * p.out_h) % p.out_d;
  let co = i / (p.out_w * p.out_h * p.out_d) % p.cout;
  let n = i / (p.out_w * p.out_h * p.out_d) / p.cout;
  var xz = p.x_point;
  var wz = p.w_point;
  if (X_ZERO == 1u) { xz = i32(x_zero[p.x_zero_base]); }
  if (W_ZERO == 1u) { wz = i32(w_zero[p.w_zero_base]); }
  if (W_ZERO == 2u) { wz = i32(w_zero[p.w_zero_base + co]); }
  var sum = 0;
  for (var ci = 0u; ci < p.cin_group; ci++) {
    let plane = p.x_base + (n * p.cin + co / p.cout_group * p.cin_group + ci) * p.in_d * p.in_h * p.in_w;
    var tap = p.w_base + (co * p.cin_group + ci) * p.kernel_d * p.kernel_h * p.kernel_w;
    for (var kz = 0u; kz < p.kernel_d; kz++) {
      // Before the first element these wrap, and are larger than any size.
      let iz = oz * p.stride_d + kz * p.dilation_d - p.pad_d;
      for (var ky = 0u; ky < p.kernel_h; ky++) {
        let iy = oy * p.stride_h + ky * p.dilation_h - p.pad_h;
        for (var kx = 0u; kx < p.kernel_w; kx++) {
          let ix = ox * p.stride_w + kx * p.dilation_w - p.pad_w;
          if (iz < p.in_d && iy < p.in_h && ix < p.in_w) {
            sum += (i32(x[plane + (iz * p.in_h + iy) * p.in_w + ix]) - xz) * (i32(w[tap]) - wz);
          }
          tap++;
        }
      }
    }
  }
  if (REQUANTIZE) { sum = requantize(sum, bias[p.bias_base + co], p.mult, p.out_point); }
  y[p.y_base + i] = sum;
}
