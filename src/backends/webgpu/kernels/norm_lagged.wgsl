// Norms of rows that no workgroup holds, read from memory once, in one dispatch: y = (x - mean) / sqrt(variance + eps) * gamma +
// beta. Tiles are taken in order: workgroups sum them, the one with a row's last tile puts its sums together, and p.lag tiles
// later, while a cache still has them, others take their results, each of which waits until its rows' sums are there. A ticket
// makes the order one of time: what a workgroup waits for has begun before it did. Numbers pass between workgroups in atomic
// words, whose zeros mean that nothing is there yet: so no order of memory is asked for.
// `board` is zeros when the dispatch begins: a ticket, then each row's numbers, and those of its tiles.
// @include "scalar.wgsl"
// @include "lanes4.wgsl"
// @include "reduce.wgsl"
// @include "reduce3.wgsl"
// @include "norm_root.wgsl"
// @include "gamma_index.wgsl"
alias V = vec4<f32>;             // @type vec4<f32> | vec4<f16>
alias G = vec4<f32>;             // of gamma: as V, or one element
alias GF = vec4<f32>;            // @type f32 | vec4<f32>: G, as f32
override HAS_BETA: bool = true;
override CENTRED: bool = true;   // less the mean; an rms norm is not
override GROUPED: bool = false;  // rows are groups of channels: per_gamma consecutive elements share a gamma
override WG: u32 = 256u;
override KEPT: u32 = 8u;         // loads of a thread that takes results
override SUMMED: u32 = 8u;       // and of one that sums, at most as many: a row's tiles are of about one size
override ROWS: u32 = 1u;         // rows whose results a workgroup takes together, a part of each: their gammas are the same
override ONLY: u32 = 3u;         // a kind of tasks, where workgroups may not wait for others: three dispatches then; or NOTHING
const SUM: u32 = 0u;             // a tile's numbers
const MERGE: u32 = 1u;           // of those, a row's: after the sum of its last tile
const FINISH: u32 = 2u;          // a tile's results
const NOTHING: u32 = 3u;
const LINE: u32 = 32u;           // words that atomics on other words do not slow down
const NUMBERS: u32 = 3u;         // mean, what it leaves, 1 / sqrt(variance + eps)
const TILE_NUMBERS: u32 = 4u;    // mean, what it leaves, roots of the sums of squared deviations (norm_root.wgsl)
const EACH: u32 = KEPT / ROWS;   // loads of a row whose results a thread takes

