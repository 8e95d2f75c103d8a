// result[image, channel, window] = act(sum over channels and taps of weight * image + bias + residual), for few channels:
// one thread per window and CO output channels of a group. Grid: x windows of all images, y and z one after the other the
// blocks of channels of all groups, for each phase.
// @include "scalar.wgsl"
// @include "activation.wgsl"
alias T = f32;             // @type f32 | f16
override CO: u32 = 4u;
override HAS_BIAS: bool = false;
override HAS_RESIDUAL: bool = false;

struct Params {
  n_first: u32,            // windows before the first of this dispatch
  n_end: u32,              // windows of all images
  windows: u32,            // of one image
  q_h: u32,
  q_w: u32,
  cin: u32,
  cin_group: u32,
  in_plane: u32,
  in_d: u32,
  in_h: u32,
  in_w: u32,
  stride_d: u32,
  stride_h: u32,
  stride_w: u32,
  slots: u32,              // taps of a phase
  blocks: u32,             // of channels in a group
  all_blocks: u32,         // in all groups
  cout: u32,
  cout_group: u32,
  group_stride: u32,       // of weight
  m_stride: u32,
  channel_stride: u32,
  out_plane: u32,
  out_d: u32,
  out_h: u32,
  out_w: u32,
  step_d: u32,
  step_h: u32,
  step_w: u32,
  image_base: u32,
  taps_base: u32,
  order_base: u32,
  weight_base: u32,
  bias_base: u32,
  residual_base: u32,
  result_base: u32,
}
@group(0) @binding(0) var<storage, read>       image: array<T>;
@group(0) @binding(1) var<storage, read>       taps: array<vec4<u32>>;    // of each slot: where it lies
@group(0) @binding(2) var<storage, read>       order: array<u32>;         // of each slot: its tap, or none
@group(0) @binding(3) var<storage, read>       weight: array<T>;
@group(0) @binding(4) var<storage, read>       bias: array<T>;
@group(0) @binding(5) var<storage, read>       residual: array<T>;
@group(0) @binding(6) var<storage, read_write> result: array<T>;
@group(0) @binding(7) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u,
        @builtin(num_workgroups) groups: vec3u) {
  let n = p.n_first + id.x;
  if (n >= p.n_end) { return; }
  let at = group.y + group.z * groups.y;
  let phase = at / p.all_blocks;
  if (phase >= p.step_d * p.step_h * p.step_w) { return; }
  let g = at % p.all_blocks / p.blocks;
  let m0 = at % p.blocks * CO;
  let count = min(CO, p.cout_group - m0);
  let q = n % p.windows;
  let qz = q / (p.q_h * p.q_w);
  let qy = q / p.q_w % p.q_h;
  let qx = q % p.q_w;
  let out_z = qz * p.step_d + phase / (p.step_h * p.step_w);
  let out_y = qy * p.step_h + phase / p.step_w % p.step_h;
  let out_x = qx * p.step_w + phase % p.step_w;
  if (out_z >= p.out_d || out_y >= p.out_h || out_x >= p.out_w) { return; }
  let z = i32(qz * p.stride_d);
  let row = i32(qy * p.stride_h);
  let col = i32(qx * p.stride_w);
  let start = p.image_base + (n / p.windows * p.cin + g * p.cin_group) * p.in_plane
            + (u32(z) * p.in_h + u32(row)) * p.in_w + u32(col);
  let weights = p.weight_base + g * p.group_stride + m0 * p.m_stride;
  var sums: array<f32, CO>;
  for (var t = phase * p.slots; t < (phase + 1u) * p.slots; t++) {
    let tap = taps[p.taps_base + t];
    if (u32(col + i32(tap.w)) >= p.in_w || u32(row + i32(tap.z)) >= p.in_h || u32(z + i32(tap.y)) >= p.in_d) { continue; }
    let weight_tap = weights + order[p.order_base + t];
    for (var c = 0u; c < p.cin_group; c++) {
      let v = f32(image[start + tap.x + c * p.in_plane]);
      for (var m = 0u; m < CO; m++) {
        if (m < count) { sums[m] += v * f32(weight[weight_tap + c * p.channel_stride + m * p.m_stride]); }
      }
    }
  }
  let place = n / p.windows * p.cout * p.out_plane + (out_z * p.out_h + out_y) * p.out_w + out_x;
  if (HAS_BIAS || HAS_RESIDUAL) {   // loaded before anything is stored
    for (var m = 0u; m < CO; m++) {
      if (m >= count) { continue; }
      let channel = g * p.cout_group + m0 + m;
      if (HAS_BIAS) { sums[m] += f32(bias[p.bias_base + channel]); }
      if (HAS_RESIDUAL) { sums[m] += f32(residual[p.residual_base + place + channel * p.out_plane]); }
    }
  }
  for (var m = 0u; m < CO; m++) {
    if (m < count) { result[p.result_base + place + (g * p.cout_group + m0 + m) * p.out_plane] = T(activate(sums[m])); }
  }
}
