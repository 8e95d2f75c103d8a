// Gradients of attention. With KEYS a workgroup owns BR keys of one kv head and goes over tiles of rows (queries of its
// heads): dk and dv. Without, it owns BR rows and goes over tiles of keys: dq. Weights are computed again from lse.
// @include "attention_common.wgsl"
override KEYS: bool = false;
override BR: u32 = 32u;         // owned
override TX: u32 = 8u;          // threads along the tile and the columns
override RM: u32 = 4u;          // owned by a thread
override OV: u32 = 2u;          // vectors of columns of a thread
override DV: u32 = 8u;          // vectors of a head's width in a tile
override VK: u32 = 16u;         // rows or keys in a tile of vectors
override N2: u32 = 1u;          // RM * OV with KEYS

const BC = 4u * TX;
const WG = BR / RM * TX;
const STRIDE = DV + 1u;         // odd, against bank conflicts
const COLS = TX * OV;

@group(0) @binding(0) var<storage, read> query: array<E>;
@group(0) @binding(1) var<storage, read> key: array<KE>;
@group(0) @binding(2) var<storage, read> value: array<KE>;
@group(0) @binding(3) var<storage, read> dy: array<E>;
@group(0) @binding(4) var<storage, read> mask: array<M>;
@group(0) @binding(5) var<storage, read> stats: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> first: array<T>;   // dq or dk
@group(0) @binding(7) var<storage, read_write> second: array<T>;  // dv
@group(0) @binding(8) var<uniform> p: Params;

var<workgroup> tile: array<vec4f, (BR + BC) * STRIDE>;
var<workgroup> weights: array<vec4f, BR * (TX + 1u)>;
var<workgroup> keys_cell: i32;
var<workgroup> odd: atomic<u32>;  // has anything been seen that is not finite?

fn load_dy(at: u32, d: u32) -> vec4f {
  if (VEC) { return vec4f(vec4<T>(dy[p.dy_base + (at + d) / 4u])); }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.head_dim) { r[i] = f32(vec4<T>(dy[p.dy_base + at + d + i]).x); } }
  return r;
}

// What the workgroup works on.
struct Place {
  b: u32,
  head: u32,      // of k and v
  rows: u32,
  keys: u32,      // in use
  lane: u32,
}
// Four elements of a row: of q, or of dy; of a key: of k, or of v.
fn load_row(place: Place, row: u32, d: u32, of_dy: bool) -> vec4f {
  if (row >= place.rows || d >= p.head_dim) { return vec4f(0.0); }
  let at = query_at(row, place.b, place.head);
  if (of_dy) { return load_dy(at, d); }
  return load_query(at, d);
}
fn load_place(place: Place, j: u32, d: u32, of_values: bool) -> vec4f {
  if (j >= place.keys || d >= p.head_dim) { return vec4f(0.0); }
  if (of_values) { return load_value(value_at(place.b, place.head, j), d); }
  return load_key(key_at(place.b, place.head, j), d);
}
fn load_owned(place: Place, index: u32, d: u32, other: bool) -> vec4f {
  if (KEYS) { return load_place(place, index, d, other); }
  return load_row(place, index, d, other);
}
fn load_tiled(place: Place, index: u32, d: u32, other: bool) -> vec4f {
  if (KEYS) { return load_row(place, index, d, other); }
  return load_place(place, index, d, other);
}

