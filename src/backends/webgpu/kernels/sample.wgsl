// An index per row of logits: temperature, top-k, top-p, then Gumbel-max with Threefry-2x32-20 (spec 10, 6). One
// workgroup per row. Rows with NaN or +inf, or of -inf alone, give their largest logit, NaN being the smallest.
// @include "scalar.wgsl"
// @include "key.wgsl"
// @include "radix.wgsl"
override WG: u32 = 256u;
override HAS_RNG: bool = false;

struct Params {
  rows: u32,
  cols: u32,
  top_k: u32,        // 0: off; else below cols
  top_p: u32,        // of 2^32; see has_top_p
  has_top_p: u32,
  one: u32,          // a weight of 1, in units of 2^32: what a whole row weighs has at most 64 bits
  scale: f32,        // 1 / temperature
  seed_low: u32,     // where there is no rng operand
  seed_high: u32,
  src_base: u32,
  rng_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read>       rng: array<u32>;
@group(0) @binding(2) var<storage, read_write> dst: array<i32>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> cells: array<vec2<u32>, WG>;
var<workgroup> faults: atomic<u32>;
var<workgroup> high_bins: array<atomic<u32>, 256>;  // beside bins: weights of 64 bits
var<workgroup> target_cells: array<u32, 2>;
var<private> row_first: u32;

fn row_key(i: u32) -> u32 { return key_of(src[row_first + i]); }

// The largest key and its smallest index, of every thread's.
fn best_of(part: vec2<u32>, thread: u32) -> vec2<u32> {
  workgroupBarrier();
  cells[thread] = part;
  for (var half = WG / 2u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (thread < half) {
      let a = cells[thread];
      let b = cells[thread + half];
      if (b.x > a.x || (b.x == a.x && b.y < a.y)) { cells[thread] = b; }
    }
  }
  workgroupBarrier();
  return cells[0];
}

fn rotated(v: u32, n: u32) -> u32 { return (v << n) | (v >> (32u - n)); }
fn four_rounds(state: vec2<u32>, r: vec4<u32>) -> vec2<u32> {
  var s = state;
  s.x += s.y; s.y = rotated(s.y, r.x) ^ s.x;
  s.x += s.y; s.y = rotated(s.y, r.y) ^ s.x;
  s.x += s.y; s.y = rotated(s.y, r.z) ^ s.x;
  s.x += s.y; s.y = rotated(s.y, r.w) ^ s.x;
  return s;
}
fn threefry(counter: vec2<u32>, key: vec2<u32>) -> vec2<u32> {
  let third = key.x ^ key.y ^ 0x1BD11BDAu;
  const even = vec4<u32>(13u, 15u, 26u, 6u);
  const odd = vec4<u32>(17u, 29u, 16u, 24u);
  var s = counter + key;
  s = four_rounds(s, even) + vec2<u32>(key.y, third + 1u);
  s = four_rounds(s, odd) + vec2<u32>(third, key.x + 2u);
  s = four_rounds(s, even) + vec2<u32>(key.x, key.y + 3u);
  s = four_rounds(s, odd) + vec2<u32>(key.y, third + 4u);
  return four_rounds(s, even) + vec2<u32>(third, key.x + 5u);
}

// Cephes' logf for normal numbers: right to the last digits near 1, where WGSL's log is not.
fn precise_log(v: f32) -> f32 {
  let bits = bitcast<u32>(v);
  var e = f32(i32(bits >> 23u) - 126);
  var m = bitcast<f32>((bits & 0x007fffffu) | 0x3f000000u);
  if (m < 0.70710678) {
    e -= 1.0;
    m = m + m;
  }
  m -= 1.0;
  let z = m * m;
  var y = 7.0376836292e-2;
  y = y * m - 1.1514610310e-1;
  y = y * m + 1.1676998740e-1;
  y = y * m - 1.2420140846e-1;
  y = y * m + 1.4249322787e-1;
  y = y * m - 1.6668057665e-1;
  y = y * m + 2.0000714765e-1;
  y = y * m - 2.4999993993e-1;
  y = y * m + 3.3333331174e-1;
  y = y * m * z + e * -2.12194440e-4 - 0.5 * z;
  return m + y + e * 0.693359375;
}

// exp(z) * p.one as a number of 64 bits, half of them a fraction: sums of any order are the same.
fn weight_of(z: f32) -> vec2<u32> {
  let w = exp(z) * f32(p.one);
  let high = floor(w);
  return vec2<u32>(u32((w - high) * 4294967040.0), u32(high));  // low, high
}
fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn less64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn mul32(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let mid1 = (a >> 16u) * (b & 0xffffu);
  let mid2 = (a & 0xffffu) * (b >> 16u);
  var r = vec2<u32>(low, (a >> 16u) * (b >> 16u));
  r = add64(r, vec2<u32>(mid1 << 16u, mid1 >> 16u));
  return add64(r, vec2<u32>(mid2 << 16u, mid2 >> 16u));
}

fn z_of(i: u32, top: f32) -> f32 { return (f32(src[row_first + i]) - top) * p.scale; }

// The rank of the last element of the shortest prefix, in the order of ranks, whose weights reach top_p of all that
// reach `floor_rank`.
fn cut_by_weight(floor_rank: vec2<u32>, top: f32, thread: u32) -> vec2<u32> {
  var cut = vec2<u32>(0u, 0u);
  for (var round = 0u; round < 8u; round++) {
    for (var i = thread; i < 256u; i += WG) {
      atomicStore(&bins[i], 0u);
      atomicStore(&high_bins[i], 0u);
    }
    workgroupBarrier();
    let mask = mask_above(round);
    for (var i = thread; i < p.cols; i += WG) {
      let rank = rank_of(row_key(i), i);
      if (at_least(rank, floor_rank) && all((rank & mask) == cut)) {
        let w = weight_of(z_of(i, top));
        let digit = digit_of(rank, round);
        let old = atomicAdd(&bins[digit], w.x);
        atomicAdd(&high_bins[digit], w.y + select(0u, 1u, old + w.x < old));
      }
    }
    workgroupBarrier();
    if (thread == 0u) {
      var wanted = vec2<u32>(target_cells[0], target_cells[1]);
      if (round == 0u) {
        var all = vec2<u32>(0u, 0u);
        for (var b = 0u; b < 256u; b++) { all = add64(all, vec2<u32>(atomicLoad(&bins[b]), atomicLoad(&high_bins[b]))); }
        let low = mul32(all.x, p.top_p);
        wanted = add64(mul32(all.y, p.top_p), vec2<u32>(low.y, 0u));
        if (low.x != 0u) { wanted = add64(wanted, vec2<u32>(1u, 0u)); }
        if (wanted.x == 0u && wanted.y == 0u) { wanted.x = 1u; }  // at least one element
      }
      var digit = 255u;
      for (; digit > 0u; digit--) {
        let w = vec2<u32>(atomicLoad(&bins[digit]), atomicLoad(&high_bins[digit]));
        if (!less64(w, wanted)) { break; }
        wanted = sub64(wanted, w);
      }
      picked[0] = digit;
      target_cells[0] = wanted.x;
      target_cells[1] = wanted.y;
    }
    cut = with_digit(cut, round, workgroupUniformLoad(&picked[0]));
  }
  return cut;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= p.rows) { return; }
  row_first = p.src_base + row * p.cols;
  if (thread == 0u) { atomicStore(&faults, 0u); }
  workgroupBarrier();
  var part = vec2<u32>(0u, 0xffffffffu);
  var fault = 0u;
  for (var i = thread; i < p.cols; i += WG) {
    let key = row_key(i);
    if (key > part.x || part.y == 0xffffffffu) { part = vec2<u32>(key, i); }
    if (key == NAN_KEY || key == 0xff800000u) { fault = 1u; }  // NaN or +inf
  }
  if (fault == 1u) { atomicStore(&faults, 1u); }
  let best = best_of(part, thread);
  if (thread == 0u) { picked[0] = select(atomicLoad(&faults), 1u, best.x <= 0x007fffffu); }  // or -inf alone
  if (workgroupUniformLoad(&picked[0]) == 1u) {
    if (thread == 0u) { dst[p.dst_base + row] = bitcast<i32>(best.y); }
    return;
  }

