// result = act(sum over taps of weight * image + bias + residual) where every output channel reads one input channel, in
// one or two dimensions. One thread per PER neighbours along a row of the result: the elements they share stay in registers.
// @include "scalar.wgsl"
// @include "activation.wgsl"
alias T = f32;             // @type f32 | f16
override PER: u32 = 4u;
override KH: u32 = 3u;
override KW: u32 = 3u;
override STRIDE_W: u32 = 1u;
override DILATION_W: u32 = 1u;
override HAS_BIAS: bool = false;
override HAS_RESIDUAL: bool = false;

struct Params {
  n: u32,                  // strips of PER results
  strips: u32,             // of a row
  out_h: u32,
  out_w: u32,
  in_h: u32,
  in_w: u32,
  cout: u32,
  multiplier: u32,         // output channels that read one input channel
  stride_h: u32,
  dilation_h: u32,
  pad_h: u32,
  pad_w: u32,
  image_base: u32,
  weight_base: u32,
  bias_base: u32,
  residual_base: u32,
  result_base: u32,
}
@group(0) @binding(0) var<storage, read>       image: array<T>;
@group(0) @binding(1) var<storage, read>       weight: array<T>;
@group(0) @binding(2) var<storage, read>       bias: array<T>;
@group(0) @binding(3) var<storage, read>       residual: array<T>;
@group(0) @binding(4) var<storage, read_write> result: array<T>;
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 128u;
  if (i >= p.n) { return; }
  const RUN = (PER - 1u) * STRIDE_W + (KW - 1u) * DILATION_W + 1u;   // elements of a row that the PER windows touch
  let out_x = i % p.strips * PER;
  let out_y = i / p.strips % p.out_h;
  let plane = i / p.strips / p.out_h;
  let channel = plane % p.cout;
  let start = p.image_base + plane / p.multiplier * p.in_h * p.in_w;   // cout is cin * multiplier
  let col = i32(out_x * STRIDE_W) - i32(p.pad_w);
  var sums: array<f32, PER>;
  for (var ky = 0u; ky < KH; ky++) {
    let row = i32(out_y * p.stride_h + ky * p.dilation_h) - i32(p.pad_h);
    if (u32(row) >= p.in_h) { continue; }
    var cells: array<f32, RUN>;
    for (var r = 0u; r < RUN; r++) {
      let at = col + i32(r);
      var v = 0.0;
      if (u32(at) < p.in_w) { v = f32(image[start + u32(row) * p.in_w + u32(at)]); }
      cells[r] = v;
    }
    for (var kx = 0u; kx < KW; kx++) {
      let w = f32(weight[p.weight_base + (channel * KH + ky) * KW + kx]);
      for (var j = 0u; j < PER; j++) { sums[j] += w * cells[j * STRIDE_W + kx * DILATION_W]; }
    }
  }
  let place = (plane * p.out_h + out_y) * p.out_w + out_x;
  if (HAS_BIAS || HAS_RESIDUAL) {   // loaded before anything is stored
    for (var j = 0u; j < PER; j++) {
      if (HAS_BIAS) { sums[j] += f32(bias[p.bias_base + channel]); }
      if (HAS_RESIDUAL && out_x + j < p.out_w) { sums[j] += f32(residual[p.residual_base + place + j]); }
    }
  }
  for (var j = 0u; j < PER; j++) {
    if (out_x + j < p.out_w) { result[p.result_base + place + j] = T(activate(sums[j])); }
  }
}
