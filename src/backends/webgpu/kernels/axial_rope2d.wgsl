// Rotates the first half of each head by the token's column, the second half by its row; cosines and sines of all
// positions come as a table of bits.
alias T = f32;             // @type f32 | f16

struct Params {
  n: u32,                  // pairs
  pairs: u32,              // in a head
  heads: u32,
  seq: u32,
  end_x: u32,
  tile: u32,               // tokens share the position t mod tile, or
  repeat: u32,             // t / repeat, after it
  x_base: u32,
  angles_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> angles: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = (group.x + group.y * groups.x) * 128u + lane;
  if (id >= p.n) { return; }
  let i = id % p.pairs;
  let t = id / p.pairs / p.heads % p.seq % p.tile / p.repeat;
  let quarter = p.pairs / 2u;
  let position = select(t / p.end_x, t % p.end_x, i < quarter);
  let at = p.angles_base + 2u * (position * quarter + i % quarter);
  let c = bitcast<f32>(angles[at]);
  let s = bitcast<f32>(angles[at + 1u]);
  let u = f32(x[p.x_base + 2u * id]);
  let w = f32(x[p.x_base + 2u * id + 1u]);
  y[p.y_base + 2u * id] = T(u * c - w * s);
  y[p.y_base + 2u * id + 1u] = T(u * s + w * c);
}
