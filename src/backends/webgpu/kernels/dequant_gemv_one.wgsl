// y = x · Wᵀ for one row of x: what a step of decoding does, bound by the bytes of W. A workgroup has R rows of W; its
// teams of 32 lanes take chunks of K in turn. A lane holds its elements of x in registers, as digits, and meets them with its
// bytes of every row (part_*.wgsl). Workgroups that follow each other have the same rows of W and other rows of x. With
// experts a row of x says where its W starts.
// @include "x_quads.wgsl"
// @include "part_q4_0.wgsl"
// @include "decode_q4_0.wgsl"
// @include "no_experts.wgsl"
alias W = u32;              // @type u32 | vec4<u32>
override R: u32 = 8u;       // 4, 8 or 16
override TEAMS: u32 = 4u;
// Whether all rows' code is written out, four rows at a time, or a loop has four rows under way: which of them the driver's
// compiler makes more of differs between schemes (docs/performance.md).
override UNROLLED: bool = true;

struct Params {
  m: u32,             // rows of x
  n: u32,             // rows of W
  k: u32,
  row_bytes: u32,     // of a row of W
  experts: u32,       // 0: x has one W
  x_base: u32,
  w_byte_base: u32,
  y_base: u32,
  choice_base: u32,
}
@group(0) @binding(1) var<storage, read>       w: array<W>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

const THREADS: u32 = TEAMS * 32u;
var<workgroup> cells: array<f32, R * THREADS>;
var<workgroup> totals: array<f32, R * 8u>;

// Element by element, as decode8 has them: parts put scales behind sums, which differs where infinities meet.
fn careful_row(token: u32, at: u32) -> f32 {
  var sum = 0.0;
  for (var k = 0u; k < p.k; k += 8u) {
    let v = decode8(at + (k / BLOCK) * BYTES, k % BLOCK);
    sum += dot(v.a, x4(token, k)) + dot(v.b, x4(token, k + 4u));
  }
  return sum;
}

struct Raw4 {
  a: Raw,
  b: Raw,
  c: Raw,
  d: Raw,
}
// The lane's bytes of a row, of one beyond the last as of that.
fn fetch_row(at: u32, row: u32, lane: u32) -> Raw { return fetch(at + min(row, p.n - 1u) * p.row_bytes, lane); }
fn fetch4(at: u32, row: u32, lane: u32) -> Raw4 {
  return Raw4(fetch_row(at, row, lane), fetch_row(at, row + 1u, lane), fetch_row(at, row + 2u, lane),
              fetch_row(at, row + 3u, lane));
}
fn parts4(v: Raw4, lane: u32) -> vec4f {
  return vec4f(part(v.a, lane), part(v.b, lane), part(v.c, lane), part(v.d, lane));
}
fn put4(r: u32, sums: vec4f, thread: u32) {
  cells[r * THREADS + thread] = sums.x;
  cells[(r + 1u) * THREADS + thread] = sums.y;
  cells[(r + 2u) * THREADS + thread] = sums.z;
  cells[(r + 3u) * THREADS + thread] = sums.w;
}
fn add(r: u32, v: Raw, thread: u32) { cells[r * THREADS + thread] += part(v, thread & 31u); }

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let id = group.x + group.y * groups.x;
  let token = id % p.m;
  let first = id / p.m * R;
  let lane = thread & 31u;
  let team = thread >> 5u;
  let own = expert_of(token);
  let exists = first < p.n && own != NO_EXPERT;
  let slab = p.w_byte_base + own * p.n * p.row_bytes;
  if (!UNROLLED) {
    for (var r = 0u; r < R; r++) { cells[r * THREADS + thread] = 0.0; }
  }
  var sums0 = vec4f();  // of four rows each: an array might not stay in registers
  var sums1 = vec4f();
  var sums2 = vec4f();
  var sums3 = vec4f();
  if (exists) {
    for (var c = team; c * CHUNK + lane_first(lane) < p.k; c += TEAMS) {
      let at = slab + c * CHUNK_BYTES;
      var a = fetch4(at, first, lane);
      load_x(token, c * CHUNK, lane);
      if (UNROLLED) {
        if (R == 4u) {
          sums0 += parts4(a, lane);
          continue;
        }
        let b = fetch4(at, first + 4u, lane);
        sums0 += parts4(a, lane);
        if (R == 8u) {
          sums1 += parts4(b, lane);
          continue;
        }
        let d = fetch4(at, first + 8u, lane);
        sums1 += parts4(b, lane);
        let e = fetch4(at, first + 12u, lane);
        sums2 += parts4(d, lane);
        sums3 += parts4(e, lane);
        continue;
      }
      for (var r = 0u; r < R; r += 4u) {  // behind the last rows it is the last one again
        let v = a;
        a.a = fetch_row(at, first + min(r + 4u, R - 1u), lane);
        add(r, v.a, thread);
        a.b = fetch_row(at, first + min(r + 5u, R - 1u), lane);
        add(r + 1u, v.b, thread);
        a.c = fetch_row(at, first + min(r + 6u, R - 1u), lane);
        add(r + 2u, v.c, thread);
        a.d = fetch_row(at, first + min(r + 7u, R - 1u), lane);
        add(r + 3u, v.d, thread);
      }
    }
  }
  if (UNROLLED) {
    put4(0u, sums0, thread);
    if (R > 4u) { put4(4u, sums1, thread); }
    if (R > 8u) {
      put4(8u, sums2, thread);
      put4(12u, sums3, thread);
    }
  }
  // Eight threads have a row; those of other rows read other banks.
  workgroupBarrier();
  for (var i = thread; i < R * 8u; i += THREADS) {
    let row = i / 8u;
    var total = 0.0;
    for (var j = 0u; j < THREADS / 8u; j++) { total += cells[row * THREADS + (j + row) % (THREADS / 8u) * 8u + i % 8u]; }
    totals[i] = total;
  }
  workgroupBarrier();
  if (thread >= R || first + thread >= p.n) { return; }
  var sum = 0.0;
  for (var i = 0u; i < 8u; i++) { sum += totals[thread * 8u + i]; }
  if (exists && (bitcast<u32>(sum) & 0x7f800000u) == 0x7f800000u) {
    sum = careful_row(token, slab + (first + thread) * p.row_bytes);
  }
  y[p.y_base + token * p.n + first + thread] = sum;
}
