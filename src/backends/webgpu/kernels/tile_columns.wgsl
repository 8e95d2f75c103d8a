// W [K, N] with scales beside it: a thread decodes eight neighbours of one row.
// @include "columns.wgsl"
fn fill_w_tile(thread: u32, first_column: u32, first_k: u32, w_byte: u32) {
  let row = thread >> 3u;
  let run = (thread & 7u) * 8u;
  let n = first_column + run;
  let k = first_k + row;
  var v = Eight(vec4f(), vec4f());
  if (k < p.k && n < p.n) {
    let block = k / p.block;
    if (n + 8u <= p.n) {
      let codes = codes8(k * p.n + n);
      let scales = scales8(block, n);
      let zeros = zeros8(block, n);
      v = Eight((codes.a - zeros.a) * scales.a, (codes.b - zeros.b) * scales.b);
    } else {
      for (var i = 0u; i < p.n - n; i++) {
        let value = (code_at(k * p.n + n + i) - zero_at(block, n + i)) * scale_at(block, n + i);
        if (i < 4u) { v.a[i] = value; } else { v.b[i - 4u] = value; }
      }
    }
  }
  w_tile[row * 16u + (run >> 2u)] = v.a;
  w_tile[row * 16u + (run >> 2u) + 1u] = v.b;
}
