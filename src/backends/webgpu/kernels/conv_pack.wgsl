// packed[phase, group, k, m] = weight[group, m, channel, tap] in the order conv_gemm.wgsl reads it, zeros up to whole
// tiles. k runs over `block` channels, then taps, then blocks of channels. One thread per element.
alias T = f32;             // @type f32 | f16

struct Params {
  n: u32,
  m_padded: u32,
  k_padded: u32,
  m: u32,                  // channels that are written, of a group
  k: u32,                  // channels that are read times slots
  groups: u32,
  slots: u32,              // taps of a phase
  block: u32,
  group_stride: u32,       // of weight
  m_stride: u32,
  channel_stride: u32,
  weight_base: u32,
  order_base: u32,
  packed_base: u32,
}
@group(0) @binding(0) var<storage, read>       weight: array<T>;
@group(0) @binding(1) var<storage, read>       order: array<u32>;   // the tap of each slot of each phase
@group(0) @binding(2) var<storage, read_write> packed: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let m = i % p.m_padded;
  let k = i / p.m_padded % p.k_padded;
  let g = i / (p.m_padded * p.k_padded) % p.groups;
  let phase = i / (p.m_padded * p.k_padded * p.groups);
  var v = T(0.0);
  if (m < p.m && k < p.k) {
    let tile = k / p.block;
    let channel = tile / p.slots * p.block + k % p.block;
    let tap = order[p.order_base + phase * p.slots + tile % p.slots];
    if (tap != 0xffffffffu) {
      v = weight[p.weight_base + g * p.group_stride + m * p.m_stride + channel * p.channel_stride + tap];
    }
  }
  packed[p.packed_base + i] = v;
}
