// Time steps of one layer of a recurrent net, both directions. What the gates take from the input lies ready in
// `inputs`; here comes what they take from the state. KX threads share a unit's products; a workgroup does every
// unit_groups-th block of units. With one unit group it may do many steps, since only it writes the state it reads.
// @include "scalar.wgsl"
alias T = f32;             // @type f32 | f16: of the weights
alias Y = f32;             // of the layer's output
override CELL: u32 = 0u;   // 0 lstm, 1 gru, 2 rnn
override GATES: u32 = 4u;
override KX: u32 = 4u;
override BIAS: bool = false;
override PEEPHOLE: bool = false;
override RESET_FIRST: bool = false;  // gru: r scales the state before the product, which makes a step two phases
override RELU: bool = false;
const WG = 256u;
const UX = WG / KX;

struct Params {
  groups: u32,             // workgroups
  batch: u32,
  seq: u32,
  hidden: u32,
  directions: u32,
  backwards: u32,          // bit d: direction d runs from the last step to the first
  cell: u32,               // of the layer's first direction
  state: u32,              // where the layer's states begin: h in turn, h, c or z, the scaled h
  unit_groups: u32,
  first_step: u32,
  steps: u32,
  phases: u32,             // bits: which phases
  inputs_base: u32,
  weights_base: u32,
  bias_base: u32,
  peephole_base: u32,
  states_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read> inputs: array<f32>;      // [batch, seq, directions * gates * hidden]
@group(0) @binding(1) var<storage, read> weights: array<T>;       // [cells, hidden, gates * hidden]
@group(0) @binding(2) var<storage, read> bias: array<T>;          // [cells, 2, gates * hidden]
@group(0) @binding(3) var<storage, read> peephole: array<T>;      // [cells, 3, hidden]
@group(0) @binding(4) var<storage, read_write> states: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<Y>;
@group(0) @binding(6) var<uniform> p: Params;

var<workgroup> cells: array<f32, WG * GATES>;

fn bias_of(which: u32, cell: u32, row: u32) -> f32 {
  if (BIAS) { return f32(bias[p.bias_base + (cell * 2u + which) * GATES * p.hidden + row]); }
  return 0.0;
}
fn seen_of(gate: u32, cell: u32, unit: u32) -> f32 {
  if (PEEPHOLE) { return f32(peephole[p.peephole_base + (cell * 3u + gate) * p.hidden + unit]); }
  return 0.0;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = group.x + group.y * groups.x;
  if (id >= p.groups) { return; }
  let unit_group = id % p.unit_groups;
  let b = id / p.unit_groups % p.batch;
  let direction = id / p.unit_groups / p.batch;
  let cell = p.cell + direction;
  let rows = GATES * p.hidden;
  let own = p.states_base + p.state + (direction * p.batch + b) * p.hidden;
  let slot = p.directions * p.batch * p.hidden;
  let part = lane / UX;
  for (var step = p.first_step; step < p.first_step + p.steps; step++) {
    let t = select(step, p.seq - 1u - step, ((p.backwards >> direction) & 1u) == 1u);
    let old = own + step % 2u * slot;
    let next = own + (step + 1u) % 2u * slot;
    let kept = own + 2u * slot;    // c of lstm, z of gru
    let scaled = own + 3u * slot;
    let token = p.inputs_base + ((b * p.seq + t) * p.directions + direction) * rows;
    for (var phase = 0u; phase < 2u; phase++) {
      if (((p.phases >> phase) & 1u) == 0u) { continue; }
      let second = RESET_FIRST && phase == 1u;
      let from_state = select(old, scaled, second);
      for (var u0 = unit_group * UX; u0 < p.hidden; u0 += p.unit_groups * UX) {
        let unit = u0 + lane % UX;
        var acc = array<f32, GATES>();
        if (unit < p.hidden) {
          for (var k = part; k < p.hidden; k += KX) {
            let h = states[from_state + k];
            let at = p.weights_base + (cell * p.hidden + k) * rows + unit;
            for (var g = 0u; g < GATES; g++) {
              if (!RESET_FIRST || (g == 2u) == second) { acc[g] += f32(weights[at + g * p.hidden]) * h; }
            }
          }
        }
        for (var g = 0u; g < GATES; g++) { cells[g * WG + lane] = acc[g]; }
        workgroupBarrier();
        if (part == 0u && unit < p.hidden) {
          var x = array<f32, GATES>();      // what the gates take from the input
          for (var g = 0u; g < GATES; g++) {
            acc[g] = bias_of(1u, cell, g * p.hidden + unit);
            for (var i = 0u; i < KX; i++) { acc[g] += cells[g * WG + i * UX + lane]; }
            x[g] = inputs[token + g * p.hidden + unit] + bias_of(0u, cell, g * p.hidden + unit);
          }
          let before = states[old + unit];
          var h = 0.0;
          var done = true;
          if (CELL == 0u) {
            let c = states[kept + unit];
            let gate_i = f_sigmoid(x[0] + acc[0] + seen_of(0u, cell, unit) * c);
            let gate_f = f_sigmoid(x[1 % GATES] + acc[1 % GATES] + seen_of(1u, cell, unit) * c);
            let fresh = gate_f * c + gate_i * f_tanh(x[2 % GATES] + acc[2 % GATES]);
            states[kept + unit] = fresh;
            h = f_sigmoid(x[3 % GATES] + acc[3 % GATES] + seen_of(2u, cell, unit) * fresh) * f_tanh(fresh);
          } else if (CELL == 1u) {
            if (RESET_FIRST && !second) {
              states[scaled + unit] = before * f_sigmoid(x[0] + acc[0]);
              states[kept + unit] = f_sigmoid(x[1 % GATES] + acc[1 % GATES]);
              done = false;
            } else {
              var z = states[kept + unit];
              var seen = acc[2 % GATES];
              if (!RESET_FIRST) {
                z = f_sigmoid(x[1 % GATES] + acc[1 % GATES]);
                seen *= f_sigmoid(x[0] + acc[0]);
              }
              h = (1.0 - z) * f_tanh(x[2 % GATES] + seen) + z * before;
            }
          } else {
            h = select(f_tanh(x[0] + acc[0]), f_relu(x[0] + acc[0]), RELU);
          }
          if (done) {
            states[next + unit] = h;
            y[p.y_base + ((b * p.seq + t) * p.directions + direction) * p.hidden + unit] = Y(h);
          }
        }
        workgroupBarrier();
      }
      storageBarrier();  // the next phase or step reads what this one wrote
    }
  }
}
