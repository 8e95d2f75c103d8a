// y = x · W for at most M rows of x and a weight [K, N] of codes with scales beside it. A workgroup has 64 columns, eight
// per thread, and 32 slices of K, a block of rows of W at a time.
// @include "x_scalars.wgsl"
// @include "columns.wgsl"
override M: u32 = 1u;

struct Params {
  m: u32,
  n: u32,
  k: u32,
  block: u32,         // rows of W that share a scale
  scale_block: u32,
  scale_column: u32,
  x_base: u32,
  w_byte_base: u32,
  y_base: u32,
  scale_base: u32,
  scale_byte_base: u32,
  zero_base: u32,
}
@group(0) @binding(1) var<storage, read>       w: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform>             p: Params;

var<workgroup> cells: array<f32, 2048>;  // [32 slices][64 columns]

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let first = (group.x + group.y * groups.x) * 64u;
  let slice = thread >> 3u;
  let n = first + (thread & 7u) * 8u;
  var acc_a: array<vec4f, M>;
  var acc_b: array<vec4f, M>;
  if (n < p.n) {
    // Blocks of rows in turn; where a block is long, a slice has a part of it.
    let part = min(p.block, 16u);
    let parts = (p.block + part - 1u) / part;
    let all = (p.k + p.block - 1u) / p.block * parts;
    for (var s = slice; s < all; s += 32u) {
      let block = s / parts;
      let start = block * p.block + (s % parts) * part;
      let end = min(min(start + part, (block + 1u) * p.block), p.k);
      if (n + 8u <= p.n) {
        let scales = scales8(block, n);
        let zeros = zeros8(block, n);
        for (var k = start; k < end; k++) {
          let codes = codes8(k * p.n + n);
          let a = (codes.a - zeros.a) * scales.a;
          let b = (codes.b - zeros.b) * scales.b;
          for (var i = 0u; i < M; i++) {
            let xv = x[p.x_base + min(i, p.m - 1u) * p.k + k];
            acc_a[i] += xv * a;
            acc_b[i] += xv * b;
          }
        }
      } else {
        for (var k = start; k < end; k++) {
          var a = vec4f();
          var b = vec4f();
          for (var c = 0u; c < p.n - n; c++) {
            let value = (code_at(k * p.n + n + c) - zero_at(block, n + c)) * scale_at(block, n + c);
            if (c < 4u) { a[c] = value; } else { b[c - 4u] = value; }
          }
          for (var i = 0u; i < M; i++) {
            let xv = x[p.x_base + min(i, p.m - 1u) * p.k + k];
            acc_a[i] += xv * a;
            acc_b[i] += xv * b;
          }
        }
      }
    }
  }
  for (var i = 0u; i < M; i++) {
    let at = slice * 64u + (thread & 7u) * 8u;
    for (var c = 0u; c < 4u; c++) {
      cells[at + c] = acc_a[i][c];
      cells[at + 4u + c] = acc_b[i][c];
    }
    workgroupBarrier();
    if (thread < 64u) {
      var sum = 0.0;
      for (var s = 0u; s < 32u; s++) { sum += cells[s * 64u + thread]; }
      if (first + thread < p.n && i < p.m) { y[p.y_base + i * p.n + first + thread] = sum; }
    }
    workgroupBarrier();
  }
}
