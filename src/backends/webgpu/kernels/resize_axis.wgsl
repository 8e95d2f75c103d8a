// y[o, j, t] = sum of weight * x[o, place, t] over the taps of place j: one axis of an interpolation. One thread per
// element of the result.
alias T = f32;             // @type f32 | f16
alias U = f32;             // @type f32 | f16

struct Params {
  n: u32,
  inner: u32,              // elements behind the axis
  in_size: u32,            // of the axis in x
  out_size: u32,           // and in y
  taps: u32,
  beyond: f32,             // what stands for places that are not in x
  x_base: u32,
  table_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       table: array<u32>;  // places of all taps, then the bits of their weights
@group(0) @binding(2) var<storage, read_write> y: array<U>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let q = i / p.inner;
  let o = q / p.out_size;
  let first = (q - o * p.out_size) * p.taps;
  let t = i - q * p.inner;
  var sum = 0.0;
  for (var k = first; k < first + p.taps; k += 1u) {
    let place = table[p.table_base + k];
    if (place == 0xffffffffu) {
      sum = p.beyond;
      break;
    }
    let weight = bitcast<f32>(table[p.table_base + p.out_size * p.taps + k]);
    sum += weight * f32(x[p.x_base + (o * p.in_size + place) * p.inner + t]);
  }
  y[p.y_base + i] = U(sum);
}
