// 1 where every constant term of the scene's harmonics is 0: then they come from the colours. One workgroup.
struct Params {
  n: u32,
  stored: u32,     // coefficients per splat
  sh_base: u32,
  rule_base: u32,
}
@group(0) @binding(0) var<storage, read>       sh: array<f32>;
@group(0) @binding(1) var<storage, read_write> rule: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> seen: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) { atomicStore(&seen, 0u); }
  workgroupBarrier();
  for (var i = thread; i < p.n * 3u; i += 256u) {
    // By bits: NaN is not 0.
    let bits = bitcast<u32>(sh[p.sh_base + i / 3u * p.stored * 3u + i % 3u]) & 0x7fffffffu;
    if (bits > bitcast<u32>(1e-8f)) { atomicStore(&seen, 1u); }
  }
  workgroupBarrier();
  if (thread == 0u) { rule[p.rule_base] = 1u - atomicLoad(&seen); }
}
