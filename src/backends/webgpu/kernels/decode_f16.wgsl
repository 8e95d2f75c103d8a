// Plain halves: a block is one element.
// @include "bytes.wgsl"
const BLOCK: u32 = 1u;
const BYTES: u32 = 2u;
fn halves(at: u32) -> vec4f { return vec4f(unpack2x16float(u32_at(at)), unpack2x16float(u32_at(at + 4u))); }
fn decode8(at: u32, e: u32) -> Eight { return Eight(halves(at), halves(at + 8u)); }
