// What is done with the sums of columns c and on before they are stored: the bias is added, and the activation taken.
// @include "activation.wgsl"
// @include "matmul_params.wgsl"
alias BiasT = f32;        // @type f32 | f16
@group(0) @binding(2) var<storage, read>       bias: array<BiasT>;
fn epilogue(v: vec4f, c: u32) -> vec4f {
  var s = v;
  let i = p.bias_base + c;
  if (c < p.n) { s.x += f32(bias[i]); }
  if (c + 1u < p.n) { s.y += f32(bias[i + 1u]); }
  if (c + 2u < p.n) { s.z += f32(bias[i + 2u]); }
  if (c + 3u < p.n) { s.w += f32(bias[i + 3u]); }
  return activate4(s);
}
