// The recurrence S = exp(delta A) S + delta B x, y = C S along a sequence. LANES threads share a channel's state, each
// with OWN entries in registers; a tile of STEPS time steps is computed before their parts of y are added up.
// @include "scalar.wgsl"
// @include "decay.wgsl"
alias T = f32;             // @type f32 | f16
alias TI = f32;            // of the state before
alias TO = f32;            // of the state after
override LANES: u32 = 16u; // a power of two up to WG
override OWN: u32 = 1u;
override HAS_STATE: bool = false;
const WG = 256u;
const STEPS = 8u;
const CHANNELS = WG / LANES;

struct Params {
  groups: u32,             // workgroups
  seq: u32,
  used: u32,               // tokens that count
  channels: u32,
  states: u32,
  keeps_state: u32,        // is the state after wanted?
  x_base: u32,
  delta_base: u32,
  rates_base: u32,
  gain_base: u32,
  readout_base: u32,
  before_base: u32,
  y_base: u32,
  after_base: u32,
}
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> delta: array<T>;
@group(0) @binding(2) var<storage, read> rates: array<T>;     // A
@group(0) @binding(3) var<storage, read> gain: array<T>;      // B
@group(0) @binding(4) var<storage, read> readout: array<T>;   // C
@group(0) @binding(5) var<storage, read> before: array<TI>;
@group(0) @binding(6) var<storage, read_write> y: array<T>;
@group(0) @binding(7) var<storage, read_write> after: array<TO>;
@group(0) @binding(8) var<uniform> p: Params;

var<workgroup> cells: array<f32, STEPS * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let blocks = (p.channels + CHANNELS - 1u) / CHANNELS;
  let b = id / blocks;
  let first_channel = id % blocks * CHANNELS;
  let channel = first_channel + lane / LANES;
  let own_lane = lane % LANES;
  let live = channel < p.channels;
  var state = array<f32, OWN>();
  var rate = array<f32, OWN>();
  for (var i = 0u; i < OWN; i++) {
    let j = own_lane + i * LANES;
    if (live && j < p.states) {
      if (HAS_STATE) { state[i] = f32(before[p.before_base + (b * p.channels + channel) * p.states + j]); }
      rate[i] = f32(rates[p.rates_base + channel * p.states + j]);
    }
  }
  for (var t0 = 0u; t0 < p.used; t0 += STEPS) {
    for (var step = 0u; step < STEPS; step++) {
      let t = t0 + step;
      var sum = 0.0;
      if (live && t < p.used) {
        let token = b * p.seq + t;
        let dt = f32(delta[p.delta_base + token * p.channels + channel]);
        let u = f32(x[p.x_base + token * p.channels + channel]);
        for (var i = 0u; i < OWN; i++) {
          let j = own_lane + i * LANES;
          if (j < p.states) {
            let decay = decay_of(dt * rate[i]);
            let old = select(decay.factor * state[i], state[i] + decay.change * state[i], decay.small && !inf_of(state[i]));
            let s = old + dt * f32(gain[p.gain_base + token * p.states + j]) * u;
            state[i] = s;
            sum += f32(readout[p.readout_base + token * p.states + j]) * s;
          }
        }
      }
      cells[step * WG + lane] = sum;
    }
    workgroupBarrier();
    for (var n = lane; n < STEPS * CHANNELS; n += WG) {
      let step = n / CHANNELS;
      let c = n % CHANNELS;
      if (t0 + step < p.used && first_channel + c < p.channels) {
        var sum = 0.0;
        for (var i = 0u; i < LANES; i++) { sum += cells[step * WG + c * LANES + i]; }
        y[p.y_base + (b * p.seq + t0 + step) * p.channels + first_channel + c] = T(sum);
      }
    }
    workgroupBarrier();
  }
  if (p.keeps_state != 0u && live) {
    for (var i = 0u; i < OWN; i++) {
      let j = own_lane + i * LANES;
      if (j < p.states) { after[p.after_base + (b * p.channels + channel) * p.states + j] = TO(state[i]); }
    }
  }
}
