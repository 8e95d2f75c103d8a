// y = epilogue(sum of the parts of a product that was split along k), the parts in order. A thread per four columns.
// lhs is the parts: [parts, m, n].
// @include "matmul_params.wgsl"
// @include "matmul_lhs.wgsl"
// @include "matmul_epilogue.wgsl"
// @include "matmul_store.wgsl"
@group(0) @binding(10) var<uniform>            p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  let fours = (p.n + 3u) / 4u;
  let row = i / fours;
  if (row >= p.m) { return; }
  let c = i % fours * 4u;
  var s = vec4f();
  for (var part = 0u; part * p.chunk < p.k; part++) { s += lhs4(part * p.part + row * p.n, c, p.n); }
  store4(0u, row, c, epilogue(s, c));
}
