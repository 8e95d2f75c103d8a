// y = x · Wᵀ for one row of x: what a step of decoding does, bound by the bytes of W. A workgroup has R rows of W; its
// teams of 32 lanes take chunks of K in turn. A lane holds its elements of x in registers and meets them with its bytes of
// every row (part_*.wgsl). With experts a workgroup has one row of x, whose expert says where its W starts.
// @include "x_quads.wgsl"
// @include "part_q4_0.wgsl"
// @include "decode_q4_0.wgsl"
// @include "no_experts.wgsl"
alias W = u32;              // @type u32 | vec4<u32>
override R: u32 = 8u;       // a multiple of four
override TEAMS: u32 = 4u;

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

// Element by element, as decode8 has them: parts put scales behind sums, which differs where infinities meet.
fn careful_row(token: u32, at: u32) -> f32 {
  var sum = 0.0;
  for (var k = 0u; k < p.k; k += 8u) {
    let v = decode8(at + (k / BLOCK) * BYTES, k % BLOCK);
    sum += dot(v.a, x4(token, k)) + dot(v.b, x4(token, k + 4u));
  }
  return sum;
}

fn row_at(row: u32) -> u32 { return min(row, p.n - 1u) * p.row_bytes; }

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let id = group.x + group.y * groups.x;
  let tiles = (p.n + R - 1u) / R;
  let token = id / tiles;
  let first = (id % tiles) * R;
  let lane = thread & 31u;
  let team = thread >> 5u;
  let own = expert_of(token);
  set_digits();
  let exists = token < p.m && own != NO_EXPERT;
  let slab = p.w_byte_base + own * p.n * p.row_bytes;
  for (var r = 0u; r < R; r++) { cells[r * THREADS + thread] = 0.0; }
  if (exists) {
    for (var c = team; c * CHUNK < p.k; c += TEAMS) {
      if (c * CHUNK + lane_first(lane) < p.k) {
        let at = slab + c * CHUNK_BYTES;
        if (CHUNK < 1024u) {  // reading is the limit: no row is read more than once
          load_x(token, c * CHUNK, lane);
          for (var r = 0u; r < R; r += 4u) {
            let cell = r * THREADS + thread;
            let v0 = fetch(at + row_at(first + r), lane);
            let v1 = fetch(at + row_at(first + r + 1u), lane);
            let v2 = fetch(at + row_at(first + r + 2u), lane);
            let v3 = fetch(at + row_at(first + r + 3u), lane);
            cells[cell] += part(v0, lane);
            cells[cell + THREADS] += part(v1, lane);
            cells[cell + 2u * THREADS] += part(v2, lane);
            cells[cell + 3u * THREADS] += part(v3, lane);
          }
          continue;
        }
        // Two rows are under way while the two before them are summed; behind the last ones it is the last one again.
        var a = fetch(at + row_at(first), lane);
        var b = fetch(at + row_at(first + 1u), lane);
        load_x(token, c * CHUNK, lane);
        prepare();
        for (var r = 0u; r < R; r += 4u) {
          let cell = r * THREADS + thread;
          let next_a = fetch(at + row_at(first + r + 2u), lane);
          let next_b = fetch(at + row_at(first + r + 3u), lane);
          cells[cell] += part(a, lane);
          cells[cell + THREADS] += part(b, lane);
          a = fetch(at + row_at(first + min(r + 4u, R - 1u)), lane);
          b = fetch(at + row_at(first + min(r + 5u, R - 1u)), lane);
          cells[cell + 2u * THREADS] += part(next_a, lane);
          cells[cell + 3u * THREADS] += part(next_b, lane);
        }
      }
    }
  }
  // PARTS threads have a row: each adds R numbers of it, then they add theirs.
  const PARTS = THREADS / R;
  let row = thread / PARTS;
  let own_part = thread % PARTS;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < R; i++) { total += cells[row * THREADS + own_part + i * PARTS]; }
  workgroupBarrier();
  cells[row * THREADS + own_part] = total;
  for (var half = PARTS / 2u; half > 0u; half = half >> 1u) {
    workgroupBarrier();
    if (own_part < half) { cells[row * THREADS + own_part] += cells[row * THREADS + own_part + half]; }
  }
  workgroupBarrier();
  if (thread >= R || first + thread >= p.n || token >= p.m) { return; }
  var sum = cells[thread * THREADS];
  if (exists && (bitcast<u32>(sum) & 0x7f800000u) == 0x7f800000u) {
    sum = careful_row(token, slab + (first + thread) * p.row_bytes);
  }
  y[p.y_base + token * p.n + first + thread] = sum;
}
