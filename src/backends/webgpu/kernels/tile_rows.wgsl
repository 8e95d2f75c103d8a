// W [N, K] in blocks along K: a thread decodes eight elements of one row and stores them as a column of the tile.
// @include "decode_q4_0.wgsl"
fn fill_w_tile(thread: u32, first_column: u32, first_k: u32, w_byte: u32) {
  let n = thread >> 2u;
  let run = (thread & 3u) * 8u;
  let k = first_k + run;
  var v = Eight(vec4f(), vec4f());
  if (first_column + n < p.n && k < p.k) {
    v = decode8(w_byte + (first_column + n) * p.row_bytes + (k / BLOCK) * BYTES, k % BLOCK);
  }
  for (var i = 0u; i < 4u; i++) {
    w_tile[(run + i) * 16u + (n >> 2u)][n & 3u] = v.a[i];
    w_tile[(run + 4u + i) * 16u + (n >> 2u)][n & 3u] = v.b[i];
  }
}
