// Results of conv_gemm.wgsl, four neighbours at a time: planes are made of fours. Takes the place of conv_store.wgsl.
const STORES: u32 = 1u;

fn place_of(n: u32, phase: u32) -> u32 {
  if (n >= p.n_end) { return NOWHERE; }
  return (n / p.windows * p.cout * p.out_plane + n % p.windows) / 4u;
}

fn added(place: u32, channel: u32, c: u32) -> vec4<f32> {
  var v = vec4<f32>();
  if (HAS_BIAS) { v += f32(bias[p.bias_base + channel]); }
  if (HAS_RESIDUAL) { v += vec4<f32>(residual[p.residual_base + place + channel * (p.out_plane / 4u)]); }
  return v;
}

fn store(place: u32, split: u32, channel: u32, sums: vec4<f32>, c: u32) {
  result[p.result_base + split * p.split_stride + place + channel * (p.out_plane / 4u)] = Y(activate4(sums));
}