  let top = f32(src[row_first + best.y]);
  var cut = vec2<u32>(0u, 0u);
  if (p.top_k > 0u) { cut = cut_after(p.top_k, thread); }
  if (p.has_top_p != 0u) {
    let by_weight = cut_by_weight(cut, top, thread);
    if (at_least(by_weight, cut)) { cut = by_weight; }
  }

  var key = threefry(vec2<u32>(0u, 0u), vec2<u32>(p.seed_low, p.seed_high));
  if (HAS_RNG) {
    key = threefry(vec2<u32>(rng[p.rng_base + 2u], rng[p.rng_base + 3u]),
                   vec2<u32>(rng[p.rng_base], rng[p.rng_base + 1u]));
  }
  part = vec2<u32>(0u, 0xffffffffu);
  for (var i = thread; i < p.cols; i += WG) {
    if (!at_least(rank_of(row_key(i), i), cut)) { continue; }
    let unit = f32(threefry(vec2<u32>(row, i), key).x >> 8u) / 16777216.0;
    let z = z_of(i, top);
    let score = z - precise_log(-precise_log(max(unit, 1e-30)));
    // As a word that grows with the score; every word of a kept token is above 0.
    let bits = bitcast<u32>(score);
    let word = max(select(bits ^ 0x80000000u, ~bits, (bits >> 31u) == 1u), 1u);
    if (z > -1000.0 && (word > part.x)) { part = vec2<u32>(word, i); }
  }
  let chosen = best_of(part, thread);
  if (thread == 0u) { dst[p.dst_base + row] = bitcast<i32>(chosen.y); }
}
