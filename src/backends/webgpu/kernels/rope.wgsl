// Rotates pairs of each head by the angle of the token's position. A thread turns a pair, or copies an entry that no
// pair has. sign -1: the rotation back, which is the gradient.
alias T = f32;             // @type f32 | f16
alias TC = f32;            // of the cosines
alias TS = f32;            // of the sines
alias I = u32;             // of the positions
override NEOX: bool = true;        // pairs (i, half + i), not (2i, 2i + 1)
override POSITIONS: bool = false;  // they choose the table's rows

struct Params {
  n: u32,                  // threads
  units: u32,              // of a head: pairs and entries to copy
  heads: u32,              // side by side in a token
  head_dim: u32,
  half_rot: u32,           // pairs
  seq: u32,
  outer_per_batch: u32,    // sequences of one batch: heads that lie before the sequence
  table_rows: u32,
  table_batch: u32,        // rows from one batch's table to the next; 0: shared
  position_batch: u32,
  sign: f32,
  x_base: u32,
  cosines_base: u32,
  sines_base: u32,
  positions_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> cosines: array<TC>;
@group(0) @binding(2) var<storage, read> sines: array<TS>;
@group(0) @binding(3) var<storage, read> positions: array<I>;
@group(0) @binding(4) var<storage, read_write> y: array<T>;
@group(0) @binding(5) var<uniform> p: Params;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = (group.x + group.y * groups.x) * 128u + lane;
  if (id >= p.n) { return; }
  let i = id % p.units;
  let head = id / p.units;                   // of all tokens
  let first = head * p.head_dim;
  if (i >= p.half_rot) {
    let at = first + p.half_rot + i;         // 2 half + (i - half)
    y[p.y_base + at] = x[p.x_base + at];
    return;
  }
  let token = head / p.heads;
  let s = token % p.seq;
  let b = token / p.seq / p.outer_per_batch;
  var row = s;
  if (POSITIONS) { row = u32(clamp(i32(positions[p.positions_base + b * p.position_batch + s]), 0, i32(p.table_rows) - 1)); }
  let angle = (b * p.table_batch + row) * (p.head_dim / 2u) + i;
  let c = f32(cosines[p.cosines_base + angle]);
  let d = p.sign * f32(sines[p.sines_base + angle]);
  let one = first + select(2u * i, i, NEOX);
  let two = first + select(2u * i + 1u, p.half_rot + i, NEOX);
  let u = f32(x[p.x_base + one]);
  let w = f32(x[p.x_base + two]);
  y[p.y_base + one] = T(u * c - w * d);
  y[p.y_base + two] = T(w * c + u * d);
}
