// The states of a recurrent net before its first step, as the f32 that its steps work on: for each layer four parts of
// `slot` elements, h in turn in the first two, c in the third.
alias T = f32;             // @type f32 | f16

struct Params {
  n: u32,                  // elements of a state of all cells
  slot: u32,               // of a layer's cells
  has_h: u32,              // is it given?
  has_c: u32,
  h_base: u32,
  c_base: u32,
  states_base: u32,
}
@group(0) @binding(0) var<storage, read> h: array<T>;
@group(0) @binding(1) var<storage, read> c: array<T>;
@group(0) @binding(2) var<storage, read_write> states: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let i = (group.x + group.y * groups.x) * 64u + lane;
  if (i >= p.n) { return; }
  let at = p.states_base + i / p.slot * 4u * p.slot + i % p.slot;
  var first = 0.0;
  var second = 0.0;
  if (p.has_h != 0u) { first = f32(h[p.h_base + i]); }
  if (p.has_c != 0u) { second = f32(c[p.c_base + i]); }
  states[at] = first;
  states[at + 2u * p.slot] = second;
}
