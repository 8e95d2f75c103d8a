// Colour and opacity of every splat, one thread each.
// @include "splat_sh.wgsl"
override DC: u32 = 0u;   // 0: harmonics have the constant term, 1: colours have it, 2: `rule` says which

struct Params {
  n: u32,
  stored: u32,
  coefficients: u32,     // that count
  sign: f32,             // of the direction from splat to eye
  positions_base: u32,
  opacities_base: u32,
  colors_base: u32,
  sh_base: u32,
  view_base: u32,
  rule_base: u32,
  prep_base: u32,
}
@group(0) @binding(0) var<storage, read>       positions: array<f32>;
@group(0) @binding(1) var<storage, read>       opacities: array<f32>;
@group(0) @binding(2) var<storage, read>       colors: array<f32>;
@group(0) @binding(3) var<storage, read>       sh: array<f32>;
@group(0) @binding(4) var<storage, read>       view: array<f32>;
@group(0) @binding(5) var<storage, read>       rule: array<u32>;
@group(0) @binding(6) var<storage, read_write> prep: array<f32>;
@group(0) @binding(7) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  if (i >= p.n) { return; }
  var away: vec3<f32>;
  for (var k = 0u; k < 3u; k++) {
    away[k] = view[p.view_base + k] - positions[p.positions_base + i * 3u + k];
  }
  let length = sqrt(dot(away, away));
  var direction = vec3<f32>(0.0, 0.0, 1.0);
  if (length > 1e-8) { direction = away * (p.sign / length); }
  let basis = basis_at(direction);
  let from_colors = DC == 1u || (DC == 2u && rule[p.rule_base] == 1u);
  for (var c = 0u; c < 3u; c++) {
    var sum = 0.5;
    if (from_colors) { sum = clamp(colors[p.colors_base + i * 3u + c], 0.0, 1.0); }
    if (DC != 1u || p.coefficients > 1u) {
      for (var k = select(0u, 1u, from_colors); k < p.coefficients; k++) {
        sum += basis[k] * sh[p.sh_base + (i * p.stored + k) * 3u + c];
      }
    }
    prep[p.prep_base + i * 4u + c] = sum;
  }
  prep[p.prep_base + i * 4u + 3u] = clamp(opacities[p.opacities_base + i], 0.0, 1.0);
}
