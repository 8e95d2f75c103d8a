// The gradient of a frame, one workgroup each: of its mel powers in workgroup memory, then of the bins.
// @include "log_mel_scalar.wgsl"
struct Params {
  frames: u32,
  n: u32,
  bins: u32,
  mels: u32,
  per_floor: u32,  // frames that share a floor
  spectrum_base: u32,
  filters_base: u32,
  dy_base: u32,
  power_base: u32,
  lowest_base: u32,
  dx_base: u32,
}
@group(0) @binding(0) var<storage, read>       spectrum: array<f32>;
@group(0) @binding(1) var<storage, read>       filters: array<f32>;
@group(0) @binding(2) var<storage, read>       dy: array<f32>;
@group(0) @binding(3) var<storage, read>       power: array<f32>;
@group(0) @binding(4) var<storage, read>       lowest: array<f32>;
@group(0) @binding(5) var<storage, read_write> dx: array<f32>;
@group(0) @binding(6) var<uniform>             p: Params;

var<workgroup> d_power: array<f32, 256>;

// 0 where the result does not depend on the power.
fn gradient(frame: u32, mel: u32) -> f32 {
  let i = frame * p.mels + mel;
  let x = power[p.power_base + i];
  let l = log_power(x);
  let edge = lowest[p.lowest_base + frame / p.per_floor] + 1e-6;
  if (!nan_of(x) && (x <= 1e-10 || (l <= edge && !nan_of(edge)))) { return 0.0; }
  return dy[p.dy_base + i] * 0.25 / (x * 2.3025851);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let frame = group.x + group.y * groups.x;
  if (frame >= p.frames) { return; }
  for (var first = 0u; first < p.n; first += 256u) {
    let bin = first + thread;
    var sum = 0.0;
    for (var first_mel = 0u; first_mel < p.mels; first_mel += 256u) {
      workgroupBarrier();
      if (first_mel + thread < p.mels) { d_power[thread] = gradient(frame, first_mel + thread); }
      workgroupBarrier();
      if (bin < p.bins) {
        for (var m = 0u; m < min(256u, p.mels - first_mel); m++) {
          // Not a product with 0: filters may hold infinities where the oracle skips.
          if (bool_of(d_power[m])) { sum += d_power[m] * filters[p.filters_base + (first_mel + m) * p.bins + bin]; }
        }
      }
    }
    if (bin < p.n) {
      let at = frame * p.n * 2u + bin;
      dx[p.dx_base + at] = 2.0 * sum * spectrum[p.spectrum_base + at];
      dx[p.dx_base + at + p.n] = 2.0 * sum * spectrum[p.spectrum_base + at + p.n];
    }
  }
}
