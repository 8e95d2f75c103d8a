// result[channel, k] = sum over windows of gradient[channel, window] * image[k, window], k an input channel's tap: a matrix
// product over all windows of all images, in splits that write to slices of their own. A workgroup computes 64 x 64, a
// thread 4 x 4. Grid: a workgroup for each tile of k, tile of channels, group and split.
alias T = f32;             // @type f32 | f16
const TILE: u32 = 64u;
const DEPTH: u32 = 16u;    // windows at a time
const PART: u32 = 16u;     // so many times

struct Params {
  groups: u32,
  images: u32,
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
  cout: u32,
  cout_group: u32,
  row: u32,                // elements of result per channel: input channels of a group times taps
  row_tiles: u32,          // of it
  channel_tiles: u32,      // of the channels of a group
  splits: u32,
  tiles: u32,              // of windows
  tiles_per_split: u32,
  split_stride: u32,
  image_base: u32,
  gradient_base: u32,
  taps_base: u32,
  result_base: u32,
}
@group(0) @binding(0) var<storage, read>       image: array<T>;
@group(0) @binding(1) var<storage, read>       gradient: array<T>;
@group(0) @binding(2) var<storage, read>       taps: array<vec4<u32>>;   // of each k: where it lies
@group(0) @binding(3) var<storage, read_write> result: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

var<workgroup> gradient_tile: array<vec4<f32>, DEPTH * TILE / 4u>;
var<workgroup> image_tile: array<vec4<f32>, DEPTH * TILE / 4u>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let at = group.x + group.y * groups.x;
  let n0 = at % p.row_tiles * TILE;
  let m0 = at / p.row_tiles % p.channel_tiles * TILE;
  let g = at / (p.row_tiles * p.channel_tiles) % p.groups;
  let split = at / (p.row_tiles * p.channel_tiles * p.groups);
  if (split >= p.splits) { return; }
  let first = split * p.tiles_per_split;
  let last = min(first + p.tiles_per_split, p.tiles);
  let depth = lane % DEPTH;   // of the tile: neighbouring threads read neighbouring windows
  let line = lane / DEPTH;
  var tap: array<vec4<u32>, 4>;
  for (var i = 0u; i < 4u; i++) {
    let n = n0 + line + i * 16u;
    tap[i] = vec4<u32>(0u, 0x20000000u, 0x20000000u, 0x20000000u);
    if (n < p.row) { tap[i] = taps[p.taps_base + n]; }
  }
  let tx = lane % 16u;
  let ty = lane / 16u;
  var sums: array<vec4<f32>, 4>;
  var whole: array<vec4<f32>, 4>;  // of parts of a long sum: what is added to a large number loses digits
  for (var tile = first; tile < last; tile++) {
    let k = tile * DEPTH + depth;
    let inside = k < p.images * p.windows;
    let which = k / p.windows;
    let q = k % p.windows;
    let z = i32(q / (p.q_h * p.q_w) * p.stride_d);
    let row = i32(q / p.q_w % p.q_h * p.stride_h);
    let col = i32(q % p.q_w * p.stride_w);
    let start = p.image_base + (which * p.cin + g * p.cin_group) * p.in_plane + (u32(z) * p.in_h + u32(row)) * p.in_w + u32(col);
    let gradient_at = p.gradient_base + (which * p.cout + g * p.cout_group) * p.windows + q;
    for (var i = 0u; i < 4u; i++) {
      let across = line + i * 16u;
      var d = 0.0;
      if (inside && m0 + across < p.cout_group) { d = f32(gradient[gradient_at + (m0 + across) * p.windows]); }
      var v = 0.0;
      let t = tap[i];
      if (inside && u32(col + i32(t.w)) < p.in_w && u32(row + i32(t.z)) < p.in_h && u32(z + i32(t.y)) < p.in_d) {
        v = f32(image[start + t.x]);
      }
      let at = depth * TILE + across;
      gradient_tile[at / 4u][at % 4u] = d;
      image_tile[at / 4u][at % 4u] = v;
    }
    workgroupBarrier();
    for (var e = 0u; e < DEPTH; e++) {
      let a = gradient_tile[e * (TILE / 4u) + ty];
      let b = image_tile[e * (TILE / 4u) + tx];
      sums[0] += a.x * b;
      sums[1] += a.y * b;
      sums[2] += a.z * b;
      sums[3] += a.w * b;
    }
    if ((tile - first) % PART == PART - 1u || tile + 1u == last) {
      for (var i = 0u; i < 4u; i++) {
        whole[i] += sums[i];
        sums[i] = vec4<f32>();
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < 4u; i++) {
    let m = m0 + ty * 4u + i;
    for (var j = 0u; j < 4u; j++) {
      let n = n0 + tx * 4u + j;
      if (m < p.cout_group && n < p.row) {
        result[p.result_base + split * p.split_stride + (g * p.cout_group + m) * p.row + n] = whole[i][j];
      }
    }
  }
}
