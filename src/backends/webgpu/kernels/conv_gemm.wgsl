// result[image, channel, window] = act(sum over k of weight[k, channel] * image[k, window] + bias + residual): convolution
// as a matrix product of M = output channels of a group, N = windows of all images, K = input channels of a group times
// taps. The matrix of windows is never stored: conv_gather.wgsl (or conv_rows.wgsl) reads its elements where they lie.
// A workgroup computes BM x BN, a thread TM x TN of it in blocks of 4 x 4. Grid: x tiles of M, y tiles of N, z groups,
// phases and splits of K. A split writes its part of the sum to a slice of its own, f32.
// @include "scalar.wgsl"
// @include "activation.wgsl"
// @include "conv_gather.wgsl"
// @include "conv_store.wgsl"
alias T = f32;                       // @type f32 | f16
alias X = f32;                       // @type T | vec4<T>: what a load of image gives
alias Y = f32;                       // @type T | f32 | vec4 of them: what a store to result takes
alias R = f32;                       // @type T | vec4<T>: what a load of residual gives
override BM: u32 = 64u;
override BN: u32 = 64u;
override BK: u32 = 16u;
override TM: u32 = 4u;               // 4 or 8
override TN: u32 = 4u;
override WG: u32 = (BM / TM) * (BN / TN);
override BUFFERS: u32 = 1u;          // 2: the next tile is written beside the one that is read
override HAS_BIAS: bool = false;
override HAS_RESIDUAL: bool = false;
override BLOCK: u32 = 1u;            // k runs over BLOCK channels, then taps, then blocks of channels: 1 or BK
override CHECKED: bool = true;       // windows may reach beyond the image, or K is not made of whole tiles
override PHASED: bool = false;       // a transposed convolution: results lie `step` apart, a phase each
override IN_PARTS: bool = false;     // a long sum is one of parts: what is added to a large number loses digits
const PART: u32 = 32u;               // tiles

struct Params {
  groups: u32,
  phases: u32,
  n_first: u32,                      // windows before the first of this dispatch
  n_end: u32,                        // windows of all images
  windows: u32,                      // of one image
  q_h: u32,                          // windows along the axes
  q_w: u32,
  cin: u32,
  cin_group: u32,
  in_plane: u32,
  in_d: u32,
  in_h: u32,
  in_w: u32,
  stride_d: u32,                     // between the starts of two windows
  stride_h: u32,
  stride_w: u32,
  k_tiles: u32,
  tiles_per_split: u32,
  split_stride: u32,                 // stores between two slices of the result
  m_quads: u32,                      // a row of weight, in vec4
  cout: u32,
  cout_group: u32,
  out_plane: u32,
  out_d: u32,
  out_h: u32,
  out_w: u32,
  step_d: u32,
  step_h: u32,
  step_w: u32,
  image_base: u32,
  taps_base: u32,
  weight_base: u32,
  bias_base: u32,
  residual_base: u32,
  result_base: u32,
}
@group(0) @binding(0) var<storage, read>       image: array<X>;
@group(0) @binding(1) var<storage, read>       taps: array<vec4<u32>>;    // per phase and block of k: where it lies
@group(0) @binding(2) var<storage, read>       weight: array<vec4<T>>;    // packed: conv_pack.wgsl
@group(0) @binding(3) var<storage, read>       bias: array<T>;
@group(0) @binding(4) var<storage, read>       residual: array<R>;
@group(0) @binding(5) var<storage, read_write> result: array<Y>;
@group(0) @binding(6) var<uniform>             p: Params;

