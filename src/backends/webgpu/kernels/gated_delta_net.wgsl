// The gated delta rule along a sequence: S = exp(g) S, d = (v - S^T k) beta, S += k d^T, o = S^T q / sqrt(n). Columns of
// the state are independent: LANES threads share a column, each with 4 * OWN of its rows in registers for the whole
// sequence; a tile of STEPS tokens lies in workgroup memory.
// @include "decay.wgsl"
alias T = f32;             // @type f32 | f16
alias TI = f32;            // of the state before
alias TO = f32;            // of the state after
override LANES: u32 = 4u;  // a power of two
override OWN: u32 = 8u;    // LANES * OWN vectors hold a column
override STEPS: u32 = 8u;
override HAS_STATE: bool = false;
const WG = 128u;
const COLUMNS = WG / LANES;
const VECTORS = LANES * OWN;

struct Params {
  groups: u32,             // workgroups
  seq: u32,
  used: u32,               // tokens that count
  heads: u32,
  width: u32,
  scale: f32,              // 1 / sqrt(n)
  keeps_state: u32,        // is the state after wanted?
  query_base: u32,
  key_base: u32,
  value_base: u32,
  gate_base: u32,
  beta_base: u32,
  before_base: u32,
  y_base: u32,
  after_base: u32,
}
@group(0) @binding(0) var<storage, read> query: array<T>;
@group(0) @binding(1) var<storage, read> key: array<T>;
@group(0) @binding(2) var<storage, read> value: array<T>;
@group(0) @binding(3) var<storage, read> gate: array<T>;
@group(0) @binding(4) var<storage, read> beta: array<T>;
@group(0) @binding(5) var<storage, read> before: array<TI>;
@group(0) @binding(6) var<storage, read_write> y: array<T>;
@group(0) @binding(7) var<storage, read_write> after: array<TO>;
@group(0) @binding(8) var<uniform> p: Params;

var<workgroup> queries: array<vec4f, STEPS * VECTORS>;
var<workgroup> keys: array<vec4f, STEPS * VECTORS>;
var<workgroup> outputs: array<f32, STEPS * WG>;   // a thread's part of o
var<workgroup> recalled: array<f32, 2u * WG>;     // a thread's part of S^T k, of two tokens in turn

fn load_query(at: u32, d: u32) -> vec4f {
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.width) { r[i] = f32(query[p.query_base + at + d + i]); } }
  return r;
}
fn load_key(at: u32, d: u32) -> vec4f {
  var r = vec4f(0.0);
  for (var i = 0u; i < 4u; i++) { if (d + i < p.width) { r[i] = f32(key[p.key_base + at + d + i]); } }
  return r;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let blocks = (p.width + COLUMNS - 1u) / COLUMNS;
  let head = id / blocks % p.heads;
  let b = id / blocks / p.heads;
  let first_column = id % blocks * COLUMNS;
  let c = lane % COLUMNS;
  let part = lane / COLUMNS;
  let column = first_column + c;
  let live = column < p.width;
  let state_at = (b * p.heads + head) * p.width * p.width + column;

  var state = array<vec4f, OWN>();
  if (HAS_STATE && live) {
    for (var i = 0u; i < OWN; i++) {
      for (var e = 0u; e < 4u; e++) {
        let row = 4u * (part * OWN + i) + e;
        if (row < p.width) { state[i][e] = f32(before[p.before_base + state_at + row * p.width]); }
      }
    }
  }
  for (var t0 = 0u; t0 < p.used; t0 += STEPS) {
    let steps = min(STEPS, p.used - t0);
    workgroupBarrier();
    for (var n = lane; n < steps * VECTORS; n += WG) {
      let at = ((b * p.seq + t0 + n / VECTORS) * p.heads + head) * p.width;
      queries[n] = load_query(at, 4u * (n % VECTORS));
      keys[n] = load_key(at, 4u * (n % VECTORS));
    }
    workgroupBarrier();
    for (var step = 0u; step < steps; step++) {
      let token = (b * p.seq + t0 + step) * p.heads + head;
      let decay = decay_of(f32(gate[p.gate_base + token]));
      let strength = f32(beta[p.beta_base + token]);
      var wanted = 0.0;
      if (live) { wanted = f32(value[p.value_base + token * p.width + column]); }
      let first = step * VECTORS + part * OWN;
      var sum = vec4f(0.0);
      for (var i = 0u; i < OWN; i++) {
        state[i] = select(state[i] * decay.factor, state[i] + state[i] * decay.change, decay.small);
        sum += state[i] * keys[first + i];
      }
      let turn = step % 2u * WG;
      recalled[turn + lane] = sum.x + sum.y + sum.z + sum.w;
      workgroupBarrier();
      var found = 0.0;
      for (var i = 0u; i < LANES; i++) { found += recalled[turn + i * COLUMNS + c]; }
      let d = (wanted - found) * strength;
      sum = vec4f(0.0);
      for (var i = 0u; i < OWN; i++) {
        state[i] += keys[first + i] * d;
        sum += state[i] * queries[first + i];
      }
      outputs[step * WG + lane] = sum.x + sum.y + sum.z + sum.w;
    }
    workgroupBarrier();
    for (var n = lane; n < steps * COLUMNS; n += WG) {
      let at = first_column + n % COLUMNS;
      if (at < p.width) {
        var sum = 0.0;
        for (var i = 0u; i < LANES; i++) { sum += outputs[n / COLUMNS * WG + i * COLUMNS + n % COLUMNS]; }
        y[p.y_base + ((b * p.seq + t0 + n / COLUMNS) * p.heads + head) * p.width + at] = T(sum * p.scale);
      }
    }
  }
  if (p.keeps_state != 0u && live) {
    for (var i = 0u; i < OWN; i++) {
      for (var e = 0u; e < 4u; e++) {
        let row = 4u * (part * OWN + i) + e;
        if (row < p.width) { after[p.after_base + state_at + row * p.width] = TO(state[i][e]); }
      }
    }
  }
}
