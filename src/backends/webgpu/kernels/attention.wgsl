// y = softmax(q k^T * scale, masked) v. A workgroup owns BR rows of one kv head and goes over tiles of BC keys with a
// running maximum and sum. Products are tiled: a thread has RM rows by 4 keys of the scores, and RM rows by 4 * OV
// columns of the result. With SPLIT it does a part of the keys only and leaves (maximum, sum) and the unscaled result
// for attention_merge.
// @include "attention_common.wgsl"
// @include "attention_lengths.wgsl"
alias Y = f32;                  // of the result: T, or f32 with SPLIT
override BR: u32 = 32u;
override TX: u32 = 8u;          // threads along keys and columns
override RM: u32 = 4u;
override OV: u32 = 2u;
override DV: u32 = 8u;          // vectors of a head's width in a tile
override VK: u32 = 16u;         // keys in a tile of values
override SPLIT: bool = false;

const BC = 4u * TX;
const WG = BR / RM * TX;
const STRIDE = DV + 1u;         // odd, against bank conflicts
const COLS = TX * OV;           // vectors of the result's columns
const RV = (RM + 3u) / 4u;

@group(0) @binding(0) var<storage, read> query: array<E>;
@group(0) @binding(1) var<storage, read> key: array<KE>;
@group(0) @binding(2) var<storage, read> value: array<KE>;
@group(0) @binding(3) var<storage, read> mask: array<M>;
@group(0) @binding(4) var<storage, read> lengths: array<i32>;
@group(0) @binding(5) var<storage, read_write> result: array<Y>;
@group(0) @binding(6) var<storage, read_write> lse: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;

