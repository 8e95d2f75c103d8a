// y = epilogue(lhs · rhs) of many small matrices: a thread per four columns of a row, along all of k. The grid is linear.
// @include "matmul_params.wgsl"
// @include "matmul_lhs.wgsl"
// @include "matmul_rhs.wgsl"
// @include "matmul_epilogue.wgsl"
// @include "matmul_store.wgsl"
// @include "matmul_batch.wgsl"
@group(0) @binding(10) var<uniform>            p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 64u;
  let c = i % p.tiles_n * 4u;
  let row = i / p.tiles_n % p.tiles_m;
  let matrix = i / p.tiles_n / p.tiles_m;
  if (matrix >= p.batch || row >= p.m) { return; }
  let at = matrices_of(matrix, row, 1u);
  var s = vec4f();
  for (var kk = 0u; kk < p.k; kk += 4u) {
    let x = lhs4(at.lhs + row * p.k, kk, p.k);
    s = fma(vec4f(x.x), rhs4(at.rhs + kk * p.n, c, at.cols), s);
    s = fma(vec4f(x.y), rhs4(at.rhs + (kk + 1u) * p.n, c, select(0u, at.cols, kk + 1u < p.k)), s);
    s = fma(vec4f(x.z), rhs4(at.rhs + (kk + 2u) * p.n, c, select(0u, at.cols, kk + 2u < p.k)), s);
    s = fma(vec4f(x.w), rhs4(at.rhs + (kk + 3u) * p.n, c, select(0u, at.cols, kk + 3u < p.k)), s);
  }
  store4(at.result, row, c, epilogue(s, c));
}
