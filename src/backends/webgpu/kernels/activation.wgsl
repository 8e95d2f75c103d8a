// The activation of an epilogue: ops::ActivationKind's number; 0 is none.
// @include "scalar.wgsl"
override ACTIVATION: u32 = 0u;

fn activate(x: f32) -> f32 {
  switch (ACTIVATION) {
    case 1u: { return f_relu(x); }
    case 2u: { return f_sigmoid(x); }
    case 3u: { return f_tanh(x); }
    case 4u: { return f_exp(x); }
    case 5u: { return f_log(x); }
    case 6u: { return f_sqrt(x); }
    case 7u: { return f_rsqrt(x); }
    case 8u: { return -x; }
    case 9u: { return abs(x); }
    case 10u: { return f_gelu(x); }
    case 11u: { return f_silu(x); }
    case 12u: { return f_gelu_approx(x); }
    case 13u: { return round(x); }
    case 14u: { return f_sin(x); }
    case 15u: { return f_cos(x); }
    case 16u: { return f_tan(x); }
    case 17u: { return f_atan(x); }
    default: { return x; }
  }
}
fn activate4(v: vec4f) -> vec4f { return vec4f(activate(v.x), activate(v.y), activate(v.z), activate(v.w)); }
