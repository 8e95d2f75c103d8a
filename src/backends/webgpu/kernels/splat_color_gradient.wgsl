// From the gradient of a splat's colour to colors, sh and, through the direction, positions: one thread per splat.
// @include "splat_sh.wgsl"
override DC: u32 = 0u;   // 0: harmonics have the constant term, 1: colours have it, 2: `rule` says which

struct Params {
  n: u32,
  stored: u32,
  coefficients: u32,     // that count
  sign: f32,             // of the direction from splat to eye
  positions_base: u32,
  colors_base: u32,
  sh_base: u32,
  view_base: u32,
  rule_base: u32,
  d_color_base: u32,
  out_base: u32,
}
@group(0) @binding(0) var<storage, read>       positions: array<f32>;
@group(0) @binding(1) var<storage, read>       colors: array<f32>;
@group(0) @binding(2) var<storage, read>       sh: array<f32>;
@group(0) @binding(3) var<storage, read>       view: array<f32>;
@group(0) @binding(4) var<storage, read>       rule: array<u32>;
@group(0) @binding(5) var<storage, read>       d_color: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
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
  let out_colors = p.out_base + p.n * 11u + i * 3u;
  let out_sh = p.out_base + p.n * 14u + i * max(p.stored, 1u) * 3u;
  var weights: Basis;
  for (var c = 0u; c < 3u; c++) {
    let d = d_color[p.d_color_base + i * 3u + c];
    let color = colors[p.colors_base + i * 3u + c];
    out[out_colors + c] = select(0.0, d, from_colors && color >= 0.0 && color <= 1.0);
    for (var k = 0u; k < max(p.stored, 1u); k++) {
      let counts = DC != 1u && k < p.coefficients && !(k == 0u && from_colors);
      out[out_sh + k * 3u + c] = 0.0;
      if (counts) {
        out[out_sh + k * 3u + c] = d * basis[min(k, 15u)];
        weights[min(k, 15u)] += d * sh[p.sh_base + (i * p.stored + k) * 3u + c];
      }
    }
  }
  if (!(length > 1e-8)) { return; }
  let slope = slope_of(direction, weights);
  let across = (slope - dot(slope, direction) * direction) * (-p.sign / length);
  for (var k = 0u; k < 3u; k++) { out[p.out_base + i * 3u + k] += across[k]; }
}
