// Power of the bins, summed over segments, parts of them by themselves: one thread per bin.
struct Params {
  n: u32,          // bins of all spectra
  bins: u32,
  size: u32,       // a row is `size` real parts, then as many imaginary ones
  segments: u32,
  x_base: u32,
  power_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<f32>;
@group(0) @binding(1) var<storage, read_write> power: array<f32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let bin = i % p.bins;
  var sum = 0.0;
  for (var first = 0u; first < p.segments; first += 64u) {
    var part = 0.0;
    for (var s = first; s < min(first + 64u, p.segments); s++) {
      let at = p.x_base + (i / p.bins * p.segments + s) * p.size * 2u + bin;
      part += x[at] * x[at] + x[at + p.size] * x[at + p.size];
    }
    sum += part;
  }
  // The first bin and the one at half the rate have no mirror image.
  power[p.power_base + i] = select(sum * 2.0, sum, bin == 0u || bin * 2u == p.size);
}
