// y[t, c] = sum over j of w[c, j] * u[t + j, c], u being the rows of the state, then those of x. A thread carries one
// channel of one sequence through all rows, the last TAPS of them in registers; the state after may lie in the bytes of
// the one before.
alias T = f32;             // @type f32 | f16
override TAPS: u32 = 4u;
override HAS_USED: bool = false;

struct Params {
  n: u32,                  // channels of all sequences
  seq: u32,
  used: u32,               // rows that count
  channels: u32,
  wants_y: u32,
  wants_state: u32,
  x_base: u32,
  w_base: u32,
  before_base: u32,
  rows_base: u32,
  y_base: u32,
  after_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       w: array<T>;
@group(0) @binding(2) var<storage, read>       before: array<T>;
@group(0) @binding(3) var<storage, read>       rows: array<i32>;  // in use, by sequence
@group(0) @binding(4) var<storage, read_write> y: array<T>;
@group(0) @binding(5) var<storage, read_write> after: array<T>;
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let b = i / p.channels;
  let c = i - b * p.channels;
  var used = p.used;
  if (HAS_USED) { used = u32(clamp(rows[p.rows_base + b], 0, i32(p.used))); }
  var u = array<f32, TAPS>();      // the last one is the row itself
  var weight = array<f32, TAPS>();
  let state = b * (TAPS - 1u) * p.channels + c;
  for (var j = 0u; j < TAPS; j++) { weight[j] = f32(w[p.w_base + c * TAPS + j]); }
  for (var j = 0u; j < TAPS - 1u; j++) { u[j + 1u] = f32(before[p.before_base + state + j * p.channels]); }
  var next = array<f32, TAPS>();   // rows of the state after: read before any of it is written
  for (var j = 0u; j < TAPS - 1u; j++) {
    let t = used + j;
    if (t + 1u < TAPS) { next[j] = u[t + 1u]; }
    else { next[j] = f32(x[p.x_base + (b * p.seq + t + 1u - TAPS) * p.channels + c]); }
  }
  for (var t = 0u; t < p.used; t++) {
    let at = (b * p.seq + t) * p.channels + c;
    for (var j = 0u; j < TAPS - 1u; j++) { u[j] = u[j + 1u]; }
    u[TAPS - 1u] = f32(x[p.x_base + at]);
    var sum = 0.0;
    for (var j = 0u; j < TAPS; j++) { sum += weight[j] * u[j]; }
    if (p.wants_y != 0u) { y[p.y_base + at] = T(sum); }
  }
  if (p.wants_state != 0u) {
    for (var j = 0u; j < TAPS - 1u; j++) { after[p.after_base + state + j * p.channels] = T(next[j]); }
  }
}
