// Results of conv_gemm.wgsl, one at a time.
const STORES: u32 = 4u;   // of four neighbours

// Where channel 0 of window n lies.
fn place_of(n: u32, phase: u32) -> u32 {
  if (n >= p.n_end) { return NOWHERE; }
  let start = n / p.windows * p.cout * p.out_plane;
  let q = n % p.windows;
  if (!PHASED) { return start + q; }
  let z = q / (p.q_h * p.q_w) * p.step_d + phase / (p.step_h * p.step_w);
  let row = q / p.q_w % p.q_h * p.step_h + phase / p.step_w % p.step_h;
  let col = q % p.q_w * p.step_w + phase % p.step_w;
  if (z >= p.out_d || row >= p.out_h || col >= p.out_w) { return NOWHERE; }
  return start + (z * p.out_h + row) * p.out_w + col;
}

// Bias and residual of the c-th of four neighbours.
fn added(place: u32, channel: u32, c: u32) -> vec4<f32> {
  var v = 0.0;
  if (HAS_BIAS) { v += f32(bias[p.bias_base + channel]); }
  if (HAS_RESIDUAL) { v += f32(residual[p.residual_base + place + channel * p.out_plane]); }
  var four = vec4<f32>();
  four[c] = v;
  return four;
}

fn store(place: u32, split: u32, channel: u32, sums: vec4<f32>, c: u32) {
  result[p.result_base + split * p.split_stride + place + channel * p.out_plane] = Y(activate(sums[c]));
}