struct Params {
  outer: u32,
  cols: u32,
  chunks: u32,                   // tiles of a row
  lag: u32,                      // in tiles
  eps: f32,
  groups: u32,                   // rows that follow each other with gammas of their own
  group_channels: u32,           // gammas of a row
  per_gamma: u32,                // elements that share one
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dst_base: u32,
  board_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read_write> dst: array<V>;
@group(0) @binding(4) var<storage, read_write> board: array<atomic<u32>>;
@group(0) @binding(5) var<uniform>             p: Params;

var<workgroup> numbers: array<f32, NUMBERS * ROWS>;
var<workgroup> ticket_word: u32;

struct Task {
  kind: u32,
  row: u32,                      // of results, the first of ROWS
  part: u32,                     // of the row
}
fn take_task(id: u32, thread: u32) -> Task {
  let per = ROWS * p.chunks;
  let all = (p.outer + ROWS - 1u) / ROWS * per;
  var lag = min(max(p.lag, per), all);
  var ticket = id;
  if (ONLY == NOTHING) {
    if (thread == 0u) { ticket_word = atomicAdd(&board[p.board_base], 1u); }
    ticket = workgroupUniformLoad(&ticket_word);
  } else {
    lag = all;
    ticket = select(select(id, 2u * all, id >= all), id + all, ONLY == FINISH);
  }
  var task: Task;
  var at = ticket;
  if (ticket >= lag) {  // sums and results in turns, then the last results
    let later = ticket - lag;
    let turns = 2u * (all - lag);
    task.kind = select(SUM, FINISH, later >= turns || later % 2u == 0u);
    at = select(select(lag + later / 2u, later / 2u, task.kind == FINISH), all - lag + later - turns, later >= turns);
  }
  task.row = at / per * ROWS;
  task.part = at % per;
  if (task.kind == SUM) {
    task.row += task.part / p.chunks;
    task.part = task.part % p.chunks;
  }
  let beyond = task.kind == FINISH && task.part * EACH * WG >= p.cols;
  if (at >= all || task.row >= p.outer || beyond) { task.kind = NOTHING; }
  return task;
}
// Does the workgroup with this task do that, too?
fn does(kind: u32, task: Task) -> bool {
  if (ONLY != NOTHING && ONLY != kind) { return false; }
  return select(task.kind == kind, task.kind == SUM && task.part + 1u == p.chunks, kind == MERGE);
}

fn number_at(row: u32) -> u32 { return p.board_base + LINE + row * NUMBERS; }
fn tile_at(row: u32, part: u32) -> u32 { return number_at(p.outer) + (row * p.chunks + part) * TILE_NUMBERS; }
fn publish(at: u32, v: f32) {
  let code = ~bitcast<u32>(v);
  atomicStore(&board[at], select(code, 1u, code == 0u));  // another NaN
}
fn seen(at: u32) -> f32 {
  var code = atomicLoad(&board[at]);
  while (code == 0u) { code = atomicLoad(&board[at]); }
  return bitcast<f32>(~code);
}

fn tile_size(part: u32) -> f32 { return f32(min(SUMMED * WG, p.cols - part * SUMMED * WG) * VECTOR); }

fn sum_tile(row: u32, part: u32, thread: u32) {
  let start = part * SUMMED * WG + thread;
  let base = p.src_base + row * p.cols;
  var kept: array<F, SUMMED>;
  for (var k = 0u; k < SUMMED; k++) { kept[k] = F(src[base + min(start + k * WG, p.cols - 1u)]); }
  let n = tile_size(part);
  var mean = 0.0;
  if (CENTRED) {
    var sum = F();
    for (var k = 0u; k < SUMMED; k++) {
      if (start + k * WG < p.cols) { sum += kept[k]; }
    }
    mean = wg_sum(lanes_sum(sum), thread) / n;
  }
  var rest = F();
  var squares = F();
  var smaller = F();
  for (var k = 0u; k < SUMMED; k++) {
    if (start + k * WG < p.cols) {
      let d = kept[k] - mean;
      let s = d * SMALLER;
      rest += d;
      squares += d * d;
      smaller += s * s;
    }
  }
  let sums = wg_sum3(vec3<f32>(lanes_sum(rest), lanes_sum(squares), lanes_sum(smaller)), thread);
  if (thread == 0u) {
    let left = select(0.0, sums.x / n, CENTRED);
    let at = tile_at(row, part);
    publish(at, mean);
    publish(at + 1u, left);
    publish(at + 2u, sqrt(centred_squares(sums.y, left, n)));
    publish(at + 3u, sqrt(sums.z));
  }
}

fn tile_codes(at: u32) -> vec4u {
  return vec4u(atomicLoad(&board[at]), atomicLoad(&board[at + 1u]), atomicLoad(&board[at + 2u]), atomicLoad(&board[at + 3u]));
}
// All of a tile's numbers, asked for together.
fn seen_tile(row: u32, part: u32) -> vec4f {
  let at = tile_at(row, part);
  var codes = tile_codes(at);
  while (any(codes == vec4u())) { codes = tile_codes(at); }
  return bitcast<vec4f>(~codes);
}

// Of the tiles' means and roots those of the row, as norm_merge.wgsl.
fn merge_row(row: u32, thread: u32) {
  let n = f32(p.cols * VECTOR);
  var sum = 0.0;
  var own = vec4f();  // of the thread's first tile: mostly its only one
  for (var j = thread; j < p.chunks; j += WG) {
    let tile = seen_tile(row, j);
    if (j == thread) { own = tile; }
    sum += tile.x * tile_size(j);
  }
  let mean = wg_sum(sum, thread) / n;
  var part = vec3<f32>();
  for (var j = thread; j < p.chunks; j += WG) {
    var tile = own;
    if (j != thread) { tile = seen_tile(row, j); }
    let size = tile_size(j);
    let d = tile.x - mean + tile.y;
    let s = d * SMALLER;
    part += vec3<f32>(d * size, tile.z * tile.z + d * d * size, tile.w * tile.w + s * s * size);
  }
  let sums = wg_sum3(part, thread);
  if (thread == 0u) {
    let rest = sums.x / n;
    let at = number_at(row);
    publish(at, mean);
    publish(at + 1u, rest);
    publish(at + 2u, inverse_root(centred_squares(sums.y, rest, n), sums.z, n, p.eps));
  }
}

fn finish_tile(first: u32, part: u32, thread: u32) {
  let rows = min(ROWS, p.outer - first);
  let start = part * EACH * WG + thread;
  var kept: array<F, KEPT>;
  var scales: array<GF, KEPT>;
  var shifts: array<GF, KEPT>;
  for (var k = 0u; k < EACH; k++) {
    let c = min(start + k * WG, p.cols - 1u);
    for (var r = 0u; r < ROWS; r++) { kept[r * EACH + k] = F(src[p.src_base + (first + min(r, rows - 1u)) * p.cols + c]); }
    let at = select(c, channel_of(first, c * VECTOR), GROUPED);
    scales[k] = GF(gamma[p.gamma_base + at]);
    if (HAS_BETA) { shifts[k] = GF(beta[p.beta_base + at]); }
  }
  if (thread < NUMBERS * rows) { numbers[thread] = seen(number_at(first) + thread); }
  workgroupBarrier();
  for (var r = 0u; r < ROWS; r++) {
    if (r < rows) {
      for (var k = 0u; k < EACH; k++) {
        let c = start + k * WG;
        if (c < p.cols) {
          var out = (kept[r * EACH + k] - numbers[3u * r] - numbers[3u * r + 1u]) * numbers[3u * r + 2u] * F(scales[k]);
          if (HAS_BETA) { out += F(shifts[k]); }
          dst[p.dst_base + (first + r) * p.cols + c] = V(out);
        }
      }
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let task = take_task(group.x + group.y * groups.x, thread);
  if (does(SUM, task)) { sum_tile(task.row, task.part, thread); }
  if (does(MERGE, task)) { merge_row(task.row, thread); }
  if (does(FINISH, task)) { finish_tile(task.row, task.part, thread); }
}
