// The states of a recurrent net after its last step as results (recurrent_begin).
alias T = f32;             // @type f32 | f16

struct Params {
  n: u32,                  // elements of a state of all cells
  slot: u32,               // of a layer's cells
  has_h: u32,              // is it wanted?
  has_c: u32,
  turn: u32,               // which h is the last
  states_base: u32,
  h_base: u32,
  c_base: u32,
}
@group(0) @binding(0) var<storage, read> states: array<f32>;
@group(0) @binding(1) var<storage, read_write> h: array<T>;
@group(0) @binding(2) var<storage, read_write> c: array<T>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let i = (group.x + group.y * groups.x) * 64u + lane;
  if (i >= p.n) { return; }
  let at = p.states_base + i / p.slot * 4u * p.slot + i % p.slot;
  if (p.has_h != 0u) { h[p.h_base + i] = T(states[at + p.turn * p.slot]); }
  if (p.has_c != 0u) { c[p.c_base + i] = T(states[at + 2u * p.slot]); }
}
