// Attention of few rows, as when decoding: a workgroup has all rows of one kv head, so that each key and value is read
// once, and a part of the keys. It goes over them in blocks of KEYS: scores, of which LANES threads share one key's, then
// weights, then values, of which a thread has four columns of every TEAMS-th key. With SPLIT it leaves (maximum, sum) and
// the unscaled result for attention_merge.
// @include "attention_common.wgsl"
// @include "attention_lengths.wgsl"
alias Y = f32;                  // of the result: T, or f32 with SPLIT
override R4: u32 = 1u;          // rows, in fours
override LV: u32 = 8u;          // vectors of a key that a lane has
override PER: u32 = 2u;         // keys whose scores a thread shares at a time
override KEYS: u32 = 256u;
override SPLIT: bool = false;

const WG = 128u;
const LANES = 4u;
const ROWS = 4u * R4;
const COLS = LANES * LV;        // vectors of a head's width
const TEAMS = WG / COLS;
const ACROSS = WG / LANES;      // keys of the threads' first ones
const ROW_THREADS = WG / R4;    // that share the maxima and sums of four rows
const FOLDS = 16u;              // what these are folded to first
const AHEAD = 4u;               // values that a thread asks for at a time

@group(0) @binding(0) var<storage, read> query: array<E>;
@group(0) @binding(1) var<storage, read> key: array<KE>;
@group(0) @binding(2) var<storage, read> value: array<KE>;
@group(0) @binding(3) var<storage, read> mask: array<M>;
@group(0) @binding(4) var<storage, read> lengths: array<i32>;
@group(0) @binding(5) var<storage, read_write> result: array<Y>;
@group(0) @binding(6) var<storage, read_write> lse: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;

var<workgroup> queries: array<vec4f, ROWS * COLS>;
var<workgroup> cells: array<vec4f, PER * R4 * WG>;
var<workgroup> weights: array<vec4f, KEYS * R4>;  // of a key: of its rows
var<workgroup> folds: array<vec4f, FOLDS * R4>;
var<workgroup> fades: array<vec4f, R4>;
var<workgroup> tops: array<vec4f, R4>;
var<workgroup> keys_cell: i32;

// The part's keys. Parts are cut of the keys in use, which only the device knows.
fn part_of(range: vec2i, part: u32) -> vec2i {
  if (!SPLIT || range.y <= range.x) { return range; }
  let each = max((u32(range.y - range.x) + p.splits - 1u) / p.splits, p.chunk);
  let size = i32((each + ACROSS - 1u) / ACROSS * ACROSS);
  let first = range.x + i32(part) * size;
  return vec2i(first, min(first + size, range.y));
}