// q . k of what is owned and the tile from `start` on; dy . v if `other`.
fn products(place: Place, owned: u32, start: u32, other: bool) -> array<vec4f, RM> {
  var s = array<vec4f, RM>();
  let tx = place.lane % TX;
  let ty = place.lane / TX;
  for (var d0 = 0u; 4u * d0 < p.head_dim; d0 += DV) {
    workgroupBarrier();
    for (var n = place.lane; n < BR * DV; n += WG) {
      tile[n / DV * STRIDE + n % DV] = load_owned(place, owned + n / DV, 4u * (d0 + n % DV), other);
    }
    for (var n = place.lane; n < BC * DV; n += WG) {
      let at = n / DV;  // 4 i + c lies in place c TX + i
      tile[(BR + (at % 4u) * TX + at / 4u) * STRIDE + n % DV] = load_tiled(place, start + at, 4u * (d0 + n % DV), other);
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
  return s;
}

// Stages rows k0 … k0 + VK of the tile that starts at `start`.
fn stage(place: Place, start: u32, slice: u32, other: bool) {
  for (var n = place.lane; n < VK * COLS; n += WG) {
    let x = load_tiled(place, start + n / COLS, 4u * (slice * COLS + n % COLS), other);
    if (any_odd(x)) { atomicStore(&odd, 1u); }
    tile[n] = x;
  }
}
// A weight times a staged vector: nothing where the pair is masked, be the vector NaN.
fn weighted(w: vec4f, at: u32, finite: bool) -> vec4f {
  if (finite) {
    return w.x * tile[at] + w.y * tile[at + COLS] + w.z * tile[at + 2u * COLS] + w.w * tile[at + 3u * COLS];
  }
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { r += select(w[i] * tile[at + i * COLS], vec4f(0.0), bitcast<u32>(w[i]) == 0u); }
  return r;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  var id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let rows = p.seq_q * p.group;
  let count = select(rows, p.seq_k, KEYS);
  let blocks = (count + BR - 1u) / BR;
  let slice = id % p.slices;
  id = id / p.slices;
  let owned = select(blocks - 1u - id % blocks, id % blocks, KEYS) * BR;  // what sees the most comes first
  id = id / blocks;
  let head = id % p.kv_heads;
  let b = id / p.kv_heads;
  let queries = p.batch * p.heads * p.seq_q;
  if (lane == 0u) {
    keys_cell = bitcast<i32>(stats[p.stats_base + queries + b].x);
    atomicStore(&odd, 0u);
  }
  let keys = workgroupUniformLoad(&keys_cell);
  let place = Place(b, head, rows, u32(keys), lane);

  // The part of the other side that may see what is owned.
  let last = min(owned + BR, count) - 1u;
  var range = vec2i(0, i32(rows));
  if (!KEYS) {
    range = vec2i(band_of(owned / p.group, keys).x, band_of(last / p.group, keys).y);
  } else if (p.causal != 0u) {
    let offset = first_position(keys);
    let begin = max(0, i32(owned) - offset);
    let end = clamp(i32(last) - offset + p.window + 1, 0, i32(p.seq_q));
    range = vec2i(begin, end) * i32(p.group);
  }

  let tx = lane % TX;
  let ty = lane / TX;
  var acc = array<vec4f, RM * OV>();
  var acc2 = array<vec4f, N2>();
  for (var at_start = range.x; at_start < range.y; at_start += i32(BC)) {
    let start = u32(at_start);
    let s = products(place, owned, start, false);
    let dp = products(place, owned, start, true);
    var ds = array<vec4f, RM>();
    for (var r = 0u; r < RM; r++) {
      var w = vec4f(0.0);
      for (var c = 0u; c < 4u; c++) {
        let mine = owned + ty * RM + r;
        let other = start + 4u * tx + c;
        let row = select(mine, other, KEYS);
        let j = i32(select(other, mine, KEYS));
        if (row < rows) {
          let stat = stats[p.stats_base + query_index(row, b, head)];
          let lse = bitcast<f32>(stat.x);
          let score = score_of(s[r][c], row_of(row, b, head, keys), j);
          if (!is_neg_inf(score) && !is_neg_inf(lse)) {
            w[c] = f_exp(score - lse);
            ds[r][c] = w[c] * (dp[r][c] - bitcast<f32>(stat.y)) * slope_of(s[r][c]);
          }
        }
      }
      if (KEYS) { weights[(ty * RM + r) * (TX + 1u) + tx] = w; }
    }
    if (KEYS) {  // dv += weights dy
      for (var k0 = 0u; k0 < BC; k0 += VK) {
        workgroupBarrier();
        stage(place, start + k0, slice, true);
        workgroupBarrier();
        let finite = atomicLoad(&odd) == 0u;
        for (var c = 0u; c < VK; c += 4u) {
          for (var r = 0u; r < RM; r++) {
            let w = weights[(ty * RM + r) * (TX + 1u) + (k0 + c) / 4u];
            for (var o = 0u; o < OV; o++) { acc2[(r * OV + o) % N2] += weighted(w, c * COLS + o * TX + tx, finite); }
          }
        }
      }
      workgroupBarrier();
    }
    for (var r = 0u; r < RM; r++) { weights[(ty * RM + r) * (TX + 1u) + tx] = ds[r]; }
    for (var k0 = 0u; k0 < BC; k0 += VK) {
      workgroupBarrier();
      stage(place, start + k0, slice, false);
      workgroupBarrier();
      let finite = atomicLoad(&odd) == 0u;
      for (var c = 0u; c < VK; c += 4u) {
        for (var r = 0u; r < RM; r++) {
          let w = weights[(ty * RM + r) * (TX + 1u) + (k0 + c) / 4u];
          for (var o = 0u; o < OV; o++) { acc[r * OV + o] += weighted(w, c * COLS + o * TX + tx, finite); }
        }
      }
    }
  }

  for (var r = 0u; r < RM; r++) {
    let mine = owned + ty * RM + r;
    if (mine >= count) { continue; }
    let at = select(query_at(mine, b, head), key_at(b, head, mine), KEYS);
    for (var o = 0u; o < OV; o++) {
      let d = 4u * (slice * COLS + o * TX + tx);
      for (var c = 0u; c < 4u; c++) {
        if (d + c >= p.head_dim) { break; }
        first[p.first_base + at + d + c] = T(acc[r * OV + o][c]);
        if (KEYS) { second[p.second_base + at + d + c] = T(acc2[(r * OV + o) % N2][c]); }
      }
    }
  }
}