const NOWHERE: u32 = 0xffffffffu;
const M4: u32 = BM / 4u;
const N4: u32 = BN / 4u;
var<workgroup> weight_tile: array<vec4<f32>, BUFFERS * BK * BM / 4u>;
var<workgroup> image_tile: array<vec4<f32>, BUFFERS * BK * BN / 4u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let m0 = group.x * BM;
  let n0 = p.n_first + group.y * BN;
  let g = group.z % p.groups;
  let phase = group.z / p.groups % p.phases;
  let split = group.z / (p.groups * p.phases);
  let first = split * p.tiles_per_split;
  let last = min(first + p.tiles_per_split, p.k_tiles);

  // What this thread brings into the tiles: of weight vectors along M, of image CELLS neighbours along N.
  const WEIGHT_LOADS = BK * M4 / WG;
  const IMAGE_LOADS = BK * BN / CELLS / WG;
  var next_weight: array<vec4<f32>, WEIGHT_LOADS>;
  var next_image: array<Cell, IMAGE_LOADS>;
  let weight_row = lane / M4;
  let weight_at = p.weight_base + ((phase * p.groups + g) * p.k_tiles * BK + weight_row) * p.m_quads + m0 / 4u + lane % M4;
  let image_row = lane / (BN / CELLS);
  let image_col = lane % (BN / CELLS);
  let column = column_of(n0 + image_col * CELLS, g);
  let taps_at = p.taps_base + phase * p.k_tiles * (BK / BLOCK);
  var tap = vec4<u32>();               // of the tile that is loaded next, where it has only one
  if (BLOCK > 1u) { tap = taps[taps_at + first]; }

  const TN4 = TN / 4u;
  // 32 threads are 8 across and 4 down: they read few different vectors.
  const ACROSS = BN / TN;
  let tx = lane % 8u + lane / 32u % (ACROSS / 8u) * 8u;
  let ty = lane / 8u % 4u + lane / 32u / (ACROSS / 8u) * 4u;
  var sums: array<vec4<f32>, TM * TN4>;
  var whole: array<vec4<f32>, TM * TN4>;

  // Each turn loads one tile while it multiplies the one before.
  for (var tile = first; tile <= last; tile++) {
    if (tile < last) {
      for (var i = 0u; i < WEIGHT_LOADS; i++) {
        next_weight[i] = vec4<f32>(weight[weight_at + (tile * BK + i * (WG / M4)) * p.m_quads]);
      }
      for (var i = 0u; i < IMAGE_LOADS; i++) {
        let row = image_row + i * (WG * CELLS / BN);
        next_image[i] = cell_of(column, tap, taps_at, tile * BK, row);
      }
      if (BLOCK > 1u && tile + 1u < last) { tap = taps[taps_at + tile + 1u]; }
    }
    if (tile > first) {
      let row0 = (tile + 1u) % BUFFERS * BK;   // where the tile before lies
      for (var k = row0; k < row0 + BK; k++) {
        var a: array<f32, TM>;
        for (var i = 0u; i < TM / 4u; i++) {
          let v = weight_tile[k * M4 + i * (M4 / (TM / 4u)) + ty];
          a[i * 4u] = v.x;
          a[i * 4u + 1u] = v.y;
          a[i * 4u + 2u] = v.z;
          a[i * 4u + 3u] = v.w;
        }
        for (var j = 0u; j < TN4; j++) {
          let b = image_tile[k * N4 + j * (N4 / TN4) + tx];
          for (var i = 0u; i < TM; i++) { sums[i * TN4 + j] = fma(vec4<f32>(a[i]), b, sums[i * TN4 + j]); }
        }
      }
      if (IN_PARTS && (tile - first) % PART == 0u) {
        for (var i = 0u; i < TM * TN4; i++) {
          whole[i] += sums[i];
          sums[i] = vec4<f32>();
        }
      }
    }
    if (BUFFERS == 1u) { workgroupBarrier(); }
    if (tile < last) {
      let row0 = tile % BUFFERS * BK;
      for (var i = 0u; i < WEIGHT_LOADS; i++) { weight_tile[row0 * M4 + lane + i * WG] = next_weight[i]; }
      for (var i = 0u; i < IMAGE_LOADS; i++) {
        put_cell((row0 + image_row + i * (WG * CELLS / BN)) * BN + image_col * CELLS, next_image[i]);
      }
    }
    workgroupBarrier();
  }

  if (IN_PARTS) {
    for (var i = 0u; i < TM * TN4; i++) { sums[i] += whole[i]; }
  }

  // What is added is loaded before anything is stored: the compiler may not move loads over stores to the same buffer.
  if (HAS_BIAS || HAS_RESIDUAL) {
    for (var j = 0u; j < TN4; j++) {
      for (var c = 0u; c < STORES; c++) {
        let place = place_of(n0 + (j * (N4 / TN4) + tx) * 4u + c, phase);
        if (place == NOWHERE) { continue; }
        for (var i = 0u; i < TM; i++) {
          let m = m0 + ((i / 4u) * (M4 / (TM / 4u)) + ty) * 4u + i % 4u;
          if (m < p.cout_group) { sums[i * TN4 + j] += added(place, g * p.cout_group + m, c); }
        }
      }
    }
  }
  for (var j = 0u; j < TN4; j++) {
    for (var c = 0u; c < STORES; c++) {
      let place = place_of(n0 + (j * (N4 / TN4) + tx) * 4u + c, phase);
      if (place == NOWHERE) { continue; }
      for (var i = 0u; i < TM; i++) {
        let m = m0 + ((i / 4u) * (M4 / (TM / 4u)) + ty) * 4u + i % 4u;
        if (m < p.cout_group) { store(place, split, g * p.cout_group + m, sums[i * TN4 + j], c); }
      }
    }
  }
}