var<workgroup> tile: array<vec4f, (BR + BC) * STRIDE>;  // of q and k, then of v, then what rows reduce
var<workgroup> weights: array<vec4f, BR * (TX + 1u)>;
var<workgroup> keys_cell: i32;
var<workgroup> odd: atomic<u32>;                        // has a value been seen that is not finite?

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  var id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let rows = p.seq_q * p.group;
  let blocks = (rows + BR - 1u) / BR;
  let slice = id % p.slices;
  id = id / p.slices;
  let part = id % p.splits;
  id = id / p.splits;
  let first_row = (blocks - 1u - id % blocks) * BR;     // rows that see the most keys come first
  id = id / blocks;
  let head = id % p.kv_heads;
  let b = id / p.kv_heads;
  if (b >= p.batch) { return; }                         // the extent is cut
  if (lane == 0u) {
    keys_cell = keys_in_use(b);
    atomicStore(&odd, 0u);                              // wgpu-native does not clear workgroup memory
  }
  let keys = workgroupUniformLoad(&keys_cell);
  let last = min(first_row + BR, rows) - 1u;
  var range = vec2i(band_of(first_row / p.group, keys).x, band_of(last / p.group, keys).y);
  if (SPLIT) { range = vec2i(max(range.x, i32(part * p.chunk)), min(range.y, i32((part + 1u) * p.chunk))); }

  let tx = lane % TX;
  let ty = lane / TX;
  let neg_inf = bitcast<f32>(p.neg_inf);
  let width4 = (p.head_dim + 3u) / 4u;
  var row: array<Row, RM>;
  var top: array<f32, RM>;
  var sum: array<f32, RM>;                              // of this thread's keys
  var acc: array<vec4f, RM * OV>;
  for (var r = 0u; r < RM; r++) {
    row[r] = row_of(first_row + ty * RM + r, b, head, keys);
    top[r] = neg_inf;
  }

  for (var start = range.x; start < range.y; start += i32(BC)) {
    // Scores.
    var s = array<vec4f, RM>();                         // stated: naga zeroes only once what a loop declares
    for (var d0 = 0u; d0 < width4; d0 += DV) {
      workgroupBarrier();
      for (var n = lane; n < BR * DV; n += WG) {
        let at_row = n / DV;
        let d = 4u * (d0 + n % DV);
        var x = vec4f(0.0);
        if (first_row + at_row < rows && d < p.head_dim) {
          x = load_query(query_at(first_row + at_row, b, head), d);
        }
        tile[at_row * STRIDE + n % DV] = x;
      }
      // Key 4 i + c of the tile lies in place c TX + i, so that threads read neighbours.
      for (var n = lane; n < BC * DV; n += WG) {
        let at_key = n / DV;
        let d = 4u * (d0 + n % DV);
        let j = start + i32(at_key);
        var x = vec4f(0.0);
        if (j < range.y && d < p.head_dim) { x = load_key(key_at(b, head, u32(j)), d); }
        tile[(BR + (at_key % 4u) * TX + at_key / 4u) * STRIDE + n % DV] = x;
      }
      workgroupBarrier();
      for (var d = 0u; d < DV; d++) {
        let k0 = tile[(BR + tx) * STRIDE + d];
        let k1 = tile[(BR + TX + tx) * STRIDE + d];
        let k2 = tile[(BR + 2u * TX + tx) * STRIDE + d];
        let k3 = tile[(BR + 3u * TX + tx) * STRIDE + d];
        for (var r = 0u; r < RM; r++) {
          let x = tile[(ty * RM + r) * STRIDE + d];
          s[r] += vec4f(dot(x, k0), dot(x, k1), dot(x, k2), dot(x, k3));
        }
      }
    }
    // Masks, and each row's maximum.
    var high = array<vec4f, RV>();
    for (var r = 0u; r < RM; r++) {
      var m = neg_inf;
      for (var c = 0u; c < 4u; c++) {
        let j = start + i32(4u * tx + c);
        let x = select(neg_inf, score_of(s[r][c], row[r], j), j < range.y);
        s[r][c] = x;
        m = select(m, x, x > m);
      }
      high[r / 4u][r % 4u] = m;
    }
    workgroupBarrier();
    for (var i = 0u; i < RV; i++) { tile[lane * RV + i] = high[i]; }
    workgroupBarrier();
    for (var other = 0u; other < TX; other++) {
      for (var i = 0u; i < RV; i++) {
        let x = tile[(ty * TX + other) * RV + i];
        high[i] = select(high[i], x, x > high[i]);
      }
    }
    // Weights.
    for (var r = 0u; r < RM; r++) {
      let m = select(top[r], high[r / 4u][r % 4u], high[r / 4u][r % 4u] > top[r]);
      let base = select(m, 0.0, is_neg_inf(m));
      let fade = select(f_exp(top[r] - base), 0.0, is_neg_inf(top[r]));
      top[r] = m;
      var w = vec4f(0.0);
      for (var c = 0u; c < 4u; c++) { w[c] = weight_of(s[r][c], base); }
      sum[r] = sum[r] * fade + (w.x + w.y + w.z + w.w);
      for (var o = 0u; o < OV; o++) { acc[r * OV + o] *= fade; }
      weights[(ty * RM + r) * (TX + 1u) + tx] = w;
    }
    // Weighted values.
    for (var k0 = 0u; k0 < BC; k0 += VK) {
      workgroupBarrier();
      for (var n = lane; n < VK * COLS; n += WG) {
        let j = start + i32(k0 + n / COLS);
        let d = 4u * (slice * COLS + n % COLS);
        var x = vec4f(0.0);
        if (j < range.y && d < p.head_dim) { x = load_value(value_at(b, head, u32(j)), d); }
        if (any_odd(x)) { atomicStore(&odd, 1u); }
        tile[n] = x;
      }
      workgroupBarrier();
      if (atomicLoad(&odd) == 0u) {
        for (var c = 0u; c < VK; c += 4u) {
          for (var o = 0u; o < OV; o++) {
            let v0 = tile[c * COLS + o * TX + tx];
            let v1 = tile[(c + 1u) * COLS + o * TX + tx];
            let v2 = tile[(c + 2u) * COLS + o * TX + tx];
            let v3 = tile[(c + 3u) * COLS + o * TX + tx];
            for (var r = 0u; r < RM; r++) {
              let w = weights[(ty * RM + r) * (TX + 1u) + (k0 + c) / 4u];
              acc[r * OV + o] += w.x * v0 + w.y * v1 + w.z * v2 + w.w * v3;
            }
          }
        }
      } else {
        // What a masked key holds is not read, be it NaN.
        for (var c = 0u; c < VK; c++) {
          for (var o = 0u; o < OV; o++) {
            let v0 = tile[c * COLS + o * TX + tx];
            for (var r = 0u; r < RM; r++) {
              let w = weights[(ty * RM + r) * (TX + 1u) + (k0 + c) / 4u][(k0 + c) % 4u];
              acc[r * OV + o] += select(w * v0, vec4f(0.0), bitcast<u32>(w) == 0u);
            }
          }
        }
      }
    }
  }

  // The sum of a row over its threads.
  workgroupBarrier();
  for (var r = 0u; r < RM; r++) { tile[lane * RV + r / 4u][r % 4u] = sum[r]; }
  workgroupBarrier();
  for (var r = 0u; r < RM; r++) {
    let at_row = first_row + ty * RM + r;
    if (at_row >= rows) { continue; }
    var total = 0.0;
    for (var other = 0u; other < TX; other++) { total += tile[(ty * TX + other) * RV + r / 4u][r % 4u]; }
    let index = query_index(at_row, b, head);
    let empty = is_neg_inf(top[r]) && bitcast<u32>(total) == 0u;
    let factor = select(1.0 / total, 0.0, empty);
    if (slice == 0u && tx == 0u) {
      if (SPLIT) {
        lse[p.lse_base + 2u * (index * p.splits + part)] = top[r];
        lse[p.lse_base + 2u * (index * p.splits + part) + 1u] = total;
      } else if (p.has_lse != 0u) {
        lse[p.lse_base + index] = select(select(top[r], 0.0, is_neg_inf(top[r])) + f_log(total), neg_inf, empty);
      }
    }
    for (var o = 0u; o < OV; o++) {
      let d = 4u * (slice * COLS + o * TX + tx);
      for (var c = 0u; c < 4u; c++) {
        if (d + c >= p.head_dim) { break; }
        if (SPLIT) {
          result[p.result_base + (index * p.splits + part) * p.head_dim + d + c] = Y(acc[r * OV + o][c]);
        } else {
          result[p.result_base + result_at(at_row, b, head) + d + c] = Y(acc[r * OV + o][c] * factor);
        }
      }
    }
  }
}
