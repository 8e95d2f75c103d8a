// Mel powers: filters · |spectrum|^2 of four frames per workgroup. Eight threads share a filter, so that its row is read
// in whole sectors.
struct Params {
  frames: u32,
  n: u32,        // a frame is n real parts, then n imaginary parts
  bins: u32,
  mels: u32,
  spectrum_base: u32,
  filters_base: u32,
  power_base: u32,
}
@group(0) @binding(0) var<storage, read>       spectrum: array<f32>;
@group(0) @binding(1) var<storage, read>       filters: array<f32>;
@group(0) @binding(2) var<storage, read_write> power: array<f32>;
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> squares: array<vec4<f32>, 256>;  // of four frames
var<workgroup> parts: array<vec4<f32>, 256>;

fn square(frame: u32, bin: u32) -> f32 {
  if (frame >= p.frames || bin >= p.bins) { return 0.0; }
  let at = p.spectrum_base + frame * p.n * 2u + bin;
  return spectrum[at] * spectrum[at] + spectrum[at + p.n] * spectrum[at + p.n];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let frame = (group.x + group.y * groups.x) * 4u;
  let lane = thread % 8u;
  for (var first_mel = 0u; first_mel < p.mels; first_mel += 32u) {
    let mel = first_mel + thread / 8u;
    var sum = vec4<f32>(0.0);
    for (var first = 0u; first < p.bins; first += 256u) {
      workgroupBarrier();
      let bin = first + thread;
      squares[thread] = vec4<f32>(square(frame, bin), square(frame + 1u, bin), square(frame + 2u, bin),
                                  square(frame + 3u, bin));
      workgroupBarrier();
      if (mel < p.mels) {
        for (var k = lane; k < min(256u, p.bins - first); k += 8u) {
          sum += filters[p.filters_base + mel * p.bins + first + k] * squares[k];
        }
      }
    }
    parts[thread] = sum;
    workgroupBarrier();
    // Four of the eight threads finish a frame each.
    if (mel < p.mels && lane < 4u && frame + lane < p.frames) {
      var total = 0.0;
      for (var k = 0u; k < 8u; k++) { total += parts[thread - lane + k][lane]; }
      power[p.power_base + (frame + lane) * p.mels + mel] = total;
    }
    workgroupBarrier();
  }
}