fn are_neg_inf(x: vec4f) -> vec4<bool> { return bitcast<vec4u>(x) == vec4u(0xff800000u); }
fn exp4(x: vec4f) -> vec4f { return vec4f(f_exp(x.x), f_exp(x.y), f_exp(x.z), f_exp(x.w)); }
// The largest of what the threads of the same four rows have.
fn rows_max(own: vec4f, lane: u32) -> vec4f {
  cells[lane] = own;
  workgroupBarrier();
  var x = own;
  if (lane < FOLDS * R4) {
    for (var i = lane + FOLDS * R4; i < WG; i += FOLDS * R4) { x = select(x, cells[i], cells[i] > x); }
    folds[lane] = x;
  }
  workgroupBarrier();
  for (var i = lane % R4; i < FOLDS * R4; i += R4) { x = select(x, folds[i], folds[i] > x); }
  return x;
}
// Leaves in `folds` what adds up to the sum of it.
fn fold_sums(own: vec4f, lane: u32) {
  cells[lane] = own;
  workgroupBarrier();
  if (lane < FOLDS * R4) {
    var x = own;
    for (var i = lane + FOLDS * R4; i < WG; i += FOLDS * R4) { x += cells[i]; }
    folds[lane] = x;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  var id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let part = id % p.splits;
  id = id / p.splits;
  let head = id % p.kv_heads;
  let b = id / p.kv_heads;
  if (b >= p.batch) { return; }  // the extent is cut
  let rows = p.seq_q * p.group;
  if (lane == 0u) { keys_cell = keys_in_use(b); }
  let keys = workgroupUniformLoad(&keys_cell);
  let range = part_of(vec2i(band_of(0u, keys).x, band_of(p.seq_q - 1u, keys).y), part);
  let neg_inf = bitcast<f32>(p.neg_inf);

  for (var n = lane; n < ROWS * COLS; n += WG) {
    var x = vec4f(0.0);
    if (n / COLS < rows) { x = load_query(query_at(n / COLS, b, head), 4u * (n % COLS)); }
    queries[n] = x;
  }
  var scored: array<Row, 4>;     // rows whose scores this thread masks
  for (var r = 0u; r < 4u; r++) { scored[r] = row_of(4u * (lane % R4) + r, b, head, keys); }
  let own = lane % R4;           // these four
  var top = vec4f(neg_inf);
  var sum = vec4f(0.0);          // of its keys
  var acc: array<vec4f, ROWS>;
  workgroupBarrier();

  for (var start = range.x; start < range.y; start += i32(KEYS)) {
    let origin = u32(start);
    let count = min(u32(range.y - start), KEYS);
    for (var first = 0u; first < count; first += ACROSS * PER) {
      var at: array<u32, PER>;
      var s = array<vec4f, PER * R4>();
      for (var c = 0u; c < PER; c++) {
        at[c] = key_at(b, head, origin + min(first + c * ACROSS + lane / LANES, count - 1u));
      }
      for (var i = 0u; i < LV; i++) {
        let v = lane % LANES + i * LANES;
        var k: array<vec4f, PER>;
        for (var c = 0u; c < PER; c++) { k[c] = load_key(at[c], 4u * v); }
        for (var g = 0u; g < R4; g++) {
          let q0 = queries[(4u * g) * COLS + v];
          let q1 = queries[(4u * g + 1u) * COLS + v];
          let q2 = queries[(4u * g + 2u) * COLS + v];
          let q3 = queries[(4u * g + 3u) * COLS + v];
          for (var c = 0u; c < PER; c++) {
            s[c * R4 + g] += vec4f(dot(q0, k[c]), dot(q1, k[c]), dot(q2, k[c]), dot(q3, k[c]));
          }
        }
      }
      workgroupBarrier();
      for (var i = 0u; i < PER * R4; i++) { cells[i * WG + lane] = s[i]; }
      workgroupBarrier();
      for (var n = lane; n < ACROSS * PER * R4; n += WG) {
        let j = n / R4;
        if (first + j >= count) { break; }
        let cell = (j / ACROSS * R4 + n % R4) * WG + j % ACROSS * LANES;
        let x = cells[cell] + cells[cell + 1u] + cells[cell + 2u] + cells[cell + 3u];
        var w = vec4f(0.0);
        for (var r = 0u; r < 4u; r++) { w[r] = score_of(x[r], scored[r], start + i32(first + j)); }
        weights[(first + j) * R4 + n % R4] = w;
      }
    }
    workgroupBarrier();
    // Each row's maximum, then its weights.
    var high = top;
    for (var j = lane / R4; j < count; j += ROW_THREADS) {
      let x = weights[j * R4 + own];
      high = select(high, x, x > high);
    }
    high = rows_max(high, lane);
    let base = select(high, vec4f(0.0), are_neg_inf(high));
    let fade = select(exp4(top - base), vec4f(0.0), are_neg_inf(top));
    top = high;
    sum *= fade;
    for (var j = lane / R4; j < count; j += ROW_THREADS) {
      let x = weights[j * R4 + own];
      var w = vec4f();
      for (var r = 0u; r < 4u; r++) { w[r] = weight_of(x[r], base[r]); }
      weights[j * R4 + own] = w;
      sum += w;
    }
    if (lane < R4) { fades[lane] = fade; }
    workgroupBarrier();
    // Weighted values.
    if (lane < TEAMS * COLS) {
      for (var r = 0u; r < ROWS; r++) { acc[r] *= fades[r / 4u][r % 4u]; }
      for (var j0 = lane / COLS; j0 < count; j0 += AHEAD * TEAMS) {
        var x: array<vec4f, AHEAD>;
        for (var i = 0u; i < AHEAD; i++) {
          x[i] = load_value(value_at(b, head, origin + min(j0 + i * TEAMS, count - 1u)), 4u * (lane % COLS));
        }
        for (var i = 0u; i < AHEAD; i++) {
          let j = j0 + i * TEAMS;
          if (j >= count) { break; }
          if (any_odd(x[i])) {  // what a masked key holds is not read, be it NaN
            for (var r = 0u; r < ROWS; r++) {
              let w = weights[j * R4 + r / 4u][r % 4u];
              acc[r] += select(w * x[i], vec4f(0.0), bitcast<u32>(w) == 0u);
            }
            continue;
          }
          for (var g = 0u; g < R4; g++) {
            let w = weights[j * R4 + g];
            acc[4u * g] += w.x * x[i];
            acc[4u * g + 1u] += w.y * x[i];
            acc[4u * g + 2u] += w.z * x[i];
            acc[4u * g + 3u] += w.w * x[i];
          }
        }
      }
    }
  }

  // Sums of the rows, then results over the teams, PER * R4 rows at a time.
  workgroupBarrier();
  fold_sums(sum, lane);
  if (lane < R4) { tops[lane] = top; }
  for (var r0 = 0u; r0 < ROWS; r0 += PER * R4) {
    workgroupBarrier();
    for (var i = 0u; i < PER * R4; i++) { cells[i * WG + lane] = acc[r0 + i]; }
    workgroupBarrier();
    for (var n = lane; n < PER * R4 * COLS; n += WG) {
      let row = r0 + n / COLS;
      if (row >= rows) { break; }
      var total = 0.0;
      for (var i = row / 4u; i < FOLDS * R4; i += R4) { total += folds[i][row % 4u]; }
      var x = vec4f(0.0);
      for (var t = 0u; t < TEAMS; t++) { x += cells[n / COLS * WG + t * COLS + n % COLS]; }
      let index = query_index(row, b, head);
      let highest = tops[row / 4u][row % 4u];
      let empty = is_neg_inf(highest) && bitcast<u32>(total) == 0u;
      var at = p.result_base + 4u * (n % COLS);
      if (SPLIT) {
        at += (index * p.splits + part) * p.head_dim;
        if (n % COLS == 0u) {
          lse[p.lse_base + 2u * (index * p.splits + part)] = highest;
          lse[p.lse_base + 2u * (index * p.splits + part) + 1u] = total;
        }
        if (empty) { continue; }  // nobody reads it
      } else {
        at += result_at(row, b, head);
        x *= select(1.0 / total, 0.0, empty);
        if (n % COLS == 0u && p.has_lse != 0u) {
          lse[p.lse_base + index] = select(select(highest, 0.0, is_neg_inf(highest)) + f_log(total), neg_inf, empty);
        }
      }
      for (var c = 0u; c < 4u; c++) { result[at + c] = Y(x[c]); }
    }
  }
}
